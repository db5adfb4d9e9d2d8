//! A real server in the place of a pod's container, and what Prometheus and its adapter would make of its metrics.

use crate::{Server, Setup};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a rate is of. It is two minutes where nobody waits for a test.
const WINDOW: Duration = Duration::from_secs(5);

/// Ends when it is dropped.
pub struct StandIn {
    server: Server,
    samples: Mutex<VecDeque<Sample>>,
}

#[derive(Clone, Copy)]
struct Sample {
    when: Instant,
    waited: f64,
    requests: f64,
}

impl StandIn {
    /// With so many threads, whose every request takes a while and no CPU.
    pub fn start(threads: usize, milliseconds: u64) -> Self {
        let script = format!("<?php usleep({}); echo 'done';", milliseconds * 1000);
        let options = format!("num_threads {threads}\n\t\tmax_threads {threads}\n\t\tmax_wait_time off");
        let setup = Setup::new().file("index.php", script).php_options(&options).admin("ADMIN");
        let server = setup.global_options("metrics").start();
        let begin = Sample { when: Instant::now(), waited: 0.0, requests: 0.0 };
        Self { server, samples: Mutex::new(VecDeque::from([begin])) }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// `regent_queue_wait_seconds_mean` of `autoscaling/prometheus-adapter.yaml`.
    #[expect(clippy::disallowed_methods, reason = "a rate over a window of time, as Prometheus has it")]
    pub fn mean_wait_seconds(&self) -> f64 {
        let text = self.metrics();
        let sum = |name: &str| sum_of(&text, &format!("regent_queue_wait_seconds_{name}{{"));
        let now = Sample { when: Instant::now(), waited: sum("sum"), requests: sum("count") };
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push_back(now);
        while samples.len() > 2 && samples[1].when.elapsed() >= WINDOW {
            samples.pop_front();
        }
        let then = samples[0];
        let seconds = now.when.duration_since(then.when).as_secs_f64();
        let rate = |now: f64, then: f64| (now - then) / seconds.max(0.001);
        rate(now.waited, then.waited) / rate(now.requests, then.requests).max(0.001)
    }

    /// `regent_threads_busy_ratio` of the same.
    pub fn busy_ratio(&self) -> f64 {
        let text = self.metrics();
        let busy: f64 = lines_of(&text, "regent_threads{")
            .filter(|line| line.contains("state=\"busy\""))
            .map(value)
            .sum();
        busy / sum_of(&text, "regent_threads_limit{").max(1.0)
    }

    fn metrics(&self) -> String {
        self.server.admin().get("/metrics").expect(200).text()
    }
}

fn lines_of<'a>(text: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter(move |line| line.starts_with(begin))
}

fn sum_of(text: &str, begin: &str) -> f64 {
    lines_of(text, begin).map(value).sum()
}

fn value(line: &str) -> f64 {
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number is the last of a line")
}
