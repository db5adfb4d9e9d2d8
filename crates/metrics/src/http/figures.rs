//! What one thread counts, and the sums over all threads.

use super::buckets::{BucketTotals, Buckets, DURATIONS, SIZES};
use super::scopes::ScopeId;
use crate::counter::Counter;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The methods that have a label of their own, as in Caddy (internal/metrics/metrics.go).
const METHODS: [&str; 9] = ["GET", "HEAD", "PUT", "POST", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// A method, as far as it has a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MethodLabel(u8);

impl MethodLabel {
    /// Caddy takes them in lower case too.
    pub fn new(method: &str) -> Self {
        let is_lower = || method.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_named = |name: &&str| *name == method || name.eq_ignore_ascii_case(method) && is_lower();
        let index = METHODS.iter().position(is_named).unwrap_or(METHODS.len());
        Self(u8::try_from(index).unwrap_or(u8::MAX))
    }

    pub fn text(self) -> &'static str {
        METHODS.get(usize::from(self.0)).copied().unwrap_or("OTHER")
    }
}

/// What requests with a response are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SeriesKey {
    pub scope: ScopeId,
    pub status: u16,
    pub method: MethodLabel,
}

/// Of one thread. The lists grow when something is counted for the first time.
#[derive(Default)]
pub(crate) struct HttpFigures {
    scopes: Mutex<Vec<(ScopeId, Arc<ScopeFigures>)>>,
    series: Mutex<Vec<(SeriesKey, Arc<SeriesFigures>)>>,
}

/// Of requests under a scope.
#[derive(Default)]
pub(super) struct ScopeFigures {
    pub started: Counter,
    pub ended: Counter,
    pub failed: Counter,
}

/// Of requests with a response: 368 bytes.
#[derive(Default)]
pub(super) struct SeriesFigures {
    pub duration: Buckets<{ DURATIONS.len() }>,
    pub first_byte: Buckets<{ DURATIONS.len() }>,
    pub request_size: Buckets<{ SIZES.len() }>,
    pub response_size: Buckets<{ SIZES.len() }>,
}

impl HttpFigures {
    pub(super) fn add_scope(&self, scope: ScopeId) -> Arc<ScopeFigures> {
        let figures = Arc::<ScopeFigures>::default();
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner).push((scope, Arc::clone(&figures)));
        figures
    }

    pub(super) fn add_series(&self, key: SeriesKey) -> Arc<SeriesFigures> {
        let figures = Arc::<SeriesFigures>::default();
        self.series.lock().unwrap_or_else(PoisonError::into_inner).push((key, Arc::clone(&figures)));
        figures
    }
}

/// Of all threads.
#[derive(Default)]
pub(super) struct HttpTotals {
    pub scopes: BTreeMap<ScopeId, ScopeTotals>,
    pub series: BTreeMap<SeriesKey, SeriesTotals>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScopeTotals {
    pub started: u64,
    pub ended: u64,
    pub failed: u64,
}

#[derive(Default)]
pub(super) struct SeriesTotals {
    pub duration: BucketTotals<{ DURATIONS.len() }>,
    pub first_byte: BucketTotals<{ DURATIONS.len() }>,
    pub request_size: BucketTotals<{ SIZES.len() }>,
    pub response_size: BucketTotals<{ SIZES.len() }>,
}

impl HttpTotals {
    pub fn of(threads: &[Arc<HttpFigures>]) -> Self {
        let mut totals = Self::default();
        for thread in threads {
            // A thread that counts something for the first time does not wait for the sums.
            let scopes = thread.scopes.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let series = thread.series.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for (scope, figures) in scopes {
                figures.add_to(totals.scopes.entry(scope).or_default());
            }
            for (key, figures) in series {
                figures.add_to(totals.series.entry(key).or_default());
            }
        }
        totals
    }
}

impl ScopeTotals {
    pub fn in_flight(&self) -> u64 {
        self.started.saturating_sub(self.ended)
    }
}

impl ScopeFigures {
    fn add_to(&self, totals: &mut ScopeTotals) {
        // In this order: what ends meanwhile counts as in flight, and nothing ends that has not started.
        totals.ended += self.ended.get();
        totals.failed += self.failed.get();
        totals.started += self.started.get();
    }
}

impl SeriesFigures {
    fn add_to(&self, totals: &mut SeriesTotals) {
        self.duration.add_to(&mut totals.duration);
        self.first_byte.add_to(&mut totals.first_byte);
        self.request_size.add_to(&mut totals.request_size);
        self.response_size.add_to(&mut totals.response_size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_labelled_as_caddy_does() {
        let label = |method| MethodLabel::new(method).text();
        let found = ["GET", "patch", "Get", "PURGE", ""].map(label);
        assert_eq!(found, ["GET", "PATCH", "OTHER", "OTHER", "OTHER"]);
        assert!(METHODS.iter().all(|method| label(method) == *method));
    }

    #[test]
    fn what_a_series_takes_is_as_documented() {
        assert!(size_of::<SeriesFigures>() <= 368);
    }
}
