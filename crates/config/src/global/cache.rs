//! `cache { … }`: the memory of all `cache` directives together, and the disk behind it. More about it: [the cache](cache.md).
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `memory SIZE` | 128MiB | of all stored responses; a quarter more may be on its way in or out |
//! | `largest_object SIZE` | 8MiB | of a body in memory; a larger one is stored on the disk, if there is one |
//! | `disk DIRECTORY SIZE` | none | a directory of the server's alone: what memory has no room for, and all after a restart |
//!
//! | option of `disk … { … }` | default | meaning |
//! |---|---|---|
//! | `files NUMBER` | 100000 | that there may be, one for each response |
//! | `largest_object SIZE` | 1GiB; a quarter of the size at most | of a body on the disk |

use crate::call::Call;
use crate::context::Context;
use crate::model::{CacheDisk, CacheMemory};
use crate::problems::{error, unknown_option, unknown_option_of_cache};
use crate::values;
use regent_caddyfile::Error;
use std::path::Path;

/// Less holds no page.
const LEAST: u64 = 1 << 20;
const USUAL_FILES: u64 = 100_000;
/// What is known of files is bounded by the memory too.
const MOST_FILES: u64 = 10_000_000;
const USUAL_OBJECT: u64 = 1 << 30;

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>) -> Result<CacheMemory, Error> {
    call.no_arguments("cache { memory SIZE; largest_object SIZE; disk DIRECTORY SIZE }")?;
    let mut memory = CacheMemory::default();
    for option in call.options() {
        let result = apply(cx, &option, &mut memory);
        cx.check(result);
    }
    if memory.memory < LEAST || memory.largest_object > memory.memory {
        let message =
            "`memory` must be at least 1MiB, and no less than `largest_object` (128MiB and 8MiB by default)";
        return Err(error(call.name, message));
    }
    Ok(memory)
}

fn apply(cx: &mut Context<'_>, option: &Call<'_>, memory: &mut CacheMemory) -> Result<(), Error> {
    match option.name() {
        "memory" => memory.memory = values::size(option.one("memory SIZE")?)?,
        "largest_object" => memory.largest_object = values::size(option.one("largest_object SIZE")?)?,
        "disk" => memory.disk = Some(disk(cx, option)?),
        _ => return Err(unknown_option_of_cache(option.name, &["disk", "largest_object", "memory"])),
    }
    Ok(())
}

fn disk(cx: &mut Context<'_>, call: &Call<'_>) -> Result<CacheDisk, Error> {
    let [directory, size] = call.args else { return Err(call.wrong_arguments(2, "disk DIRECTORY SIZE")) };
    let directory = cx.environment.absolute(Path::new(&cx.fixed_text(directory)?));
    let bytes = values::size(size)?;
    if bytes < LEAST {
        return Err(error(size, "the disk of the cache must have at least 1MiB"));
    }
    let most = bytes / 4;
    let largest_object = USUAL_OBJECT.min(most);
    let mut disk = CacheDisk { directory, size: bytes, files: USUAL_FILES, largest_object };
    for option in call.options() {
        let result = apply_to_disk(&option, &mut disk, most);
        cx.check(result);
    }
    Ok(disk)
}

fn apply_to_disk(option: &Call<'_>, disk: &mut CacheDisk, most: u64) -> Result<(), Error> {
    match option.name() {
        "files" => {
            let token = option.one("files NUMBER")?;
            let files = token.text.parse().ok().filter(|files| (1..=MOST_FILES).contains(files));
            disk.files = files.ok_or_else(|| error(token, "`files` must be a number from 1 to 10000000"))?;
        }
        "largest_object" => {
            let token = option.one("largest_object SIZE")?;
            disk.largest_object = values::size(token)?;
            if disk.largest_object > most {
                return Err(error(token, "one body can have a quarter of the disk's size at most"));
            }
        }
        _ => return Err(unknown_option(option.name, "disk", &["files", "largest_object"], &[])),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::{CacheDisk, CacheMemory};

    fn text(options: &str) -> String {
        format!("{{\ncache {{\n{options}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn options() {
        let memory = |options: &str| config(&text(options)).global.cache;
        assert_eq!(memory(""), CacheMemory::default());
        let own = CacheMemory { memory: 1 << 30, largest_object: 1 << 20, disk: None };
        assert_eq!(memory("memory 1GiB\nlargest_object 1MiB"), own);
        let disk = |options: &str| memory(options).disk.unwrap();
        let usual = CacheDisk {
            directory: "/srv/pages".into(),
            size: 10 << 30,
            files: 100_000,
            largest_object: 1 << 30,
        };
        assert_eq!(disk("disk pages 10GiB"), usual);
        let own = CacheDisk { directory: "/x".into(), size: 4 << 20, files: 9, largest_object: 1 << 20 };
        assert_eq!(disk("disk /x 4MiB {\nfiles 9\n}"), own);
        assert_eq!(disk("disk /x 10GiB {\nlargest_object 2GiB\n}").largest_object, 2 << 30);
    }

    #[test]
    fn mistakes() {
        let found = file_errors(&text("memory x\nlargest 1"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(file_errors(&text("memory 4MiB"))[0].contains("no less than `largest_object`"));
        assert_eq!(file_errors(&text("memory 1KiB\nlargest_object 1")).len(), 1);
        let found =
            file_errors(&text("disk /x\ndisk /x 1\ndisk /x 1GiB {\nfiles 0\nlargest_object 1GiB\nfile 1\n}"));
        assert_eq!(found.len(), 5, "{found:#?}");
        assert!(found[4].contains("did you mean `files`?"), "{found:?}");
    }
}
