//! The file of a history: one update a line, as JSON, behind a line that says what it is. It is written by a thread of its
//! own, so that a slow disk holds up nobody, and a full one is a warning.

use crate::update::Update;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The first line of every file.
const HEADING: &[u8] = b"{\"regent\":\"mercure history 1\"}\n";
/// Updates that may wait for the disk.
const MOST_WAITING: usize = 4096;
/// Between two tries to write a file anew.
const REWRITE_PAUSE: Duration = Duration::from_secs(5);
/// Bytes of a line at most; the longest update is shorter.
const LONGEST_LINE: u64 = 64 << 20;

/// Why a history cannot be kept in a file.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{path}: {cause}", path = .0.display(), cause = .1)]
    Io(PathBuf, io::Error),
    #[error("{path} is no history of Regent's: choose another path, or remove it", path = .0.display())]
    Foreign(PathBuf),
}

/// The way to the thread that writes. The thread ends with it.
pub(crate) struct Journal {
    writer: SyncSender<Entry>,
    /// Something is missing in the file, which is to be written anew.
    is_behind: Arc<AtomicBool>,
    /// Lines of the file.
    lines: usize,
    /// When it was last to be written anew. `None`: not yet.
    rewritten: Option<Instant>,
}

enum Entry {
    Append(Arc<Update>),
    /// All that the file is to hold.
    Rewrite(Vec<Arc<Update>>),
    /// All before this was carried out.
    Flush(oneshot::Sender<()>),
}

/// The file, as its thread has it.
struct Writer {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    length: u64,
    is_behind: Arc<AtomicBool>,
}

/// Where the history of a hub is whose configuration names this file: beside it, as that may be a database of another
/// server's, and with a dot in front, so that no file server hands it out.
pub(crate) fn file_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.jsonl"))
}

impl Journal {
    /// Opens the file, or makes it, and reads what is in it. `None`: another process has it.
    pub fn open(path: &Path) -> Result<Option<(Self, Vec<Update>)>, JournalError> {
        let fail = |cause| JournalError::Io(path.to_owned(), cause);
        let Some(file) = open_locked(path).map_err(fail)? else { return Ok(None) };
        let (updates, length) = read(&file, path)?;
        let is_behind = Arc::<AtomicBool>::default();
        let mut writer = Writer { path: path.to_owned(), file, length, is_behind: Arc::clone(&is_behind) };
        // What follows the last whole line was not written to its end.
        writer.file.set_len(length).map_err(fail)?;
        let (sender, entries) = mpsc::sync_channel(MOST_WAITING);
        let run = move || entries.into_iter().for_each(|entry| writer.carry_out(entry));
        std::thread::Builder::new().name("mercure-history".into()).spawn(run).map_err(fail)?;
        Ok(Some((Self { writer: sender, is_behind, lines: updates.len(), rewritten: None }, updates)))
    }

    /// `done` is told, or dropped, when all that was appended is in the file or never will be.
    pub fn flush(&self, done: oneshot::Sender<()>) {
        let _ = self.writer.try_send(Entry::Flush(done));
    }

    /// `kept`: how many updates the history has, this one among them; `all`: these.
    pub fn append(&mut self, update: &Arc<Update>, kept: usize, all: impl FnOnce() -> Vec<Arc<Update>>) {
        let is_long = self.lines > 2 * kept + 1000;
        if !is_long && !self.is_behind.load(Ordering::Relaxed) {
            self.lines += 1;
            if self.writer.try_send(Entry::Append(Arc::clone(update))).is_err() {
                self.is_behind.store(true, Ordering::Relaxed);
                tracing::warn!(
                    "the disk is too slow for the history of a Mercure hub: it is written again when it can be"
                );
            }
            return;
        }
        // A disk that is full is not asked again at once.
        if self.rewritten.is_some_and(|last| last.elapsed() < REWRITE_PAUSE) && !is_long {
            return;
        }
        self.rewritten = Some(Instant::now());
        // In order of being known: an error after this is one of the new file.
        self.is_behind.store(false, Ordering::Relaxed);
        match self.writer.try_send(Entry::Rewrite(all())) {
            Ok(()) => self.lines = kept,
            Err(_) => self.is_behind.store(true, Ordering::Relaxed),
        }
    }
}

impl Writer {
    fn carry_out(&mut self, entry: Entry) {
        let result = match entry {
            // The file is to be written anew; what comes before that need not be in it.
            Entry::Append(_) if self.is_behind.load(Ordering::Relaxed) => return,
            Entry::Append(update) => self.append(&update),
            Entry::Rewrite(updates) => self.rewrite(&updates),
            Entry::Flush(done) => {
                let _ = done.send(());
                Ok(())
            }
        };
        if let Err(error) = result {
            self.is_behind.store(true, Ordering::Relaxed);
            // No half line stays; if that fails too, reading the file leaves it out.
            let _ = self.file.set_len(self.length);
            tracing::warn!(%error, path = %self.path.display(), "the history of a Mercure hub cannot be written: updates are only in memory until it can");
        }
    }

    fn append(&mut self, update: &Update) -> io::Result<()> {
        let line = line(update)?;
        self.file.write_all(&line)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// The old file is there until the new one is whole.
    fn rewrite(&mut self, updates: &[Arc<Update>]) -> io::Result<()> {
        let path = self.path.with_extension("new");
        let file = options().open(&path)?;
        file.set_len(0)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut length = HEADING.len() as u64;
        let mut writer = BufWriter::new(&file);
        writer.write_all(HEADING)?;
        for update in updates {
            let line = line(update)?;
            writer.write_all(&line)?;
            length += line.len() as u64;
        }
        writer.flush()?;
        drop(writer);
        file.sync_data()?;
        fs::rename(&path, &self.path)?;
        (self.file, self.length) = (file, length);
        Ok(())
    }
}

fn line(update: &Update) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(update)?;
    line.push(b'\n');
    Ok(line)
}

/// What is private is for nobody else to read.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    options
}

/// `None`: another process has it.
fn open_locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = options().open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // It may have been replaced by a new one meanwhile.
        let (ours, there) = (file.metadata()?, fs::metadata(path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Some(file));
        }
    }
}

/// The updates, and the bytes of whole lines. What cannot be read ends the file.
fn read(file: &File, path: &Path) -> Result<(Vec<Update>, u64), JournalError> {
    let fail = |cause| JournalError::Io(path.to_owned(), cause);
    if file.metadata().map_err(fail)?.len() == 0 {
        let mut file = file;
        file.write_all(HEADING).map_err(fail)?;
        return Ok((Vec::new(), HEADING.len() as u64));
    }
    let (mut reader, mut updates, mut line) = (BufReader::new(file), Vec::new(), Vec::new());
    reader.by_ref().take(HEADING.len() as u64).read_until(b'\n', &mut line).map_err(fail)?;
    if line != HEADING {
        return Err(JournalError::Foreign(path.to_owned()));
    }
    let mut length = line.len() as u64;
    loop {
        line.clear();
        reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(fail)?;
        if line.is_empty() {
            return Ok((updates, length));
        }
        let update = line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice(line).ok());
        let Some(update) = update else {
            tracing::warn!(path = %path.display(), "the end of the history of a Mercure hub cannot be read, and is left out");
            return Ok((updates, length));
        };
        updates.push(update);
        length += line.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::Publication;

    fn update(id: &str) -> Arc<Update> {
        let publication = Publication {
            topics: vec!["a".into(), "b\"".into()],
            id: Some(id.into()),
            data: "x\ny".into(),
            private: true,
            ..Publication::default()
        };
        Arc::new(Update::new(publication).unwrap())
    }

    /// When the thread that writes has ended, the lock is free again.
    fn reopened(path: &Path) -> (Journal, Vec<Update>) {
        loop {
            if let Some(opened) = Journal::open(path).unwrap() {
                return opened;
            }
            std::thread::yield_now();
        }
    }

    fn ids(updates: &[Update]) -> Vec<&str> {
        updates.iter().map(Update::id).collect()
    }

    #[test]
    fn what_was_written_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = file_beside(&directory.path().join("mercure.db"));
        assert!(path.ends_with(".mercure.db.jsonl"));
        let (mut journal, updates) = reopened(&path);
        assert!(updates.is_empty());
        let (first, second) = (update("1"), update("2"));
        journal.append(&first, 1, Vec::new);
        journal.append(&second, 2, Vec::new);
        assert!(Journal::open(&path).unwrap().is_none(), "two have it");
        drop(journal);
        assert_eq!(
            reopened(&path).1,
            [update("1"), update("2")].map(|update| Arc::into_inner(update).unwrap())
        );
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn half_a_line_is_left_out_and_the_next_one_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h");
        for cut in 1..20 {
            let _ = fs::remove_file(&path);
            let (mut journal, _) = reopened(&path);
            journal.append(&update("1"), 1, Vec::new);
            journal.append(&update("2"), 2, Vec::new);
            drop(journal);
            let (journal, _) = reopened(&path);
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(file.metadata().unwrap().len() - cut).unwrap();
            drop(journal);
            let (mut journal, updates) = reopened(&path);
            assert_eq!(ids(&updates), ["1"]);
            journal.append(&update("3"), 2, Vec::new);
            drop(journal);
            assert_eq!(ids(&reopened(&path).1), ["1", "3"]);
        }
    }

    #[test]
    fn a_file_that_has_grown_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h");
        let (mut journal, _) = reopened(&path);
        for number in 0..3000 {
            let update = update(&number.to_string());
            journal.append(&update, 1, || vec![Arc::clone(&update)]);
        }
        drop(journal);
        let (_, updates) = reopened(&path);
        assert!(updates.len() < 1100 && updates.last().unwrap().id() == "2999", "{}", updates.len());
    }

    #[test]
    fn a_full_disk_is_made_up_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h");
        let file = options().open("/dev/full").unwrap();
        let is_behind = Arc::<AtomicBool>::default();
        let mut writer = Writer { path: path.clone(), file, length: 0, is_behind: Arc::clone(&is_behind) };
        writer.carry_out(Entry::Append(update("1")));
        assert!(is_behind.load(Ordering::Relaxed));
        is_behind.store(false, Ordering::Relaxed);
        writer.carry_out(Entry::Rewrite(vec![update("1"), update("2")]));
        writer.carry_out(Entry::Append(update("3")));
        drop(writer);
        assert_eq!(ids(&reopened(&path).1), ["1", "2", "3"]);
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("h");
        for content in ["bolt database", "{\"regent\":\"mercure history 2\"}\n", "{}\n"] {
            fs::write(&path, content).unwrap();
            assert!(matches!(Journal::open(&path), Err(JournalError::Foreign(_))));
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        let missing = directory.path().join("missing/h");
        assert!(matches!(Journal::open(&missing), Err(JournalError::Io(..))));
    }
}
