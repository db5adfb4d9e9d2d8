//! What time it is, for certificates and tickets.

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Wall time. Tests bring a clock of their own.
pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> SystemTime;
}

#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Since 1970; zero on a machine whose clock stands before that.
pub(crate) fn since_epoch(clock: &dyn Clock) -> Duration {
    clock.now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Seconds since 1970, as certificates count.
pub(crate) fn unix_seconds(clock: &dyn Clock) -> i64 {
    i64::try_from(since_epoch(clock).as_secs()).unwrap_or(i64::MAX)
}

/// The same clock for rustls.
#[derive(Debug)]
pub(crate) struct RustlsClock(pub Arc<dyn Clock>);

impl TimeProvider for RustlsClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(since_epoch(&*self.0)))
    }
}
