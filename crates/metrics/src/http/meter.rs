//! Where an I/O thread counts requests.

use super::buckets::{DURATIONS, SIZES};
use super::figures::{HttpFigures, ScopeFigures, SeriesFigures, SeriesKey};
use super::scopes::{HttpLabels, ScopeId, Scopes, SeenHosts};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// One for each I/O thread, from [`Registry::http_meter`](crate::Registry::http_meter). It can go to a thread but not be shared by
/// several.
///
/// What is counted under a scope, a status and a method for the first time is allocated, under a lock; after that, nothing is
/// allocated and nothing locked.
pub struct HttpMeter {
    scopes: Arc<Scopes>,
    figures: Arc<HttpFigures>,
    seen: RefCell<SeenHosts>,
    /// By scope; `None`: not used by this thread so far.
    by_scope: RefCell<Vec<Option<Arc<ScopeFigures>>>>,
    series: RefCell<HashMap<SeriesKey, Arc<SeriesFigures>>>,
}

/// What was measured of a request.
pub(super) struct Measured {
    pub key: SeriesKey,
    pub duration: Duration,
    pub request_size: u64,
    pub response_size: u64,
    pub outcome: Outcome,
}

/// Whether the routes of a site have answered a request, or an error came up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    Failed,
}

impl HttpMeter {
    pub(super) fn new(scopes: Arc<Scopes>, figures: Arc<HttpFigures>) -> Self {
        Self {
            scopes,
            figures,
            seen: RefCell::default(),
            by_scope: RefCell::default(),
            series: RefCell::default(),
        }
    }

    /// `host`: in lower case, without a port.
    pub(super) fn scope(&self, labels: &HttpLabels, host: &str) -> ScopeId {
        self.seen.borrow_mut().scope(&self.scopes, labels, host)
    }

    pub(super) fn started(&self, scope: ScopeId) {
        self.with(scope, |figures| figures.started.add(1));
    }

    pub(super) fn ended(&self, measured: &Measured) {
        self.with(measured.key.scope, |figures| {
            figures.failed.add(u64::from(measured.outcome == Outcome::Failed));
            figures.ended.add(1);
        });
        self.with_series(measured.key, |figures| {
            figures.duration.add(&DURATIONS, nanos(measured.duration));
            figures.request_size.add(&SIZES, measured.request_size);
            figures.response_size.add(&SIZES, measured.response_size);
        });
    }

    /// The head of a response is written.
    pub(super) fn responded(&self, key: SeriesKey, first_byte: Duration) {
        self.with_series(key, |figures| figures.first_byte.add(&DURATIONS, nanos(first_byte)));
    }

    fn with_series(&self, key: SeriesKey, count: impl FnOnce(&SeriesFigures)) {
        let mut series = self.series.borrow_mut();
        count(series.entry(key).or_insert_with(|| self.figures.add_series(key)));
    }

    fn with(&self, scope: ScopeId, count: impl FnOnce(&ScopeFigures)) {
        let mut scopes = self.by_scope.borrow_mut();
        if scopes.len() <= scope.index() {
            scopes.resize_with(scope.index() + 1, || None);
        }
        count(scopes[scope.index()].get_or_insert_with(|| self.figures.add_scope(scope)));
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
