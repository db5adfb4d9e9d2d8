//! What Redis takes for what instances share: CPU time of redis-server, which has one core for all of it.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::redis::{Connection, Reply};
use crate::interrupt::Interrupt;
use crate::peers::free_port;
use crate::peers::programs::{find, version_line};
use crate::samples::listens;
use crate::site::Site;
use crate::supervise::Daemon;
use crate::usage::{Snapshot, Usage};

/// Of a closed loop.
const CLIENTS: usize = 16;
/// Bytes of a session, of a certificate with its chain, of an update.
const SESSION: usize = 1_000;
const CERTIFICATE: usize = 4_000;
const UPDATE: usize = 500;
/// Instances that read a stream.
const HUBS: [usize; 3] = [1, 25, 100];
/// For readers who are to wait, and for what they are to be told.
const PATIENCE: Duration = Duration::from_secs(5);

/// CPU time of redis-server.
pub struct Costs {
    /// For one request with a session and its lock, as PHP's extension asks for it.
    pub session_us: f64,
    /// For one look at a certificate.
    pub certificate_us: f64,
    /// For one try to take a lock that another holds.
    pub lock_us: f64,
    /// For one update, by the number of instances that wait for it.
    pub updates_us: Vec<(usize, f64)>,
    pub software: String,
}

impl Costs {
    /// For an update and for each instance that it is told to: the straight line through the first and the last.
    pub fn update_line(&self) -> Option<(f64, f64)> {
        let ((few, least), (many, most)) = (*self.updates_us.first()?, *self.updates_us.last()?);
        let each = (most - least) / (many as f64 - few as f64);
        Some((least - each * few as f64, each))
    }
}

pub fn measure(site: &Site, duration: Duration, interrupt: &Interrupt) -> Result<Costs> {
    let program = find("redis-server").context("redis-server is not installed")?;
    let (directory, port) = (site.server_directory("redis")?, free_port(1)?);
    let mut command = Command::new(&program);
    command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"]).arg(&directory);
    let mut redis = Daemon::start("redis", command, &directory.join("output.log"))?;
    redis.wait_until_ready(interrupt, || listens(port))?;
    let bench = Bench { port, leader: redis.leader(), duration: duration.min(Duration::from_secs(5)) };
    let session_us = bench.closed(session)?;
    interrupt.check()?;
    let mut first = Connection::open(port)?;
    first.ask(&["SET", "certificate", &"c".repeat(CERTIFICATE)])?;
    first.ask(&["SET", "lock", "another"])?;
    let certificate_us = bench.closed(|redis, _| redis.ask(&["GET", "certificate"]).map(drop))?;
    let lock_us = bench.closed(|redis, _| {
        redis.ask(&["SET", "lock", "mine", "NX", "PX", "10000"])?;
        redis.ask(&["GET", "lock"]).map(drop)
    })?;
    let mut updates_us = Vec::new();
    for hubs in HUBS {
        interrupt.check()?;
        updates_us.push((hubs, bench.updates(hubs)?));
    }
    Ok(Costs { session_us, certificate_us, lock_us, updates_us, software: version_line(&program, "-v") })
}

/// As phpredis has it with `locking_enabled`: take the lock, read, see that the lock is still held, store, give it back.
fn session(redis: &mut Connection, number: u64) -> Result<()> {
    const RELEASE: &str =
        "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end";
    let key = format!("PHPREDIS_SESSION:{:032}", number % 10_000);
    let lock = format!("{key}_LOCK");
    let token = format!("host|{number}");
    redis.ask(&["SET", &lock, &token, "NX", "PX", "40000"])?;
    redis.ask(&["GET", &key])?;
    redis.ask(&["GET", &lock])?;
    redis.ask(&["SETEX", &key, "1440", &"s".repeat(SESSION)])?;
    redis.ask(&["EVAL", RELEASE, "1", &lock, &token]).map(drop)
}

struct Bench {
    port: u16,
    leader: i32,
    duration: Duration,
}

impl Bench {
    /// CPU time for each call, by clients that know no pause.
    fn closed(&self, call: impl Fn(&mut Connection, u64) -> Result<()> + Sync) -> Result<f64> {
        let before = Snapshot::of(&[self.leader]);
        let end = Instant::now() + self.duration;
        let client = |client: usize| -> Result<u64> {
            let mut connection = Connection::open(self.port)?;
            let mut calls = 0;
            while Instant::now() < end {
                call(&mut connection, calls * CLIENTS as u64 + client as u64)?;
                calls += 1;
            }
            Ok(calls)
        };
        let calls = thread::scope(|scope| {
            let client = &client;
            let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
            let joined = clients.into_iter().map(|client| client.join().expect("it does not panic"));
            joined.sum::<Result<u64>>()
        })?;
        self.each(&before, calls)
    }

    /// One publisher, and so many who wait for what it publishes.
    fn updates(&self, hubs: usize) -> Result<f64> {
        let mut publisher = Connection::open(self.port)?;
        publisher.ask(&["DEL", "stream"])?;
        let (done, told) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let readers: Vec<_> =
                (0..hubs).map(|_| scope.spawn(|| follow(self.port, &done, &told))).collect();
            let published = self.publish(&mut publisher, hubs, &told);
            done.store(true, Ordering::Relaxed);
            for reader in readers {
                reader.join().expect("it does not panic")?;
            }
            published
        })
    }

    fn publish(&self, publisher: &mut Connection, hubs: usize, told: &AtomicU64) -> Result<f64> {
        let waiting = Instant::now() + PATIENCE;
        while blocked(publisher)? < hubs {
            ensure!(Instant::now() < waiting, "{hubs} readers do not wait for an update");
            thread::sleep(Duration::from_millis(10));
        }
        let before = Snapshot::of(&[self.leader]);
        let (end, mut updates) = (Instant::now() + self.duration, 0);
        let update = "u".repeat(UPDATE);
        while Instant::now() < end {
            let entry = ["XADD", "stream", "MAXLEN", "~", "10000", "*", "update", &update];
            publisher.ask(&entry)?;
            updates += 1;
            // One after the other: an instance that is late would have several for the price of one.
            while told.load(Ordering::Relaxed) < updates * hubs as u64 {
                ensure!(Instant::now() < end + PATIENCE, "an update does not reach all readers");
                thread::yield_now();
            }
        }
        self.each(&before, updates)
    }

    fn each(&self, before: &Snapshot, number: u64) -> Result<f64> {
        let usage = Usage::since(before, &[self.leader], number);
        usage.cpu_us_per_request.context("nothing was done")
    }
}

/// Reads the stream until it is over.
fn follow(port: u16, done: &AtomicBool, told: &AtomicU64) -> Result<()> {
    let mut connection = Connection::open(port)?;
    let mut place = "$".to_owned();
    while !done.load(Ordering::Relaxed) {
        let reply = connection.ask(&["XREAD", "COUNT", "64", "BLOCK", "200", "STREAMS", "stream", &place])?;
        if let Some((last, number)) = last_entry(&reply) {
            place = last.to_owned();
            told.fetch_add(number, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// `[[stream, [[id, fields], …]]]`: the last id, and how many there are.
fn last_entry(reply: &Reply) -> Option<(&str, u64)> {
    let Reply::List(streams) = reply else { return None };
    let Some(Reply::List(stream)) = streams.first() else { return None };
    let Some(Reply::List(entries)) = stream.last() else { return None };
    let Some(Reply::List(entry)) = entries.last() else { return None };
    match entry.first() {
        Some(Reply::Text(id)) => Some((id, entries.len() as u64)),
        _ => None,
    }
}

/// How many wait for an entry.
fn blocked(connection: &mut Connection) -> Result<usize> {
    let Reply::Text(info) = connection.ask(&["INFO", "clients"])? else { return Ok(0) };
    let line = info.lines().find_map(|line| line.strip_prefix("blocked_clients:"));
    Ok(line.and_then(|number| number.trim().parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_of_an_answer_is_found() {
        let text = |text: &str| Reply::Text(text.to_owned());
        let entry = |id: &str| Reply::List(vec![text(id), Reply::List(vec![text("update"), text("x")])]);
        let entries = Reply::List(vec![entry("1-1"), entry("1-2")]);
        let reply = Reply::List(vec![Reply::List(vec![text("stream"), entries])]);
        assert_eq!(last_entry(&reply), Some(("1-2", 2)));
        assert_eq!(last_entry(&Reply::Nothing), None);
    }

    #[test]
    fn an_update_costs_something_and_something_for_each_instance() {
        let updates_us = vec![(1, 25.0), (25, 100.0), (100, 520.0)];
        let costs =
            Costs { session_us: 1.0, certificate_us: 1.0, lock_us: 1.0, updates_us, software: String::new() };
        assert_eq!(costs.update_line(), Some((20.0, 5.0)));
    }
}
