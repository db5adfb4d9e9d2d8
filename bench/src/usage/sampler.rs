//! A server over time: how many PHP threads it has, how much memory and CPU time its processes use.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::peers::Server;
use crate::procfs::{self, Process};

/// A server at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerTick {
    /// Since the sampler was started.
    pub time_s: f64,
    /// `None` where it cannot be seen from outside.
    pub php_threads: Option<u32>,
    /// Of the processes; `None` in ticks that count the threads only, see [`SHARE`].
    pub resources: Option<Resources>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    pub processes: usize,
    /// Sum of the resident set sizes: pages that processes share count for each of them.
    pub resident_bytes: u64,
    /// User and system time since the processes were started, in steps of 10 ms.
    pub cpu_s: f64,
}

/// A new look for processes that belong to the server at most so often; it reads about every process of the machine.
const REFRESH: Duration = Duration::from_secs(1);
/// What the reading of all processes may cost of one core: after one that took a millisecond, the next is not due
/// before 99 ms. Hundreds of processes are read every few ticks only, a handful in each.
const SHARE: f64 = 0.01;

/// Records a server in a thread of its own until it is stopped or dropped.
pub struct Sampler {
    /// Dropping it wakes and ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Vec<ServerTick>>>,
}

impl Sampler {
    /// A tick every `period`.
    pub fn start(server: &Server, period: Duration) -> Self {
        Self::watch(server.leaders(), period, server.php_thread_counter())
    }

    /// Watches the families of these processes; `php_threads` is asked in each tick.
    fn watch(
        leaders: Vec<i32>,
        period: Duration,
        mut php_threads: impl FnMut() -> Option<u32> + Send + 'static,
    ) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let record = move || {
            let started = Instant::now();
            let mut family = Family::new(leaders);
            let mut ticks = Vec::new();
            loop {
                let time_s = started.elapsed().as_secs_f64();
                ticks.push(ServerTick {
                    time_s,
                    php_threads: php_threads(),
                    resources: family.read_when_due(),
                });
                let next = period * ticks.len() as u32;
                match stopped.recv_timeout(next.saturating_sub(started.elapsed())) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return ticks,
                }
            }
        };
        Self { stop: Some(stop), thread: Some(thread::spawn(record)) }
    }

    /// The ticks since the start, at least one.
    pub fn stop(mut self) -> Vec<ServerTick> {
        self.end()
    }

    fn end(&mut self) -> Vec<ServerTick> {
        drop(self.stop.take());
        // A panic of the thread is on stderr; what it recorded is lost.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampler").finish_non_exhaustive()
    }
}

/// The processes of a server, read as often as their number allows.
struct Family {
    leaders: Vec<i32>,
    members: Vec<i32>,
    refreshed: Option<Instant>,
    next: Instant,
}

impl Family {
    fn new(leaders: Vec<i32>) -> Self {
        Self { leaders, members: Vec::new(), refreshed: None, next: Instant::now() }
    }

    fn read_when_due(&mut self) -> Option<Resources> {
        let start = Instant::now();
        if start < self.next {
            return None;
        }
        let resources = sum(&self.read(start));
        self.next = start + start.elapsed().div_f64(SHARE);
        Some(resources)
    }

    fn read(&mut self, now: Instant) -> Vec<Process> {
        if self.refreshed.is_some_and(|refreshed| now < refreshed + REFRESH) {
            return self.members.iter().filter_map(|pid| procfs::process(*pid)).collect();
        }
        let family = procfs::family(&self.leaders);
        self.members = family.iter().map(|process| process.pid).collect();
        self.refreshed = Some(now);
        family
    }
}

fn sum(family: &[Process]) -> Resources {
    let ticks: u64 = family.iter().map(|process| process.own_ticks + process.children_ticks).sum();
    Resources {
        processes: family.len(),
        resident_bytes: family.iter().map(|process| process.resident_bytes).sum(),
        cpu_s: ticks as f64 / rustix::param::clock_ticks_per_second() as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> i32 {
        i32::try_from(std::process::id()).expect("a pid")
    }

    #[test]
    fn ticks_follow_each_other_until_the_sampler_is_stopped() {
        let (asked, asks) = mpsc::channel();
        let mut number = 0;
        let sampler = Sampler::watch(vec![own()], Duration::from_millis(10), move || {
            number += 1;
            let _ = asked.send(());
            Some(number)
        });
        for _ in 0..3 {
            asks.recv().expect("the sampler asks in each tick");
        }
        let ticks = sampler.stop();
        assert!(ticks.len() >= 3, "{ticks:?}");
        assert!(ticks.windows(2).all(|pair| pair[0].time_s < pair[1].time_s), "{ticks:?}");
        assert_eq!(ticks[2].php_threads, Some(3));
        let first = ticks[0].resources.expect("the first tick reads all");
        assert!(first.processes >= 1 && first.resident_bytes > 0, "{first:?}");
    }

    #[test]
    fn a_costly_reading_is_not_repeated_at_once() {
        let mut family = Family::new(vec![own()]);
        assert!(family.read_when_due().is_some());
        family.next = Instant::now() + Duration::from_secs(3600);
        assert_eq!(family.read_when_due(), None);
    }

    #[test]
    fn cpu_time_counts_children_that_have_ended() {
        let process = Process {
            pid: 1,
            parent: 0,
            group: 1,
            own_ticks: 100,
            children_ticks: 50,
            threads: 1,
            resident_bytes: 4096,
        };
        let resources = sum(&[process, process]);
        assert_eq!((resources.processes, resources.resident_bytes), (2, 8192));
        assert!((resources.cpu_s * rustix::param::clock_ticks_per_second() as f64 - 300.0).abs() < 1e-6);
    }
}
