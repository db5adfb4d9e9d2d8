//! Validators that were made beforehand, in files beside those that they are of.

use crate::context::found::FileKind;
use crate::files::file_stat;
use http::HeaderValue;
use regent_exchange::read_at_once;
use rustix::fs::{Mode, OFlags};

/// Bytes of a validator; a larger file holds something else.
const LONGEST: u64 = 256;

/// What the first file holds that is there; `None`: there is none, or it holds something else.
pub(crate) fn beside(file: &[u8], endings: &[String]) -> Option<HeaderValue> {
    let paths = endings.iter().map(|ending| [file, ending.as_bytes()].concat());
    let found = paths
        .filter(|path| file_stat::look(path).as_ref().and_then(file_stat::kind_of) == Some(FileKind::File));
    read(&found.into_iter().next()?)
}

fn read(path: &[u8]) -> Option<HeaderValue> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let size = u64::try_from(rustix::fs::fstat(&fd).ok()?.st_size).ok()?;
    entity_tag(&(size <= LONGEST).then(|| read_at_once(&fd, size)).flatten()?)
}

/// RFC 9110 §8.8.3, but for weak ones.
fn entity_tag(text: &[u8]) -> Option<HeaderValue> {
    let tag = text.trim_ascii();
    let inner = tag.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_fine = inner.iter().all(|byte| *byte > b' ' && *byte != b'"' && *byte != 0x7f);
    is_fine.then(|| HeaderValue::from_bytes(tag).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn the_first_file_that_is_there_counts() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.css");
        let of = |endings: &[&str]| {
            let endings: Vec<String> = endings.iter().map(|ending| (*ending).to_owned()).collect();
            beside(file.as_os_str().as_bytes(), &endings)
        };
        fs::create_dir(directory.path().join("a.css.dir")).unwrap();
        for (ending, text) in [
            ("sha", "\"abc\"\n"),
            ("bare", "abc"),
            ("weak", "W/\"a\""),
            ("two", "\"a\" \"b\""),
            ("empty", ""),
        ] {
            fs::write(directory.path().join(format!("a.css.{ending}")), text).unwrap();
        }
        fs::write(directory.path().join("a.css.long"), format!("\"{}\"", "x".repeat(300))).unwrap();
        assert_eq!(of(&[".none", ".dir", ".sha", ".bare"]).unwrap(), "\"abc\"");
        for ending in [".bare", ".weak", ".two", ".empty", ".long", ".none"] {
            assert_eq!(of(&[ending]), None, "{ending}");
        }
    }
}
