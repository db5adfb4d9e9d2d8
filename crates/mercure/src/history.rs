//! The updates that subscribers can ask for when they come again.

use crate::journal::{Journal, JournalError, file_beside};
use crate::options::HistoryOptions;
use crate::update::Update;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Updates that are kept at most.
const MOST: usize = 100_000;
/// Bytes that they take in memory at most.
const MOST_BYTES: usize = 32 << 20;
/// Stands for the time before the first update (draft-dunglas-mercure-07, section 7).
pub(crate) const EARLIEST: &str = "earliest";

/// The latest updates, in their order.
pub(crate) struct History {
    /// How many are kept; 0: none.
    size: usize,
    updates: VecDeque<Arc<Update>>,
    bytes: usize,
    /// How many were there before the first of `updates`.
    gone: u64,
    /// Where the update of that id is, counted from the first ever. Of several with one id the last.
    places: HashMap<String, u64>,
    last_id: Option<String>,
    /// `None`: it is in memory only.
    journal: Option<Journal>,
}

/// What a subscriber gets of the past.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    pub updates: Vec<Arc<Update>>,
    /// The id of the update before the first of them, or [`EARLIEST`].
    pub after: String,
}

impl History {
    /// Reads what the file has, if there is one.
    pub fn open(options: &HistoryOptions) -> Result<Self, JournalError> {
        let mut history = Self::sized(options);
        let HistoryOptions::File { path, .. } = options else { return Ok(history) };
        let file = file_beside(path);
        let Some((journal, updates)) = Journal::open(&file)? else {
            let path = file.display();
            tracing::warn!(%path, "another process keeps the history of a Mercure hub there: this one keeps its own in memory");
            return Ok(history);
        };
        tracing::info!(path = %file.display(), updates = updates.len(), "the history of a Mercure hub is in a file");
        updates.into_iter().for_each(|update| history.add(&Arc::new(update)));
        history.journal = Some(journal);
        Ok(history)
    }

    /// An empty one, in memory.
    pub fn sized(options: &HistoryOptions) -> Self {
        Self::empty(match options {
            HistoryOptions::None => 0,
            HistoryOptions::Memory | HistoryOptions::File { size: 0, .. } => MOST,
            HistoryOptions::File { size, .. } | HistoryOptions::Shared { size, .. } => (*size).min(MOST),
        })
    }

    /// Whether there is no room for an older update in front of so many of so many bytes.
    pub fn is_full_with(&self, updates: usize, bytes: usize) -> bool {
        updates >= self.size || bytes >= MOST_BYTES
    }

    /// Keeps nothing.
    pub fn none() -> Self {
        Self::empty(0)
    }

    fn empty(size: usize) -> Self {
        Self {
            size,
            updates: VecDeque::new(),
            bytes: 0,
            gone: 0,
            places: HashMap::new(),
            last_id: None,
            journal: None,
        }
    }

    pub fn add(&mut self, update: &Arc<Update>) {
        self.last_id = Some(update.id().to_owned());
        if self.size == 0 {
            return;
        }
        self.places.insert(update.id().to_owned(), self.gone + self.updates.len() as u64);
        self.bytes += update.size();
        self.updates.push_back(Arc::clone(update));
        while self.updates.len() > self.size || (self.bytes > MOST_BYTES && self.updates.len() > 1) {
            self.forget_first();
        }
        if let Some(journal) = &mut self.journal {
            journal.append(update, self.updates.len(), || self.updates.iter().cloned().collect());
        }
    }

    /// Takes over what a hub before has kept, and its file; updates of this one come behind.
    pub fn inherit(&mut self, mut before: Self) {
        before.size = self.size;
        let own: Vec<_> = self.updates.drain(..).collect();
        own.iter().for_each(|update| before.add(update));
        *self = before;
    }

    /// `done` is told, or dropped, when the file has all of it.
    pub fn flush(&self, done: oneshot::Sender<()>) {
        if let Some(journal) = &self.journal {
            journal.flush(done);
        }
    }

    /// Of the latest update, or [`EARLIEST`].
    pub fn last_id(&self) -> &str {
        self.last_id.as_deref().unwrap_or(EARLIEST)
    }

    /// Everything behind the update of that id; behind [`EARLIEST`], or an id that is not there, all there is.
    pub fn since(&self, id: &str) -> Past {
        let place = self.places.get(id).filter(|_| id != EARLIEST);
        let Some(place) = place else {
            return Past { updates: self.updates.iter().cloned().collect(), after: EARLIEST.into() };
        };
        let known = usize::try_from(place - self.gone).unwrap_or(usize::MAX) + 1;
        Past { updates: self.updates.iter().skip(known).cloned().collect(), after: id.into() }
    }

    fn forget_first(&mut self) {
        let Some(first) = self.updates.pop_front() else { return };
        self.bytes -= first.size();
        // Not if a later one has the same id.
        if self.places.get(first.id()) == Some(&self.gone) {
            self.places.remove(first.id());
        }
        self.gone += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::Publication;

    fn update(id: &str, data: &str) -> Arc<Update> {
        let topics = vec!["t".into()];
        let publication =
            Publication { topics, id: Some(id.into()), data: data.into(), ..Publication::default() };
        Arc::new(Update::new(publication).unwrap())
    }

    fn since(history: &History, id: &str) -> (Vec<String>, String) {
        let past = history.since(id);
        (past.updates.iter().map(|update| update.id().to_owned()).collect(), past.after)
    }

    fn history(size: usize, ids: &[&str]) -> History {
        let mut history = History::empty(if size == 0 { MOST } else { size });
        ids.iter().for_each(|id| history.add(&update(id, "")));
        history
    }

    fn past(ids: &[&str], after: &str) -> (Vec<String>, String) {
        (ids.iter().map(|id| (*id).to_owned()).collect(), after.into())
    }

    #[test]
    fn what_follows_an_update() {
        let history = history(0, &["a", "b", "c"]);
        assert_eq!(since(&history, "a"), past(&["b", "c"], "a"));
        assert_eq!(since(&history, "c"), past(&[], "c"));
        for id in ["earliest", "unknown", ""] {
            assert_eq!(since(&history, id), past(&["a", "b", "c"], "earliest"), "{id}");
        }
        assert_eq!(history.last_id(), "c");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut history = history(2, &["a", "b", "c"]);
        assert_eq!(since(&history, "a"), past(&["b", "c"], "earliest"));
        assert_eq!(since(&history, "b"), past(&["c"], "b"));
        history.add(&update("b", ""));
        history.add(&update("d", ""));
        assert_eq!(since(&history, "b"), past(&["d"], "b"));
        assert_eq!(history.places.len(), 2);
    }

    #[test]
    fn large_updates_do_not_fill_the_memory() {
        let mut history = history(0, &[]);
        let large = "x".repeat(MOST_BYTES / 4);
        ["a", "b", "c", "d", "e", "f"].iter().for_each(|id| history.add(&update(id, &large)));
        assert!(history.bytes <= MOST_BYTES && history.updates.len() == 3, "{}", history.updates.len());
        history.add(&update("g", &"x".repeat(MOST_BYTES)));
        assert_eq!(since(&history, "earliest"), past(&["g"], "earliest"));
    }

    #[test]
    fn a_history_in_a_file_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let options = HistoryOptions::File { path: directory.path().join("mercure.db"), size: 2 };
        let mut first = History::open(&options).unwrap();
        ["a", "b", "c"].iter().for_each(|id| first.add(&update(id, "")));
        let mut second = history(2, &["d"]);
        second.inherit(first);
        assert_eq!(since(&second, "c"), past(&["d"], "c"));
        drop(second);
        let third = loop {
            let third = History::open(&options).unwrap();
            if third.journal.is_some() {
                break third;
            }
        };
        assert_eq!((since(&third, "c"), third.last_id()), (past(&["d"], "c"), "d"));
        assert_eq!(since(&third, "a"), past(&["c", "d"], "earliest"));
    }

    #[test]
    fn without_a_history_only_the_last_id_is_known() {
        let mut history = History::open(&HistoryOptions::None).unwrap();
        assert_eq!(history.last_id(), "earliest");
        history.add(&update("a", ""));
        assert_eq!((since(&history, "a"), history.last_id()), (past(&[], "earliest"), "a"));
    }
}
