//! `cache { … }`: the memory of all `cache` directives together. More about it: [the cache](cache.md).
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `memory SIZE` | 128MiB | of all stored responses; a quarter more may be on its way in or out |
//! | `largest_object SIZE` | 8MiB | of a body; a larger one is not stored |

use crate::call::Call;
use crate::context::Context;
use crate::model::CacheMemory;
use crate::problems::{error, unknown_option};
use crate::values;
use regent_caddyfile::Error;

/// Less holds no page.
const LEAST: u64 = 1 << 20;

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>) -> Result<CacheMemory, Error> {
    call.no_arguments("cache { memory SIZE; largest_object SIZE }")?;
    let mut memory = CacheMemory::default();
    for option in call.options() {
        let result = apply(&option, &mut memory);
        cx.check(result);
    }
    if memory.memory < LEAST || memory.largest_object > memory.memory {
        let message =
            "`memory` must be at least 1MiB, and no less than `largest_object` (128MiB and 8MiB by default)";
        return Err(error(call.name, message));
    }
    Ok(memory)
}

fn apply(option: &Call<'_>, memory: &mut CacheMemory) -> Result<(), Error> {
    match option.name() {
        "memory" => memory.memory = values::size(option.one("memory SIZE")?)?,
        "largest_object" => memory.largest_object = values::size(option.one("largest_object SIZE")?)?,
        _ => return Err(unknown_option(option.name, "cache", &["largest_object", "memory"], &[])),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::CacheMemory;

    fn text(options: &str) -> String {
        format!("{{\ncache {{\n{options}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn options() {
        let memory = |options: &str| config(&text(options)).global.cache;
        assert_eq!(memory(""), CacheMemory::default());
        let own = CacheMemory { memory: 1 << 30, largest_object: 1 << 20 };
        assert_eq!(memory("memory 1GiB\nlargest_object 1MiB"), own);
    }

    #[test]
    fn mistakes() {
        let found = file_errors(&text("memory x\nlargest 1"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(file_errors(&text("memory 4MiB"))[0].contains("no less than `largest_object`"));
        assert_eq!(file_errors(&text("memory 1KiB\nlargest_object 1")).len(), 1);
    }
}
