//! The storage directory, in the layout of certmagic (`filestorage.go`, `storage.go`) and Caddy (`modules/caddypki`), so
//! that a directory of Caddy or FrankenPHP goes on being used.

mod lock;

pub(super) use lock::Lock;

use super::safe;
use crate::{Error, crypto};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Keys are paths below the root, with slashes.
#[derive(Debug, Clone)]
pub(super) struct Files {
    root: PathBuf,
}

impl Files {
    /// Nothing is made before something is written.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// `None` if there is no such file.
    pub fn read(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path(key);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::read(path, error)),
        }
    }

    /// Whoever reads meanwhile sees the old content or the new, also after a power failure.
    pub fn write(&self, key: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write_all(&[(key, bytes)])
    }

    /// As [`Self::write`], in this order. A disk that is full leaves all of them as they were: a key without its
    /// certificate would spoil both.
    pub fn write_all(&self, files: &[(&str, &[u8])]) -> Result<(), Error> {
        let new = files.iter().map(|(key, bytes)| NewFile::write(self.path(key), bytes));
        let new = new.collect::<Result<Vec<_>, _>>()?;
        new.into_iter().try_for_each(NewFile::put_in_place)
    }

    /// Nothing if there is no such file.
    pub fn remove(&self, key: &str) -> Result<(), Error> {
        let path = self.path(key);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::write(path, error)),
            _ => Ok(()),
        }
    }

    /// `None` while another process or thread holds it.
    pub fn try_lock(&self, name: &str) -> Result<Option<Lock>, Error> {
        let path = self.lock_path(name)?;
        Lock::try_take(&path).map_err(|error| Error::write(path, error))
    }

    /// Waits for other processes and threads that hold it.
    pub fn lock(&self, name: &str) -> Result<Lock, Error> {
        Lock::take(self.lock_path(name)?)
    }

    fn lock_path(&self, name: &str) -> Result<PathBuf, Error> {
        let directory = self.path("locks");
        make_directory(&directory).map_err(|error| Error::write(&directory, error))?;
        Ok(directory.join(format!("{}.lock", safe(name))))
    }
}

/// One that is whole, but not in its place yet; dropped before that, it is gone.
struct NewFile {
    temporary: PathBuf,
    path: PathBuf,
}

impl NewFile {
    fn write(path: PathBuf, bytes: &[u8]) -> Result<Self, Error> {
        let directory = parent(&path);
        make_directory(directory).map_err(|error| Error::write(directory, error))?;
        let new = Self { temporary: temporary_beside(&path), path };
        new.fill(bytes).map_err(|error| Error::write(&new.path, error))?;
        Ok(new)
    }

    fn fill(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn put_in_place(self) -> Result<(), Error> {
        let place = || {
            std::fs::rename(&self.temporary, &self.path)?;
            File::open(parent(&self.path))?.sync_all()
        };
        place().map_err(|error| Error::write(&self.path, error))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // It has been renamed, or what failed is told and a leftover is only untidy.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn parent(path: &Path) -> &Path {
    path.parent().expect("invariant: a key is below the root")
}

fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".tmp-{}", crypto::hex(&crypto::random::<8>())));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_written_is_for_the_owner_alone_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = Files::new(directory.path().join("new"));
        store.write("certificates/local/a/a.key", b"one").unwrap();
        store.write("certificates/local/a/a.key", b"two").unwrap();
        assert_eq!(store.read("certificates/local/a/a.key").unwrap().unwrap(), b"two");
        assert_eq!(mode(&store.path("certificates/local/a/a.key")), 0o600);
        assert_eq!(mode(&store.path("certificates")), 0o700);
        assert_eq!(mode(&store.path("")), 0o700);
        assert_eq!(std::fs::read_dir(store.path("certificates/local/a")).unwrap().count(), 1);
    }

    #[test]
    fn files_that_belong_together_stay_as_they_were_if_one_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let store = Files::new(directory.path());
        store.write_all(&[("a/key", b"one"), ("a/crt", b"one")]).unwrap();
        std::fs::write(directory.path().join("b"), b"a file where a directory should be").unwrap();
        store.write_all(&[("a/key", b"two"), ("b/crt", b"two")]).unwrap_err();
        assert_eq!(store.read("a/key").unwrap().unwrap(), b"one");
        assert_eq!(std::fs::read_dir(directory.path().join("a")).unwrap().count(), 2);
    }

    #[test]
    fn a_missing_file_is_none_and_an_unreadable_one_an_error_with_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let store = Files::new(directory.path());
        assert!(store.read("nothing").unwrap().is_none());
        std::fs::create_dir(directory.path().join("folder")).unwrap();
        let error = store.read("folder").unwrap_err().to_string();
        assert!(error.contains("folder"), "{error}");
    }
}
