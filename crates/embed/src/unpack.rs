//! Unpacks the archive of a program, once.

use crate::EmbedError;
use crate::application::is_within;
use crate::footer::Footer;
use crate::place::{Place, check_own, is_there};
use aws_lc_rs::digest::{Context, SHA256};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags};
use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use tar::EntryType;
use tempfile::TempDir;

/// In the directory of an application that was unpacked to its end: its sum.
const COMPLETE: &str = "complete";
const PREFIX: &str = "app-";
const UNFINISHED: &str = ".unpacking-";
const CHUNK: usize = 1 << 20;

/// An application that is there as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    pub directory: PathBuf,
}

/// Unpacks what is appended to the program at this path, unless that has been done.
pub fn unpack(program: &Path, footer: &Footer, place: &Place) -> Result<Unpacked, EmbedError> {
    let directory = place.path().join(format!("{PREFIX}{}", footer.name()));
    if is_complete(&directory, footer)? {
        return Ok(Unpacked { directory });
    }
    check_sum(program, footer)?;
    remove_leftovers(place);
    let temporary = Temporary::new(place)?;
    extract(program, footer, temporary.path()).map_err(|error| told_of_room(error, place, footer))?;
    let mark = temporary.path().join(COMPLETE);
    fs::write(&mark, footer.sha256).map_err(EmbedError::file("writing", &mark))?;
    temporary.keep_as(&directory, footer)?;
    Ok(Unpacked { directory })
}

/// Whether it is there as a whole. What is there and is not whole goes: it is ours, and of no use.
fn is_complete(directory: &Path, footer: &Footer) -> Result<bool, EmbedError> {
    if !is_there(directory)? {
        return Ok(false);
    }
    check_own(directory)?;
    if fs::read(directory.join(COMPLETE)).is_ok_and(|sum| sum == footer.sha256) {
        return Ok(true);
    }
    fs::remove_dir_all(directory).map_err(EmbedError::file("removing what is left of", directory))?;
    Ok(false)
}

fn check_sum(program: &Path, footer: &Footer) -> Result<(), EmbedError> {
    let mut archive = footer.open(program)?;
    let (mut sum, mut chunk) = (Context::new(&SHA256), vec![0; CHUNK]);
    loop {
        match archive.read(&mut chunk).map_err(EmbedError::file("reading", program))? {
            0 => break,
            length => sum.update(&chunk[..length]),
        }
    }
    match sum.finish().as_ref() == footer.sha256 {
        true => Ok(()),
        false => Err(EmbedError::Damaged("its sum is another one".into())),
    }
}

fn extract(program: &Path, footer: &Footer, to: &Path) -> Result<(), EmbedError> {
    let reading = |error| EmbedError::Damaged(format!("{error}"));
    let archive = zstd::Decoder::new(footer.open(program)?).map_err(reading)?;
    // No archive is larger than its footer says: one more byte is too many.
    let mut archive = tar::Archive::new(archive.take(footer.unpacked));
    let mut directories = HashSet::from([to.to_owned()]);
    for entry in archive.entries().map_err(reading)? {
        let mut entry = entry.map_err(reading)?;
        let path = entry.path().map_err(reading)?.into_owned();
        if !is_plain(&path) {
            return Err(EmbedError::Damaged(format!("{} is no path in it", path.display())));
        }
        let target = to.join(&path);
        // Nothing is made behind a link.
        if target.parent().is_none_or(|parent| !directories.contains(parent)) {
            return Err(EmbedError::Damaged(format!("{} is in no directory of it", path.display())));
        }
        let is_program = entry.header().mode().map_err(reading)? & 0o100 != 0;
        match entry.header().entry_type() {
            EntryType::Directory => {
                fs::create_dir(&target).map_err(EmbedError::file("making", &target))?;
                directories.insert(target);
            }
            EntryType::Regular => {
                // Nothing may be there yet, neither a file nor a link.
                let mut file = fs::File::create_new(&target).map_err(EmbedError::file("making", &target))?;
                io::copy(&mut entry, &mut file).map_err(EmbedError::file("writing", &target))?;
                let changed = std::time::UNIX_EPOCH
                    + std::time::Duration::from_secs(entry.header().mtime().map_err(reading)?);
                let mode = if is_program { 0o700 } else { 0o600 };
                file.set_permissions(fs::Permissions::from_mode(mode))
                    .and_then(|()| file.set_modified(changed))
                    .map_err(EmbedError::file("writing", &target))?;
            }
            EntryType::Symlink => {
                let link = entry.link_name().map_err(reading)?.unwrap_or_default().into_owned();
                // Within its first component: `app`, say.
                let within: PathBuf = path.components().skip(1).collect();
                if within.as_os_str().is_empty() || !is_within(&within, &link) {
                    return Err(EmbedError::LinkOut { path, target: link });
                }
                std::os::unix::fs::symlink(&link, &target).map_err(EmbedError::file("making", &target))?;
            }
            other => return Err(EmbedError::Damaged(format!("{} is {other:?}", path.display()))),
        }
    }
    Ok(())
}

/// One that does not lead out of where it is joined to, as long as no link is on it.
fn is_plain(path: &Path) -> bool {
    path.components().next().is_some() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

fn told_of_room(error: EmbedError, place: &Place, footer: &Footer) -> EmbedError {
    match error {
        EmbedError::File { source, .. }
            if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) =>
        {
            EmbedError::NoRoom { directory: place.path().to_owned(), needed: footer.unpacked }
        }
        other => other,
    }
}

/// A directory that goes with its process.
struct Temporary {
    directory: TempDir,
    /// Locked as long as it is in use, by whatever process.
    lock: rustix::fd::OwnedFd,
}

impl Temporary {
    fn new(place: &Place) -> Result<Self, EmbedError> {
        let making = || EmbedError::file("making a directory in", place.path());
        let directory = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(place.path())
            .map_err(making())?;
        let lock = lock(directory.path()).map_err(|error| making()(error.into()))?;
        Ok(Self { directory, lock })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Another process may have been faster, which is as well.
    fn keep_as(self, target: &Path, footer: &Footer) -> Result<(), EmbedError> {
        let renamed = rustix::fs::renameat_with(CWD, self.path(), CWD, target, RenameFlags::NOREPLACE);
        drop(self.lock);
        match renamed {
            Ok(()) => {
                let _ = self.directory.keep();
                Ok(())
            }
            Err(_) if is_complete(target, footer)? => Ok(()),
            Err(error) => Err(EmbedError::file("making", target)(error.into())),
        }
    }
}

fn lock(directory: &Path) -> rustix::io::Result<rustix::fd::OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let lock = rustix::fs::open(directory, flags, Mode::empty())?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock)
}

/// What processes have left that were killed: nobody has locked it.
fn remove_leftovers(place: &Place) {
    let entries = fs::read_dir(place.path()).into_iter().flatten().filter_map(Result::ok);
    let unfinished = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED));
    for entry in unfinished {
        if let Ok(_lock) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
