//! Small files that were read a moment ago.
//!
//! A file costs an `open`, an `fstat`, a read and a `close`, and its bytes are copied once more than nginx does with
//! `sendfile`, which needs a socket that hyper does not give away. Of a file in here all that is left is one `stat`,
//! which says whether it is still the same: an answer is never older than its file.

use crate::files::conditional::Validators;
use bytes::Bytes;
use nix::sys::time::TimeSpec;
use nix::time::ClockId;
use rustc_hash::FxHashMap;
use rustix::fs::Stat;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Larger files are read from the page cache, piece by piece.
pub(crate) const LARGEST: u64 = 256 * 1024;

/// Bytes in memory, in each of the two generations, with what a file costs beside its content.
const GENERATION: usize = 8 * 1024 * 1024;
const OVERHEAD: usize = 256;

/// A file that was changed later than this, in seconds, may be changed again without a difference that shows: the
/// clocks of file systems are that coarse (that of FAT goes by two seconds).
const SETTLED: i64 = 2;

/// Shared by all files of a listening address.
#[derive(Debug, Default)]
pub(crate) struct FileCache(Mutex<Generations>);

/// A file's content, and what names its state in HTTP.
#[derive(Debug, Clone)]
pub(crate) struct CachedFile {
    pub(crate) content: Bytes,
    pub(crate) validators: Validators,
}

/// What was asked for since the last change of generations, and before: the old ones go when the young are too many.
/// Hashed without a key: what a client can put in is only what is on the disk.
#[derive(Debug, Default)]
struct Generations {
    young: FxHashMap<Vec<u8>, Entry>,
    old: FxHashMap<Vec<u8>, Entry>,
    /// What the young ones take.
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    state: State,
    file: CachedFile,
}

/// Changes with every change of a file: the kernel sets the last field, which no program can set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    device: u64,
    inode: u64,
    size: i64,
    changed: (i64, u64),
}

impl FileCache {
    /// The file at this path, if it is known and, by what `look` says of it now, the same.
    pub(crate) fn get(&self, path: &[u8], look: impl FnOnce() -> Option<Stat>) -> Option<CachedFile> {
        let entry = self.lock().find(path)?;
        (State::of(&look()?) == entry.state).then_some(entry.file)
    }

    /// Keeps what was read after `stat` was made.
    pub(crate) fn put(&self, path: &[u8], stat: &Stat, file: CachedFile) {
        let now = ClockId::CLOCK_REALTIME.now().expect("invariant: Linux has this clock");
        if is_settled(stat, now) {
            self.lock().insert(path.to_vec(), Entry { state: State::of(stat), file });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn find(&mut self, path: &[u8]) -> Option<Entry> {
        if let Some(entry) = self.young.get(path) {
            return Some(entry.clone());
        }
        let (path, entry) = self.old.remove_entry(path)?;
        self.insert(path, entry.clone());
        Some(entry)
    }

    fn insert(&mut self, path: Vec<u8>, entry: Entry) {
        let cost = |path: &[u8], entry: &Entry| OVERHEAD + path.len() + entry.file.content.len();
        let added = cost(&path, &entry);
        if self.bytes + added > GENERATION {
            self.old = mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += added;
        if let Some(replaced) = self.young.get(&path) {
            self.bytes -= cost(&path, replaced);
        }
        self.young.insert(path, entry);
    }
}

impl State {
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

fn is_settled(stat: &Stat, now: TimeSpec) -> bool {
    stat.st_ctime < now.tv_sec() - SETTLED
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn stat(path: &Path) -> Option<Stat> {
        rustix::fs::stat(path).ok()
    }

    /// As if the file had been changed long ago.
    fn settled(path: &Path) -> Stat {
        let mut stat = stat(path).unwrap();
        stat.st_ctime -= 60;
        stat
    }

    fn cached(stat: &Stat, content: &'static [u8]) -> CachedFile {
        CachedFile { content: Bytes::from_static(content), validators: Validators::of(stat) }
    }

    #[test]
    fn a_file_is_known_until_it_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.css");
        fs::write(&path, "one").unwrap();
        let (cache, stat) = (FileCache::default(), settled(&path));
        assert!(cache.get(b"/a.css", || panic!("it is not known yet")).is_none());
        cache.put(b"/a.css", &stat, cached(&stat, b"one"));
        assert_eq!(cache.get(b"/a.css", || Some(stat)).unwrap().content, "one");
        let changes: [fn(&mut Stat); 4] =
            [|s| s.st_dev += 1, |s| s.st_ino += 1, |s| s.st_size += 1, |s| s.st_ctime_nsec ^= 1];
        for change in changes {
            let mut changed = stat;
            change(&mut changed);
            assert!(cache.get(b"/a.css", || Some(changed)).is_none());
        }
        assert!(cache.get(b"/a.css", || None).is_none());
    }

    #[test]
    fn a_file_that_was_just_changed_may_change_again_unseen_and_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.css");
        fs::write(&path, "one").unwrap();
        let (cache, stat) = (FileCache::default(), stat(&path).unwrap());
        cache.put(b"/a.css", &stat, cached(&stat, b"one"));
        assert!(cache.get(b"/a.css", || Some(stat)).is_none());
        let at = |seconds| TimeSpec::new(stat.st_ctime + seconds, 0);
        assert!(!is_settled(&stat, at(-10)) && !is_settled(&stat, at(2)) && is_settled(&stat, at(3)));
    }

    #[test]
    fn memory_is_bounded_and_what_is_asked_for_stays() {
        let directory = tempfile::tempdir().unwrap();
        let stat = settled(directory.path());
        let cache = FileCache::default();
        let content: &'static [u8] = &[0; LARGEST as usize];
        for number in 0..10 * GENERATION / content.len() {
            cache.put(format!("/{number}").as_bytes(), &stat, cached(&stat, content));
            cache.put(b"/popular", &stat, cached(&stat, b"popular"));
            let generations = cache.lock();
            let kept = generations.young.values().chain(generations.old.values());
            assert!(kept.map(|entry| entry.file.content.len()).sum::<usize>() <= 2 * GENERATION);
            assert!(generations.bytes <= GENERATION);
            drop(generations);
            assert!(cache.get(b"/popular", || Some(stat)).is_some());
        }
        assert!(cache.get(b"/0", || Some(stat)).is_none());
    }

    #[test]
    fn a_file_that_is_read_anew_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let stat = settled(directory.path());
        let cache = FileCache::default();
        cache.put(b"/a", &stat, cached(&stat, b"one"));
        let bytes = cache.lock().bytes;
        cache.put(b"/a", &stat, cached(&stat, b"two"));
        assert_eq!(cache.lock().bytes, bytes);
        assert_eq!(cache.get(b"/a", || Some(stat)).unwrap().content, "two");
    }
}
