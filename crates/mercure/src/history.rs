//! The updates that subscribers can ask for when they come again.

use crate::options::HistoryOptions;
use crate::update::Update;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

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
}

/// What a subscriber gets of the past.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    pub updates: Vec<Arc<Update>>,
    /// The id of the update before the first of them, or [`EARLIEST`].
    pub after: String,
}

impl History {
    pub fn new(options: &HistoryOptions) -> Self {
        let size = match options {
            HistoryOptions::None => 0,
            HistoryOptions::Memory { size: 0 } => MOST,
            HistoryOptions::Memory { size } => (*size).min(MOST),
        };
        Self { size, updates: VecDeque::new(), bytes: 0, gone: 0, places: HashMap::new(), last_id: None }
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
        let mut history = History::new(&HistoryOptions::Memory { size });
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
    fn without_a_history_only_the_last_id_is_known() {
        let mut history = History::new(&HistoryOptions::None);
        assert_eq!(history.last_id(), "earliest");
        history.add(&update("a", ""));
        assert_eq!((since(&history, "a"), history.last_id()), (past(&[], "earliest"), "a"));
    }
}
