//! Chaos: one server under a steady load while fault after fault is injected, and an oracle that knows of each request
//! whether it could be harmed.
//!
//! - [`site`]: what is served, and its configurations and releases, which follow each other.
//! - [`question`]: what the load asks for, and the one answer that is right.
//! - [`load`] and [`client`]: requests at the times of a schedule, over kept and new connections.
//! - [`faults`]: what goes wrong, as a table; [`injector`] and [`operator`] do it.
//! - [`events`]: what the server's log says of its engines.
//! - [`oracle`]: which requests may have failed, and why.
//! - [`profiles`]: what is seen of the PHP code meanwhile.
//! - [`usage`]: memory and descriptors, and what is left running.
//! - [`timeline`], [`chart`] and [`report`]: what is shown of it.
#![expect(
    clippy::disallowed_methods,
    reason = "a load by a schedule; the oracle judges by what was done to a request, not by its time"
)]

pub mod chart;
pub mod client;
pub mod events;
pub mod faults;
pub mod injector;
pub mod load;
pub mod operator;
pub mod oracle;
pub mod profiles;
pub mod question;
pub mod report;
pub mod site;
pub mod timeline;
pub mod usage;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What runs apart from the server, and can die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Php,
    Native,
}

/// Time since the beginning of a run, of this program and of the server's log.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    /// The same moment, since 1970.
    epoch: Duration,
}

impl Clock {
    pub fn start() -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        Self { start: Instant::now(), epoch }
    }

    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time of a log's line, in seconds since 1970. What was before the run is its beginning.
    pub fn of_log(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds).saturating_sub(self.epoch)
    }

    /// Returns at that time.
    pub fn sleep_until(&self, time: Duration) {
        std::thread::sleep(time.saturating_sub(self.now()));
    }
}
