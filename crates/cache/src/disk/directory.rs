//! The directory of a disk cache: only its owner can look into it, one process has it at a time, and a file is there as a whole
//! or not at all.

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const LOCK: &str = "lock";
/// Endings of names; what has neither is nobody's of ours, and left alone.
const WHOLE: &str = "response";
const BEGUN: &str = "begun";

#[derive(Debug)]
pub(super) struct Directory {
    fd: OwnedFd,
    /// Held by whoever may write. `None`: it has been given back.
    lock: Mutex<Option<OwnedFd>>,
}

/// A file of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// A stored response.
    Whole(u64),
    /// One that is being written.
    Begun(u64),
}

impl Directory {
    /// `None`: another process has it.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let fd = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let about = rustix::fs::fstat(&fd)?;
        if about.st_uid != rustix::process::geteuid().as_raw() {
            return Err(refused("it belongs to another user than the server's"));
        }
        if about.st_mode & 0o077 != 0 {
            return Err(refused("others can look into it: stored pages would be theirs (chmod 700)"));
        }
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = rustix::fs::openat(&fd, LOCK, flags, Mode::from_raw_mode(0o600))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { fd, lock: Mutex::new(Some(lock)) })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets another process have it. Files can still be removed.
    pub(super) fn give_back(&self) {
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether it has been removed.
    pub(super) fn is_gone(&self) -> bool {
        rustix::fs::fstat(&self.fd).is_ok_and(|about| about.st_nlink == 0)
    }

    /// All files of ours, in no order.
    pub(super) fn names(&self) -> io::Result<Vec<Name>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            names.extend(entry?.file_name().to_str().ok().and_then(Name::of));
        }
        Ok(names)
    }

    /// A new file, to be written.
    pub(super) fn create(&self, number: u64) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let name = Name::Begun(number).text();
        Ok(rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o600))?.into())
    }

    /// One that has been created.
    pub(super) fn begun(&self, number: u64) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(rustix::fs::openat(&self.fd, Name::Begun(number).text(), flags, Mode::empty())?.into())
    }

    /// What has been written under this number is a stored response from now on.
    pub(super) fn complete(&self, number: u64) -> io::Result<()> {
        let (begun, whole) = (Name::Begun(number).text(), Name::Whole(number).text());
        Ok(rustix::fs::renameat(&self.fd, begun, &self.fd, whole)?)
    }

    /// A stored response; an error if it is no file of the server's alone.
    pub(super) fn read(&self, number: u64) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.fd, Name::Whole(number).text(), flags, Mode::empty())?;
        let about = rustix::fs::fstat(&file)?;
        let is_regular = rustix::fs::FileType::from_raw_mode(about.st_mode).is_file();
        if !is_regular || about.st_uid != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(ErrorKind::InvalidData, "it is no file of the server's"));
        }
        Ok(file.into())
    }

    /// That it is not there any more is no error.
    pub(super) fn remove(&self, name: Name) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.fd, name.text(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Name {
    fn of(text: &str) -> Option<Self> {
        let (number, ending) = text.split_once('.')?;
        let number = u64::from_str_radix(number, 16).ok()?;
        let name = match ending {
            WHOLE => Self::Whole(number),
            BEGUN => Self::Begun(number),
            _ => return None,
        };
        (name.text() == text).then_some(name)
    }

    fn text(self) -> String {
        match self {
            Self::Whole(number) => format!("{number:016x}.{WHOLE}"),
            Self::Begun(number) => format!("{number:016x}.{BEGUN}"),
        }
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_server_looks_into_it_and_one_process_has_it() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let first = Directory::open(&path).unwrap().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(Directory::open(&path).unwrap().is_none());
        first.give_back();
        let second = Directory::open(&path).unwrap().unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
        drop(second);
        assert_eq!(Directory::open(&path).err().unwrap().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("cache");
        let directory = Directory::open(&path).unwrap().unwrap();
        for name in [
            "a",
            "1.response",
            "000000000000000G.response",
            "0000000000000001.response.x",
            "-000000000000001.begun",
        ] {
            fs::write(path.join(name), "x").unwrap();
        }
        drop(directory.create(7).unwrap());
        assert!(directory.create(7).is_err());
        assert_eq!(directory.names().unwrap(), [Name::Begun(7)]);
        directory.complete(7).unwrap();
        assert_eq!(directory.names().unwrap(), [Name::Whole(7)]);
        std::os::unix::fs::symlink("/etc/passwd", path.join("0000000000000008.response")).unwrap();
        assert!(directory.read(7).is_ok() && directory.read(8).is_err());
        directory.remove(Name::Whole(7)).unwrap();
        directory.remove(Name::Whole(7)).unwrap();
        fs::remove_dir_all(&path).unwrap();
        assert!(directory.is_gone());
    }
}
