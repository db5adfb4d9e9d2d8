//! Files that placeholders have texts from, as secrets of containers are.

use crate::template::FILE;
use regent_caddyfile::Imports;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// As in Caddy.
const LARGEST_FILE: u64 = 1 << 20;

/// What the file has that a placeholder `file./PATH` names, without the line end that editors put there. `None`: it names
/// none.
///
/// # Errors
/// When it cannot be read, is no text, or has more than a mebibyte.
pub fn file_content(name: &str) -> Option<io::Result<String>> {
    let path = name.strip_prefix(FILE)?;
    Some(read(&format!("/{path}")))
}

/// The same, if it is one of these files.
pub(crate) fn content_within(name: &str, files: &Imports) -> Option<io::Result<String>> {
    let path = name.strip_prefix(FILE).map(|path| format!("/{path}"))?;
    Some(files.check(Path::new(&path)).map_err(io::Error::other).and_then(|()| read(&path)))
}

fn read(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than a mebibyte"));
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let length = line.strip_suffix('\r').unwrap_or(line).len();
    text.truncate(length);
    Ok(text)
}
