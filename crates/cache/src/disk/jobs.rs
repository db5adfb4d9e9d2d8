//! What the thread of the disk has to do.

use super::directory::Name;
use crate::key::Key;
use crate::purge::Past;
use crate::stored::Stored;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Responses that wait to be written.
const MOST_WAITING: usize = 1024;

/// A queue for one thread: names that are to go come first.
pub(super) struct Jobs {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Bytes of bodies that may wait.
    bytes: u64,
}

#[derive(Default)]
struct Waiting {
    removals: Vec<Name>,
    writes: VecDeque<Write>,
    /// What the thread writes just now.
    in_hand: Option<Write>,
    bytes: u64,
    stage: Stage,
    /// The thread removes what it has taken.
    is_removing: bool,
}

/// A response that is to be written.
#[derive(Clone)]
pub(super) struct Write {
    pub(super) key: Key,
    pub(super) stored: Arc<Stored>,
    /// Purges before it was asked for.
    pub(super) purges: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// There is no directory yet: nothing is taken.
    #[default]
    Closed,
    Open,
    /// What is there is still written.
    Closing,
    /// Files are only removed.
    GivenBack,
    /// The thread is to end.
    Ended,
}

pub(super) enum Job {
    Remove(Vec<Name>),
    Write(Write),
    GiveBack,
    End,
}

impl Jobs {
    pub(super) fn new(bytes: u64) -> Self {
        Self { waiting: Mutex::default(), changed: Condvar::new(), bytes }
    }

    /// Whether there is room for it.
    pub(super) fn write(&self, write: Write) -> bool {
        let mut waiting = self.waiting();
        let bytes = waiting.bytes + bytes_of(&write);
        if waiting.stage != Stage::Open
            || waiting.writes.len() == MOST_WAITING
            || bytes > self.bytes && !waiting.writes.is_empty()
        {
            return false;
        }
        waiting.bytes = bytes;
        waiting.writes.push_back(write);
        self.changed.notify_all();
        true
    }

    /// The newest response that is not written yet and fits: a disk that is slow keeps it from nobody.
    pub(super) fn find(&self, key: &Key, past: &Past, fits: impl Fn(&Stored) -> bool) -> Option<Arc<Stored>> {
        let waiting = self.waiting();
        let mut newest_first = waiting.writes.iter().rev().chain(&waiting.in_hand);
        let write = newest_first.find(|write| write.key == *key && fits(&write.stored))?;
        let is_purged = past.concerns(write.purges, key, &write.stored.tags);
        (!is_purged).then(|| Arc::clone(&write.stored))
    }

    pub(super) fn remove(&self, names: impl IntoIterator<Item = Name>) {
        let mut waiting = self.waiting();
        if waiting.stage != Stage::Closed {
            waiting.removals.extend(names);
            self.changed.notify_all();
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.waiting().stage
    }

    /// Moves on to a stage, never back but for a directory that has gone.
    pub(super) fn enter(&self, stage: Stage) {
        let mut waiting = self.waiting();
        let is_back = stage == Stage::Closed && waiting.stage == Stage::Open;
        if stage > waiting.stage || is_back {
            waiting.stage = stage;
            self.changed.notify_all();
        }
    }

    /// Waits for a change of the stage, for so long at most.
    pub(super) fn pause(&self, time: Duration) {
        let waiting = self.waiting();
        let is_same = |waiting: &mut Waiting| waiting.stage < Stage::Closing;
        drop(self.changed.wait_timeout_while(waiting, time, is_same));
    }

    /// Waits until all names have gone that are to go, for so long at most.
    pub(super) fn settle(&self, time: Duration) {
        let waiting = self.waiting();
        let is_at_it = |waiting: &mut Waiting| {
            !matches!(waiting.stage, Stage::Closed | Stage::Ended)
                && (waiting.is_removing || !waiting.removals.is_empty())
        };
        drop(self.changed.wait_timeout_while(waiting, time, is_at_it));
    }

    /// Waits until the directory has been given back. `false`: it took too long.
    pub(super) fn wait_for_end(&self, time: Duration) -> bool {
        let waiting = self.waiting();
        let ended =
            self.changed.wait_timeout_while(waiting, time, |waiting| waiting.stage < Stage::GivenBack);
        ended.is_ok_and(|(_, timeout)| !timeout.timed_out())
    }

    /// The next job; waits for it until `until`. `None`: there was none.
    pub(super) fn next(&self, until: Option<Instant>) -> Option<Job> {
        let mut waiting = self.waiting();
        waiting.is_removing = false;
        let written = waiting.in_hand.take();
        self.changed.notify_all();
        // A file that was begun and is not kept is removed when its response is dropped, which is a job.
        drop(waiting);
        drop(written);
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.take() {
                waiting.is_removing = matches!(job, Job::Remove(_));
                return Some(job);
            }
            waiting = match until {
                None => self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    let woken = self.changed.wait_timeout(waiting, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// What waits is not carried out: there is nothing to do it with.
    pub(super) fn clear(&self) {
        let mut waiting = self.waiting();
        let stage = waiting.stage;
        let cleared = std::mem::replace(&mut *waiting, Waiting { stage, ..Waiting::default() });
        self.changed.notify_all();
        // A file that was begun is removed when its response is dropped, which is a job.
        drop(waiting);
        drop(cleared);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take(&mut self) -> Option<Job> {
        if !self.removals.is_empty() {
            return Some(Job::Remove(std::mem::take(&mut self.removals)));
        }
        if let Some(write) = self.writes.pop_front() {
            self.bytes -= bytes_of(&write);
            self.in_hand = Some(write.clone());
            return Some(Job::Write(write));
        }
        match self.stage {
            Stage::Closing => Some(Job::GiveBack),
            Stage::Ended => Some(Job::End),
            Stage::Closed | Stage::Open | Stage::GivenBack => None,
        }
    }
}

/// Bytes of memory that wait with it.
fn bytes_of(write: &Write) -> u64 {
    write.stored.weight() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Policy, Question};
    use crate::purge::Purge;
    use crate::rope::Gathering;
    use crate::selection::{CookieRule, Selection};
    use crate::store::{Limits, Store};
    use crate::stored::StoredBody;
    use http::{HeaderMap, HeaderValue, StatusCode, header};
    use std::time::SystemTime;

    fn key(path: &str) -> Key {
        Key::new("http", "h", path).unwrap()
    }

    fn write(path: &str, body: &[u8]) -> Write {
        let mut gathering = Gathering::new(&Store::new(Limits { memory: 1 << 20, object: 1 << 10 }));
        gathering.push(body).unwrap();
        let (request, now) = (HeaderMap::new(), SystemTime::now());
        let mut headers = HeaderMap::new();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        let question =
            Question { request: &request, status: StatusCode::OK, headers: &headers, asked: now, now };
        let terms = Policy::default().judge(&question).unwrap();
        let selection = Selection::new(b"site", &[], &request, &CookieRule::default());
        let body = StoredBody::Memory(gathering.finish());
        let stored = Stored::new(StatusCode::OK, &headers, body, terms, selection, now).unwrap();
        Write { key: key(path), stored: Arc::new(stored), purges: 0 }
    }

    #[test]
    fn what_is_not_written_yet_is_found_until_it_is() {
        let jobs = Jobs::new(1 << 20);
        jobs.enter(Stage::Open);
        let mut past = Past::default();
        let length =
            |path: &str, past: &Past| jobs.find(&key(path), past, |_| true).map(|stored| stored.body.len());
        assert!(jobs.write(write("/", b"old")) && jobs.write(write("/other", b"x")));
        assert_eq!((length("/", &past), length("/none", &past)), (Some(3), None));
        assert!(jobs.find(&key("/"), &past, |_| false).is_none(), "it is for other requests");

        assert!(matches!(jobs.next(None), Some(Job::Write(_))));
        assert_eq!(length("/", &past), Some(3), "it is being written");
        assert!(jobs.write(write("/", b"newer")));
        assert_eq!(length("/", &past), Some(5), "the newest is found");

        past.add(Purge::Url(key("/")));
        assert_eq!((length("/", &past), length("/other", &past)), (None, Some(1)));

        for _ in 0..2 {
            assert!(matches!(jobs.next(None), Some(Job::Write(_))));
        }
        assert!(jobs.next(Some(Instant::now())).is_none());
        assert_eq!(length("/other", &past), None, "it has been written");
    }
}
