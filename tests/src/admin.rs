//! The admin API, as tools ask it.

use crate::{Request, Response, until};
use serde_json::Value;
use std::net::SocketAddr;

/// The admin API of a running server.
#[derive(Clone, Copy)]
pub struct Admin {
    address: SocketAddr,
}

/// A PHP thread as the list of threads has it.
#[derive(Debug, Clone)]
pub struct Thread {
    pub index: u64,
    /// `classic`, or the worker's name.
    pub pool: String,
    /// `starting`, `idle`, `busy`, `stuck` or `leaving`.
    pub activity: String,
    pub method: String,
    pub uri: String,
    /// Requests that it has served.
    pub requests: u64,
    pub running_milliseconds: u64,
}

impl Admin {
    pub fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn request(&self, method: &str, target: &str) -> Request {
        Request::new(self.address, method, target)
    }

    pub fn get(&self, target: &str) -> Response {
        self.request("GET", target).send()
    }

    /// All PHP threads, those that are leaving too.
    pub fn threads(&self) -> Vec<Thread> {
        let list = self.get("/regent/threads").expect(200).json();
        list["ThreadDebugStates"].as_array().expect("a list").iter().map(Thread::new).collect()
    }

    /// The threads that have a request, or are stuck with one.
    pub fn busy_threads(&self) -> Vec<Thread> {
        self.threads().into_iter().filter(Thread::is_busy).collect()
    }

    /// A pool as `/regent/queue` describes it.
    pub fn pool(&self, name: &str) -> Value {
        let queue = self.get("/regent/queue").expect(200).json();
        let pools = queue["pools"].as_array().expect("a list");
        let found = pools.iter().find(|pool| pool["name"] == name);
        found.unwrap_or_else(|| panic!("no pool `{name}` in {queue}")).clone()
    }

    /// Threads of a pool that are there to stay: starting, failing, idle, busy and stuck ones.
    pub fn size(&self, pool: &str) -> u64 {
        let threads = &self.pool(pool)["threads"];
        ["starting", "backoff", "idle", "busy", "stuck"].iter().map(|state| number(&threads[state])).sum()
    }

    /// Waits until a pool has so many threads, none of which is starting or leaving.
    pub fn wait_for_size(&self, pool: &str, size: u64) {
        until(&format!("the pool `{pool}` settles at {size} threads"), || {
            let threads = &self.pool(pool)["threads"];
            let settled = number(&threads["starting"]) + number(&threads["leaving"]) == 0;
            (settled && self.size(pool) == size).then_some(())
        });
    }

    /// Waits until so many requests wait in a pool's queue.
    pub fn wait_for_queue(&self, pool: &str, length: u64) {
        until(&format!("{length} requests wait in the pool `{pool}`"), || {
            (number(&self.pool(pool)["queued"]) == length).then_some(())
        });
    }

    /// Waits until so many requests are in a pool, at a thread or waiting for one.
    pub fn wait_for_requests(&self, name: &str, count: u64) {
        until(&format!("{count} requests are in the pool `{name}`"), || {
            let pool = self.pool(name);
            let inside = ["busy", "stuck"].iter().map(|state| number(&pool["threads"][state])).sum::<u64>();
            (inside + number(&pool["queued"]) == count).then_some(())
        });
    }

    /// The changes of the number of threads that `/regent/statistics` remembers, newest first.
    pub fn scale_events(&self) -> Vec<Value> {
        let statistics = self.get("/regent/statistics").expect(200).json();
        statistics["scale_events"].as_array().expect("a list").clone()
    }

    /// The sum of all series of `/metrics` with this name and these labels.
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let text = self.get("/metrics").expect(200).text();
        let values: Vec<f64> = text.lines().filter_map(|line| value_of(line, name, labels)).collect();
        assert!(!values.is_empty(), "no series {name} with {labels:?} in:\n{text}");
        values.iter().sum()
    }
}

impl Thread {
    fn new(thread: &Value) -> Self {
        let text = |field: &str| thread[field].as_str().expect("a string").to_owned();
        Self {
            index: number(&thread["Index"]),
            pool: text("Pool"),
            activity: text("Activity"),
            method: text("CurrentMethod"),
            uri: text("CurrentURI"),
            requests: number(&thread["RequestCount"]),
            running_milliseconds: number(&thread["RunningMilliseconds"]),
        }
    }

    fn is_busy(&self) -> bool {
        matches!(self.activity.as_str(), "busy" | "stuck")
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number, not {value}"))
}

/// The value of a line of Prometheus' text format, if it is of such a series.
fn value_of(line: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let (series, value) = line.rsplit_once(' ')?;
    let (own_name, own_labels) = series.split_once('{').unwrap_or((series, ""));
    let has = |(label, value): &(&str, &str)| own_labels.contains(&format!("{label}=\"{value}\""));
    (own_name == name && labels.iter().all(has)).then(|| value.parse().expect("a number"))
}
