//! The thread that opens the directory, reads what it holds, and writes and removes files.

use super::Shared;
use super::directory::{Directory, Name};
use super::file_body::FileBody;
use super::format::{self, Encoded, Known};
use super::index::{Entry, Use};
use super::jobs::{Job, Stage, Write};
use crate::key::Key;
use crate::stored::{Stored, StoredBody};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// Between two tries to have the directory that another process has, and that cannot be used.
const BUSY_PAUSE: Duration = Duration::from_millis(250);
const BROKEN_PAUSE: Duration = Duration::from_secs(2);
/// Files that are looked at between two looks at what is to be done.
const AT_ONCE: usize = 64;
/// A part of what is there that makes room when the disk is full.
const PART: u64 = 16;

/// Until the store has gone.
pub(super) fn run(shared: &Arc<Shared>) {
    while let Some(directory) = open(shared) {
        let directory = Arc::new(directory);
        let ended = Writer { shared, directory: &directory, paused_until: None }.work();
        // What has been read lives on in memory.
        *shared.directory.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
        shared.index().clear();
        shared.jobs.clear();
        if ended == Left::Ended {
            return;
        }
        shared.jobs.enter(Stage::Closed);
    }
}

/// Waits until the directory can be used. `None`: nobody needs it any more.
fn open(shared: &Shared) -> Option<Directory> {
    let mut is_told = false;
    loop {
        if shared.jobs.stage() >= Stage::Closing {
            shared.jobs.enter(Stage::GivenBack);
            return None;
        }
        let pause = match Directory::open(&shared.options.directory) {
            Ok(Some(directory)) => {
                shared.went_well();
                if is_told {
                    let directory = shared.options.directory.display();
                    tracing::info!(%directory, "this process has the directory of the cache now");
                }
                return Some(directory);
            }
            Ok(None) => {
                if !is_told {
                    let directory = shared.options.directory.display();
                    tracing::warn!(%directory, "another process has the directory of the cache: until it ends, the cache of this one goes on in memory");
                }
                is_told = true;
                BUSY_PAUSE
            }
            Err(error) => {
                shared.failed(&error, "cannot be used");
                BROKEN_PAUSE
            }
        };
        shared.jobs.pause(pause);
    }
}

/// Why the thread has done with a directory.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    /// It has been removed.
    Gone,
    Ended,
}

struct Writer<'a> {
    shared: &'a Arc<Shared>,
    directory: &'a Arc<Directory>,
    /// After a failure.
    paused_until: Option<Instant>,
}

impl Writer<'_> {
    fn work(mut self) -> Left {
        let mut files = self.begin();
        loop {
            let is_done = self.look_at(&mut files);
            let until = (!is_done).then(Instant::now);
            let Some(job) = self.shared.jobs.next(until) else { continue };
            match job {
                Job::Remove(names) => names.into_iter().for_each(|name| self.remove(name)),
                Job::Write(write) => self.write(&write),
                Job::GiveBack => {
                    files.clear();
                    self.directory.give_back();
                    self.shared.jobs.enter(Stage::GivenBack);
                }
                Job::End => return Left::Ended,
            }
            if self.directory.is_gone() {
                self.shared.failed(&ErrorKind::NotFound.into(), "has been removed");
                return Left::Gone;
            }
        }
    }

    /// Opens it for others, and returns the files that are there, the newest first.
    fn begin(&self) -> Vec<u64> {
        let names = self.directory.names().unwrap_or_else(|error| {
            self.shared.failed(&error, "cannot be read");
            Vec::new()
        });
        let (mut files, mut last) = (Vec::new(), 0);
        for name in names {
            match name {
                Name::Whole(number) => files.push(number),
                Name::Begun(_) => self.remove(name),
            }
            let (Name::Whole(number) | Name::Begun(number)) = name;
            last = last.max(number);
        }
        files.sort_unstable_by(|one, other| other.cmp(one));
        self.shared.number.fetch_max(last.saturating_add(1), Ordering::Relaxed);
        let mut directory = self.shared.directory.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *directory = Some(Arc::clone(self.directory));
        self.shared.jobs.enter(Stage::Open);
        files
    }

    /// Learns of some of the files, the oldest first. `true`: there are no more.
    fn look_at(&self, files: &mut Vec<u64>) -> bool {
        for _ in 0..AT_ONCE {
            let Some(number) = files.pop() else { return true };
            match self.entry_of(number) {
                Ok(entry) => self.add_known(number, entry),
                Err(error) => {
                    tracing::debug!(%error, number, "a file of the cache is of no use");
                    self.remove(Name::Whole(number));
                }
            }
        }
        false
    }

    fn entry_of(&self, number: u64) -> io::Result<(Entry, Stored)> {
        let file = self.directory.read(number)?;
        let (heading, known) = format::read(&file)?;
        let length = file.metadata()?.len();
        let body = StoredBody::File(FileBody::of(file, heading.body, heading.body_sum));
        let (key, stored) = known.with(body).ok_or_else(format::torn)?;
        if stored.terms.is_over(SystemTime::now()) && stored.conditions().next().is_none() {
            return Err(io::Error::other("it is over"));
        }
        Ok((self.entry(key, &stored, length), stored))
    }

    /// Adds a file of before, unless it has been purged since the start, or there is a newer one.
    fn add_known(&self, number: u64, (entry, stored): (Entry, Stored)) {
        let past = self.shared.past();
        let is_purged = past.concerns(0, &entry.key, &entry.tags);
        let mut index = self.shared.index();
        if is_purged || index.has(&entry.key, &stored.selection, entry.since) {
            drop((index, past));
            return self.remove(Name::Whole(number));
        }
        let gone = index.add(number, entry);
        drop((index, past));
        self.evict(gone);
    }

    fn entry(&self, key: Key, stored: &Stored, length: u64) -> Entry {
        let (_, varied) = stored.selection.parts();
        Entry {
            key,
            varied: varied.iter().map(|(name, _)| name.clone()).collect(),
            selection: self.shared.index().hash(&stored.selection),
            tags: stored.tags.clone(),
            length,
            since: stored.terms.since(),
            used: Use::NotYet,
        }
    }

    fn write(&mut self, write: &Write) {
        let now = Instant::now();
        let is_purged = self.shared.past().concerns(write.purges, &write.key, &write.stored.tags);
        if is_purged || self.paused_until.is_some_and(|until| now < until) {
            return self.shared.counts.dropped.add_one();
        }
        match self.try_write(write) {
            Ok(()) => {
                self.paused_until = None;
                self.shared.went_well();
            }
            Err(error) => {
                if is_full(&error) {
                    let bytes = self.shared.options.bytes / PART;
                    let gone = self.shared.index().shrink(bytes);
                    self.evict(gone);
                }
                self.shared.failed(&error, "cannot be written");
                self.paused_until = Some(now + BROKEN_PAUSE);
            }
        }
    }

    fn try_write(&self, Write { key, stored, purges }: &Write) -> io::Result<()> {
        let known = Known::new(key, stored).encoded()?;
        let length = format::length(stored.body.len(), &known);
        let number = match &stored.body {
            StoredBody::File(FileBody { begun: Some(begun), sum, .. }) => match begun.keep() {
                Some((directory, number)) => {
                    let written = complete(directory, number, stored, *sum, &known);
                    self.unless_written(number, written)?
                }
                // It was written when it came, and is found to be good still.
                None => self.copy(stored, &known, length)?,
            },
            _ => self.copy(stored, &known, length)?,
        };
        let Some(number) = number else {
            self.shared.counts.dropped.add_one();
            return Ok(());
        };
        self.publish(number, self.entry(key.clone(), stored, length), *purges);
        Ok(())
    }

    /// Writes all of it. `None`: there is no room.
    fn copy(&self, stored: &Stored, known: &Encoded, length: u64) -> io::Result<Option<u64>> {
        let Some(gone) = self.shared.index().begin(length) else { return Ok(None) };
        self.evict(gone);
        let number = self.shared.next_number();
        let written = self.directory.create(number).and_then(|file| {
            let sum = write_body(&file, &stored.body)?;
            format::finish(&file, stored.body.len(), sum, known)?;
            self.sync(&file, stored)?;
            self.directory.complete(number)
        });
        self.shared.index().end(length);
        self.unless_written(number, written)
    }

    fn unless_written(&self, number: u64, written: io::Result<()>) -> io::Result<Option<u64>> {
        written.inspect_err(|_| self.remove(Name::Begun(number))).map(|()| Some(number))
    }

    /// The sum of what does not go into memory again is not looked at.
    fn sync(&self, file: &File, stored: &Stored) -> io::Result<()> {
        if stored.body.len() > self.shared.memory_object { file.sync_data() } else { Ok(()) }
    }

    /// Lets it be found, unless it has been purged meanwhile.
    fn publish(&self, number: u64, entry: Entry, purges: u64) {
        let past = self.shared.past();
        if past.concerns(purges, &entry.key, &entry.tags) {
            drop(past);
            return self.remove(Name::Whole(number));
        }
        let gone = self.shared.index().add(number, entry);
        drop(past);
        self.shared.counts.writes.add_one();
        self.evict(gone);
    }

    fn evict(&self, gone: Vec<u64>) {
        self.shared.counts.evictions.add(gone.len() as u64);
        gone.into_iter().for_each(|number| self.remove(Name::Whole(number)));
    }

    fn remove(&self, name: Name) {
        if let Err(error) = self.directory.remove(name) {
            self.shared.failed(&error, "cannot be written");
        }
    }
}

/// Completes a file that a body has been spilled into.
fn complete(
    directory: &Directory,
    number: u64,
    stored: &Stored,
    sum: u32,
    known: &Encoded,
) -> io::Result<()> {
    let file = directory.begun(number)?;
    format::finish(&file, stored.body.len(), sum, known)?;
    file.sync_data()?;
    directory.complete(number)
}

/// Returns the sum of it.
fn write_body(file: &File, body: &StoredBody) -> io::Result<u32> {
    match body {
        StoredBody::Memory(rope) => {
            let (mut sum, mut at) = (crc32fast::Hasher::new(), format::BODY);
            for block in rope.slice(0, rope.len()) {
                file.write_all_at(&block, at)?;
                sum.update(&block);
                at += block.len() as u64;
            }
            Ok(sum.finalize())
        }
        StoredBody::File(body) => {
            let mut source = File::from(body.fd().try_clone()?);
            source.seek(SeekFrom::Start(body.offset(0)))?;
            let mut target = file;
            target.seek(SeekFrom::Start(format::BODY))?;
            let copied = io::copy(&mut source.take(body.len()), &mut target)?;
            if copied == body.len() { Ok(body.sum) } else { Err(ErrorKind::UnexpectedEof.into()) }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT];
    full.into_iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
