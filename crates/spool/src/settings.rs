//! What all spools have in common: their bounds, and the directory of their files.

use crate::quota::Quota;
use regent_config as config;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// All spools together may hold as many times the memory that one may: 256 MiB by default, with the beginnings of bodies
/// that are not spooled yet and what is being read from files. Beyond it they use files.
const MEMORY_SHARES: u64 = 256;
/// All spool files together may be as many times as large as one may be: 8 GiB by default. Beyond it spools are full.
const FILE_SHARES: u64 = 8;

/// Bounds of spools, and what they have of them together. One for the whole server.
#[derive(Debug)]
pub struct Spools {
    /// Bytes that each holds in memory. (One that is empty takes a chunk in any case if it has no file.)
    pub memory: u64,
    /// Bytes that each holds in a file.
    pub file: u64,
    /// Bytes in memory of all together.
    pub all_memory: Arc<Quota>,
    /// Bytes in files of all together.
    pub all_files: Arc<Quota>,
    directory: PathBuf,
    /// Files that could not be made, written or read.
    failures: AtomicU64,
}

/// What a file that fails costs.
#[derive(Clone, Copy)]
pub(crate) enum Failed {
    Request,
    /// Its writer waits for its reader instead.
    Wait,
}

/// The configured directory cannot hold files.
#[derive(Debug, thiserror::Error)]
#[error(
    "spool files cannot be made in {}: {cause}; make it a directory that the server may write to, or name another one \
     with `spool {{ directory }}`", .directory.display()
)]
pub struct SpoolError {
    directory: PathBuf,
    cause: io::Error,
}

impl Spools {
    /// Tries the directory. One that is configured has to work; without the system's own, which a container may lack,
    /// spools have memory only.
    pub fn open(bounds: &config::Spool) -> Result<Arc<Self>, SpoolError> {
        let directory = bounds.directory.clone().unwrap_or_else(std::env::temp_dir);
        let file = match probe(&directory, bounds.file) {
            Ok(()) => bounds.file,
            Err(cause) if bounds.directory.is_some() => return Err(SpoolError { directory, cause }),
            Err(error) => {
                warn_of_missing_directory(&directory, &error);
                0
            }
        };
        Ok(Arc::new(Self {
            memory: bounds.memory,
            file,
            all_memory: Quota::new(bounds.memory.saturating_mul(MEMORY_SHARES)),
            all_files: Quota::new(file.saturating_mul(FILE_SHARES)),
            directory,
            failures: AtomicU64::new(0),
        }))
    }

    /// A file without a name, whose space is free again when it is closed.
    pub fn create_file(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.directory)
    }

    /// Tells the operator what to do about a file that failed. A full disk fails for many requests at once, which must
    /// not become a flood of log lines: the first ones and every thousandth are logged.
    pub(crate) fn note_failure(&self, error: &io::Error, what: Failed) {
        let count = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if count <= 10 || count.is_multiple_of(1000) {
            let what = match what {
                Failed::Request => "a request was given up because its spool file failed",
                Failed::Wait => "a spool file failed, so the script of a response waits for its client",
            };
            tracing::error!(
                directory = %self.directory.display(), %error, count,
                "{what}; make room in the directory, see that the server may write to it, or name another one with \
                 `spool {{ directory }}`"
            );
        }
    }
}

fn probe(directory: &Path, size: u64) -> io::Result<()> {
    if size == 0 { Ok(()) } else { tempfile::tempfile_in(directory).map(drop) }
}

fn warn_of_missing_directory(directory: &Path, error: &io::Error) {
    tracing::warn!(
        directory = %directory.display(), %error,
        "spool files cannot be made, so slow clients of large bodies hold PHP threads; name a directory that the server \
         may write to with `spool {{ directory }}`, or set TMPDIR"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_directory_has_to_work() {
        let directory = tempfile::tempdir().unwrap();
        let bounds = |path: &Path| config::Spool { directory: Some(path.into()), ..config::Spool::default() };
        assert!(Spools::open(&bounds(directory.path())).is_ok());
        let error = Spools::open(&bounds(&directory.path().join("missing"))).unwrap_err().to_string();
        assert!(error.contains("missing") && error.contains("spool { directory }"), "{error}");
    }

    #[test]
    fn without_files_no_directory_is_needed() {
        let bounds = config::Spool { file: 0, directory: Some("/missing".into()), memory: 1 };
        assert_eq!(Spools::open(&bounds).unwrap().file, 0);
    }

    #[test]
    fn files_have_no_names() {
        let directory = tempfile::tempdir().unwrap();
        let bounds = config::Spool { directory: Some(directory.path().into()), ..config::Spool::default() };
        let _file = Spools::open(&bounds).unwrap().create_file().unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
