//! What is to be forgotten before its time.

use crate::key::Key;
use crate::scope::Scope;
use std::collections::VecDeque;
use std::sync::Arc;

/// Purges that are remembered for the fetches that were under way.
const REMEMBERED: usize = 256;

/// Which responses go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// All of this URL, whatever the site.
    Url(Key),
    /// All whose URL begins so.
    Prefix(String),
    /// All with one of these tags.
    Tags(Vec<String>),
    Everything,
    /// The same, but only of URLs within the scope.
    Within(Arc<Scope>, Box<Purge>),
}

impl Purge {
    /// The one URL that it is about.
    pub(crate) fn only_url(&self) -> Option<&Key> {
        match self {
            Self::Url(key) => Some(key),
            Self::Within(_, purge) => purge.only_url(),
            Self::Prefix(_) | Self::Tags(_) | Self::Everything => None,
        }
    }

    pub(crate) fn concerns(&self, key: &Key, tags: &[Box<str>]) -> bool {
        match self {
            Self::Url(purged) => purged == key,
            Self::Prefix(prefix) => key.url().starts_with(prefix),
            Self::Tags(purged) => purged.iter().any(|tag| tags.iter().any(|own| **own == **tag)),
            Self::Everything => true,
            Self::Within(scope, purge) => scope.contains(key) && purge.concerns(key, tags),
        }
    }
}

/// The last purges, by which a response that was asked for before one of them is known.
#[derive(Debug, Default)]
pub(crate) struct Past {
    latest: VecDeque<Purge>,
    /// How many there were.
    count: u64,
}

impl Past {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn add(&mut self, purge: Purge) {
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(purge);
        self.count += 1;
    }

    /// Whether a purge since there were `count` concerns the response; certainly so if they are more than are known.
    pub(crate) fn concerns(&self, count: u64, key: &Key, tags: &[Box<str>]) -> bool {
        let since = usize::try_from(self.count - count).unwrap_or(usize::MAX);
        since > self.latest.len()
            || self.latest.iter().rev().take(since).any(|purge| purge.concerns(key, tags))
    }
}
