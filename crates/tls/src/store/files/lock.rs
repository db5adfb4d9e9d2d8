//! Locks that several processes respect, Caddy's too: files as of certmagic's `FileStorage.Lock`.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// How often its holder says that it still holds the lock (certmagic's `lockFreshnessInterval`).
const REFRESH: Duration = Duration::from_secs(5);
/// After which time without that a holder counts as dead.
const STALE: Duration = Duration::from_secs(10);
/// How often a lock that another holds is tried.
const POLL: Duration = Duration::from_millis(100);
/// What is done under a lock takes milliseconds; Caddy may hold one while it talks to a CA.
const PATIENCE: Duration = Duration::from_secs(60);

/// A wait that an operator would wonder about.
const WORTH_SAYING: Duration = Duration::from_secs(1);

/// Released when it is dropped.
#[derive(Debug)]
pub(in crate::store) struct Lock {
    path: PathBuf,
    created: OffsetDateTime,
    /// Its end ends the thread.
    refresher: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    #[serde(with = "time::serde::rfc3339")]
    created: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339", default = "never")]
    updated: OffsetDateTime,
}

fn never() -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH
}

impl Lock {
    /// Blocks the thread.
    pub(super) fn take(path: PathBuf) -> Result<Self, Error> {
        let begun = Instant::now();
        let mut is_said = false;
        loop {
            match Self::try_take(&path) {
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) => {}
                Err(error) => return Err(Error::write(path, error)),
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Locked { path, seconds: PATIENCE.as_secs() });
            }
            if begun.elapsed() > WORTH_SAYING && !std::mem::replace(&mut is_said, true) {
                tracing::info!(lock = %path.display(), "waiting for a lock of another process");
            }
            std::thread::sleep(POLL);
        }
    }

    /// `None` while another holds it.
    pub(super) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let now = OffsetDateTime::now_utc();
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(file) => Self::of_new(path, file, now).map(Some),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove_if_stale(path)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn of_new(path: &Path, file: File, now: OffsetDateTime) -> io::Result<Self> {
        // An empty lock would be taken for that of a living process for a while.
        write(&file, &Content { created: now, updated: now }).inspect_err(|_| {
            let _ = std::fs::remove_file(path);
        })?;
        let mut lock = Self { path: path.to_owned(), created: now, refresher: None };
        let (stop, stopped) = channel();
        let path = path.to_owned();
        let refresher = std::thread::Builder::new().name("store-lock".into()).spawn(move || {
            while stopped.recv_timeout(REFRESH) == Err(RecvTimeoutError::Timeout) {
                refresh(&path, now);
            }
        })?;
        lock.refresher = Some((stop, refresher));
        Ok(lock)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.refresher.take() {
            drop(stop);
            // Its panic would have been reported by the thread.
            let _ = thread.join();
        }
        // Who was stopped for longer than STALE may find the lock of another here.
        if read(&self.path).is_some_and(|content| content.created == self.created) {
            // If it cannot be removed, it is stale soon.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Keeps the lock from being stale. A failure shows as a stale lock.
fn refresh(path: &Path, created: OffsetDateTime) {
    let is_ours = read(path).is_some_and(|content| content.created == created);
    if is_ours && let Ok(file) = OpenOptions::new().write(true).truncate(true).open(path) {
        let _ = write(&file, &Content { created, updated: OffsetDateTime::now_utc() });
    }
}

fn write(mut file: &File, content: &Content) -> io::Result<()> {
    file.write_all(&serde_json::to_vec(content)?)?;
    file.sync_all()
}

fn read(path: &Path) -> Option<Content> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Only one process at a time looks and removes, so that none removes the fresh lock of another who was faster.
fn remove_if_stale(path: &Path) -> io::Result<()> {
    if !is_stale(path) {
        return Ok(());
    }
    let directory = File::open(path.parent().expect("invariant: a lock is in a directory"))?;
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive)?;
    if is_stale(path) {
        tracing::warn!(lock = %path.display(), "removed a lock whose holder has died");
        // Caddy may be faster.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Without valid content (its holder died while it wrote, or is about to write), the file's age counts.
fn is_stale(path: &Path) -> bool {
    match read(path) {
        // One of the future is that of a clock that was set back since.
        Some(content) => (OffsetDateTime::now_utc() - content.updated.max(content.created)).abs() > STALE,
        None => std::fs::metadata(path)
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > STALE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn content(age: Duration) -> Vec<u8> {
        let then = OffsetDateTime::now_utc() - age;
        serde_json::to_vec(&Content { created: then, updated: then }).unwrap()
    }

    #[test]
    fn threads_hold_it_one_after_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.lock");
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _lock = Lock::take(path.clone()).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!(!path.exists());
    }

    #[test]
    fn a_fresh_one_of_another_process_is_respected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.lock");
        std::fs::write(&path, content(Duration::from_secs(9))).unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none());
        assert!(path.exists());
    }

    #[test]
    fn the_one_of_a_dead_process_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.lock");
        std::fs::write(&path, content(Duration::from_secs(11))).unwrap();
        drop(Lock::take(path.clone()).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn one_of_a_clock_that_was_set_back_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.lock");
        let then = OffsetDateTime::now_utc() + Duration::from_secs(3600);
        std::fs::write(&path, serde_json::to_vec(&Content { created: then, updated: then }).unwrap())
            .unwrap();
        drop(Lock::take(path.clone()).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn a_lock_as_go_writes_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.lock");
        let text =
            r#"{"created":"2026-11-22T21:19:18.123456789+01:00","updated":"2026-11-22T21:19:23.5+01:00"}"#;
        std::fs::write(&path, text).unwrap();
        assert!(read(&path).is_some());
    }

    #[test]
    fn a_lock_that_became_anothers_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.lock");
        let lock = Lock::take(path.clone()).unwrap();
        std::fs::write(&path, content(Duration::ZERO)).unwrap();
        drop(lock);
        assert!(path.exists());
    }
}
