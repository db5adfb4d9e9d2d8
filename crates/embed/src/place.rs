//! Where an application is unpacked to: a directory that nobody else can write to, or put in its place.

use crate::EmbedError;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatVfsMountFlags};
use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Within the cache of the user.
const OWN: &str = "regent";
const WRITABLE_BY_OTHERS: u32 = 0o022;
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The directory that holds unpacked applications, which is ours alone.
#[derive(Debug)]
pub struct Place(PathBuf);

/// `$CACHE_DIRECTORY`, which systemd sets for a service that asks for one; `$XDG_CACHE_HOME/regent`; `~/.cache/regent`. Never
/// a directory that everybody can write to.
pub fn default_cache() -> Result<PathBuf, EmbedError> {
    choose(|name| env::var_os(name).filter(|value| !value.is_empty()))
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, EmbedError> {
    // A service may have several: the first.
    let of_service = variable("CACHE_DIRECTORY").and_then(|paths| env::split_paths(&paths).next());
    let of_user = || variable("XDG_CACHE_HOME").map(|cache| Path::new(&cache).join(OWN));
    let usual = || variable("HOME").map(|home| Path::new(&home).join(".cache").join(OWN));
    // A relative path would be another one in each directory.
    [of_service, of_user(), usual()]
        .into_iter()
        .flatten()
        .find(|path| path.is_absolute())
        .ok_or(EmbedError::NoCache)
}

impl Place {
    /// Makes it if need be.
    pub fn open(directory: &Path) -> Result<Self, EmbedError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(EmbedError::file("making the directory", directory))?;
        // Links on the way are somebody's decision, but what they lead to counts.
        let directory =
            directory.canonicalize().map_err(EmbedError::file("looking at the directory", directory))?;
        for ancestor in directory.ancestors().skip(1) {
            let about = fs::metadata(ancestor).map_err(EmbedError::file("looking at", ancestor))?;
            let is_open = about.mode() & WRITABLE_BY_ALL != 0 && about.mode() & STICKY == 0;
            if is_open {
                let reason = "everybody can put another directory in its place";
                return Err(EmbedError::Unsafe { path: ancestor.to_owned(), reason });
            }
        }
        check_own(&directory)?;
        let place = Self(directory);
        place.check_programs_can_run()?;
        Ok(place)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn check_programs_can_run(&self) -> Result<(), EmbedError> {
        let about = rustix::fs::statvfs(&self.0);
        let about = about.map_err(|error| EmbedError::file("looking at", &self.0)(error.into()))?;
        match about.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            true => Err(EmbedError::Unsafe {
                path: self.0.clone(),
                reason: "it is mounted `noexec`, so that PHP could not be started from it",
            }),
            false => Ok(()),
        }
    }
}

/// A directory, and not a link to one, of this user, that nobody else can write to.
pub(crate) fn check_own(path: &Path) -> Result<(), EmbedError> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let looked_at = rustix::fs::open(path, flags, Mode::empty()).and_then(rustix::fs::fstat);
    let about =
        looked_at.map_err(|error| EmbedError::file("looking at the directory", path)(error.into()))?;
    let complain = |reason| Err(EmbedError::Unsafe { path: path.to_owned(), reason });
    if about.st_uid != rustix::process::geteuid().as_raw() {
        return complain("it is another user's");
    }
    if about.st_mode & WRITABLE_BY_OTHERS != 0 {
        return complain("others can write to it (chmod go-w)");
    }
    Ok(())
}

/// Whether something is there, whatever it is.
pub(crate) fn is_there(path: &Path) -> Result<bool, EmbedError> {
    match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(about) => Ok(FileType::from_raw_mode(about.st_mode) != FileType::Unknown),
        Err(error) if std::io::Error::from(error).kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(EmbedError::file("looking at", path)(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_cache_is_the_service_s_or_the_user_s_and_never_everybody_s() {
        let chosen = |set: &[(&str, &str)]| {
            choose(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())).ok()
        };
        let home = ("HOME", "/home/me");
        let xdg = ("XDG_CACHE_HOME", "/caches");
        assert_eq!(chosen(&[home]), Some("/home/me/.cache/regent".into()));
        assert_eq!(chosen(&[home, xdg]), Some("/caches/regent".into()));
        assert_eq!(chosen(&[home, xdg, ("CACHE_DIRECTORY", "/var/cache/a:/b")]), Some("/var/cache/a".into()));
        assert_eq!(chosen(&[("XDG_CACHE_HOME", "relative"), home]), Some("/home/me/.cache/regent".into()));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused_and_so_is_a_link_in_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path().join("a/cache");
        let reason = |path: &Path| match Place::open(path) {
            Err(EmbedError::Unsafe { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };
        Place::open(&cache).unwrap();
        assert_eq!(fs::metadata(&cache).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(reason(&cache), "others can write to it (chmod go-w)");
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(directory.path().join("a"), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(reason(&cache), "everybody can put another directory in its place");
        fs::set_permissions(directory.path().join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("cache", directory.path().join("a/link")).unwrap();
        assert!(
            check_own(&directory.path().join("a/link")).is_err(),
            "an application's directory is no link"
        );
        assert!(is_there(&directory.path().join("a/link")).unwrap());
        assert!(!is_there(&directory.path().join("a/none")).unwrap());
    }
}
