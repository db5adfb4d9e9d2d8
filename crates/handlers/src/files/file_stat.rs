//! One `stat` and what a server needs of it.

use crate::context::found::FileKind;
use rustix::fs::{FileType, Stat};

/// What there is at a path, links followed; `None` also for what may not be looked at.
pub(crate) fn look(path: &[u8]) -> Option<Stat> {
    rustix::fs::stat(at(path)).ok()
}

/// As [`kind_of`] what is at a path.
pub(crate) fn kind(path: &[u8]) -> Option<FileKind> {
    look(path).as_ref().and_then(kind_of)
}

/// `None` for what cannot be served at all (devices, sockets, FIFOs).
pub(crate) fn kind_of(stat: &Stat) -> Option<FileKind> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Some(FileKind::File),
        FileType::Directory => Some(FileKind::Directory),
        _ => None,
    }
}

pub(crate) fn is_file(path: &[u8]) -> bool {
    kind(path) == Some(FileKind::File)
}

/// The empty path stands for the top directory: prefixes have no slash at their end.
pub(crate) fn at(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"/" } else { path }
}
