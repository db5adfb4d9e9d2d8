//! What a whole server used while it was measured: all its processes together.

mod sampler;

use serde::{Deserialize, Serialize};

#[cfg(test)]
pub use self::sampler::Resources;
pub use self::sampler::{Sampler, ServerTick};
use crate::procfs::{self, ListenCounters, Process};

/// Counters of a family of processes at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    cpu_nanoseconds: u64,
    context_switches: u64,
    listen: ListenCounters,
}

/// The difference of two snapshots, per request where that is what one compares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// User and system time of all processes, in µs per request; `None` without requests.
    pub cpu_us_per_request: Option<f64>,
    /// Of all threads, both kinds; those of threads that ended meanwhile are lost.
    pub context_switches_per_request: Option<f64>,
    /// Sum of the proportional set sizes right after the load, while nothing has been given back.
    pub memory_bytes: u64,
    pub processes: usize,
    pub threads: u64,
    /// Connections that the kernel dropped at full listen queues, machine-wide.
    pub listen_overflows: u64,
    /// Connections that it dropped for any reason, those included.
    pub listen_drops: u64,
}

impl Snapshot {
    pub fn of(leaders: &[i32]) -> Self {
        let family = procfs::family(leaders);
        let tick_nanoseconds = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        Self {
            cpu_nanoseconds: family.iter().map(|p| cpu_nanoseconds(p, tick_nanoseconds)).sum(),
            context_switches: family.iter().map(|p| procfs::context_switches(p.pid)).sum(),
            listen: procfs::listen_counters(),
        }
    }

    /// What was used since, by `requests` requests.
    fn until(&self, later: &Self, requests: u64) -> Usage {
        let per_request = |amount: f64| (requests > 0).then(|| amount / requests as f64);
        let cpu = later.cpu_nanoseconds.saturating_sub(self.cpu_nanoseconds);
        let switches = later.context_switches.saturating_sub(self.context_switches);
        Usage {
            cpu_us_per_request: per_request(cpu as f64 / 1e3),
            context_switches_per_request: per_request(switches as f64),
            memory_bytes: 0,
            processes: 0,
            threads: 0,
            listen_overflows: later.listen.overflows.saturating_sub(self.listen.overflows),
            listen_drops: later.listen.drops.saturating_sub(self.listen.drops),
        }
    }
}

impl Usage {
    /// Takes the second snapshot now.
    pub fn since(before: &Snapshot, leaders: &[i32], requests: u64) -> Self {
        let after = Snapshot::of(leaders);
        let family = procfs::family(leaders);
        Self {
            memory_bytes: family.iter().map(|p| procfs::proportional_set_size(p.pid)).sum(),
            processes: family.len(),
            threads: family.iter().map(|p| p.threads).sum(),
            ..before.until(&after, requests)
        }
    }
}

/// Ticks (10 ms) are too coarse for the hundreds of processes of a prefork server, and the scheduler's nanoseconds
/// lack the threads that have ended. Neither is ever more than the truth, so the larger one is the better.
fn cpu_nanoseconds(process: &Process, tick_nanoseconds: u64) -> u64 {
    let by_ticks = process.own_ticks * tick_nanoseconds;
    by_ticks.max(procfs::cpu_time_of_threads(process.pid)) + process.children_ticks * tick_nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_per_request() {
        let listen = |overflows, drops| ListenCounters { overflows, drops };
        let before =
            Snapshot { cpu_nanoseconds: 1_000_000_000, context_switches: 5_000, listen: listen(1, 3) };
        let after =
            Snapshot { cpu_nanoseconds: 3_000_000_000, context_switches: 55_000, listen: listen(3, 6) };
        let usage = before.until(&after, 100_000);
        assert_eq!(usage.cpu_us_per_request, Some(20.0));
        assert_eq!(usage.context_switches_per_request, Some(0.5));
        assert_eq!((usage.listen_overflows, usage.listen_drops), (2, 3));
    }

    #[test]
    fn without_requests_there_is_no_cost_per_request() {
        let usage = Snapshot::default().until(&Snapshot::default(), 0);
        assert_eq!((usage.cpu_us_per_request, usage.context_switches_per_request), (None, None));
    }
}
