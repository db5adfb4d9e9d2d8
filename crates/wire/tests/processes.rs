//! Engines as processes that are killed at any moment: every request is answered once, lost, or moved.

use crate::common::{Io, Random, SMALL, answered_name, backend, bytes, echo, head, start};
use regent_wire::{BodyState, Completion, End, Engine, Frame, ReadError, Region, Repeats, Token};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::HashMap;
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The threads that an engine process has: the memory is its standard input, the doorbell its standard error.
const THREADS: &str = "REGENT_WIRE_TEST_THREADS";
const IN_FLIGHT: usize = 30;
const DEATHS: usize = 60;

/// Not a test: the engine process of the tests below.
#[test]
fn engine_process() {
    let Ok(threads) = std::env::var(THREADS) else { return };
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
    let (first, end) = threads.split_once('-').unwrap();
    let memory = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let doorbell = std::io::stderr().as_fd().try_clone_to_owned().unwrap();
    let engine = Arc::new(Engine::new(0, Region::open(memory).unwrap(), vec![doorbell]));
    let range = first.parse::<usize>().unwrap()..end.parse().unwrap();
    let threads: Vec<_> = range.map(|index| start(&engine, index, 0, echo)).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn spawn(io: &Io, threads: Range<usize>) -> Child {
    let duplicate = |fd: &dyn AsFd| -> OwnedFd { fd.as_fd().try_clone_to_owned().unwrap() };
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "engine_process", "--nocapture"])
        .env(THREADS, format!("{}-{}", threads.start, threads.end))
        .stdin(Stdio::from(duplicate(&io.backend.region().file())))
        .stdout(Stdio::null())
        .stderr(Stdio::from(duplicate(&io.doorbell)))
        .spawn()
        .unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

struct Client {
    name: String,
    body: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
}

struct Load {
    io: Io,
    random: Random,
    clients: HashMap<Token, Client>,
    started: u64,
    answered: u64,
    lost: u64,
    /// Their clients left, while they waited or ran.
    left: u64,
}

impl Load {
    fn new() -> Self {
        Self {
            io: Io::new(SMALL),
            random: Random(42),
            clients: HashMap::new(),
            started: 0,
            answered: 0,
            lost: 0,
            left: 0,
        }
    }

    /// Keeps requests in flight for so long.
    fn run(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            while self.clients.len() < IN_FLIGHT && self.io.port.in_use() < 64 {
                self.start();
            }
            self.serve_all();
            if self.random.below(8) == 0 {
                self.leave();
            }
        }
    }

    /// A client gives its request up, in whatever state that is.
    fn leave(&mut self) {
        let Some(token) = self.clients.keys().next().copied() else { return };
        self.clients.remove(&token);
        self.io.port.cancel(token);
        self.left += 1;
    }

    /// The engine is killed, and the next one gets what waited.
    fn replace_engine(&mut self, engine: Child) {
        kill(engine);
        let to = backend(SMALL);
        let from = std::mem::replace(&mut self.io.backend, Arc::clone(&to));
        for token in self.io.port.move_requests(&from, &to, Repeats::Nobodys).lost {
            self.serve(token);
        }
    }

    /// Until all are answered.
    fn finish(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.clients.is_empty() {
            assert!(Instant::now() < deadline, "{} requests hang", self.clients.len());
            self.serve_all();
        }
        self.io.wait_until_empty();
        assert_eq!(self.answered + self.lost + self.left, self.started);
    }

    fn start(&mut self) {
        let length = if self.random.below(4) == 0 { self.random.below(20_000) } else { 10 } as usize;
        let client = Client {
            name: self.started.to_string(),
            body: bytes(self.started + 1, length),
            sent: 0,
            received: Vec::new(),
        };
        let token = self.io.submit(&head(&client.name, Some(length as u64)), 0);
        self.clients.insert(token, client);
        self.started += 1;
        self.serve(token);
    }

    fn serve_all(&mut self) {
        for token in self.io.wait_for(&crate::common::short()).unwrap_or_default() {
            self.serve(token);
        }
    }

    fn serve(&mut self, token: Token) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        let port = &self.io.port;
        if client.sent < client.body.len() {
            // `Lost` shows when it reads.
            if let Ok(count) = port.write_body(token, &client.body[client.sent..]) {
                client.sent += count;
                if client.sent == client.body.len() {
                    port.end_body(token, BodyState::Complete).unwrap();
                }
            }
        }
        let lost = loop {
            match port.read(token) {
                Ok(Some(Frame::Head(head))) => assert_eq!(answered_name(&head), client.name),
                Ok(Some(Frame::Body(part))) => client.received.extend(part),
                Ok(Some(Frame::End(End { completion, .. }))) => {
                    assert_eq!(completion, Completion::Complete);
                    assert!(client.received == client.body, "the wrong body");
                    break false;
                }
                Ok(Some(other)) => panic!("{other:?}"),
                Ok(None) => return,
                Err(ReadError::Lost) => break true,
                Err(ReadError::Corrupt) => panic!("a frame in pieces"),
            }
        };
        self.lost += u64::from(lost);
        self.answered += u64::from(!lost);
        self.clients.remove(&token);
        self.io.port.release(token);
    }
}

#[test]
fn every_request_is_answered_lost_or_moved() {
    let mut load = Load::new();
    for _ in 0..DEATHS {
        let engine = spawn(&load.io, 0..8);
        // Much of this the process needs to start.
        let time = load.random.below(30_000);
        load.run(Duration::from_micros(time));
        load.replace_engine(engine);
    }
    finish_with_a_last_engine(load);
}

#[test]
#[ignore = "takes minutes"]
fn every_one_of_ten_million_requests_is_answered_lost_or_given_up() {
    let mut load = Load::new();
    while load.started < 10_000_000 {
        let engine = spawn(&load.io, 0..8);
        let time = load.random.below(1_000_000);
        load.run(Duration::from_micros(time));
        load.replace_engine(engine);
    }
    finish_with_a_last_engine(load);
}

fn finish_with_a_last_engine(mut load: Load) {
    let mut engine = spawn(&load.io, 0..8);
    load.finish();
    load.io.backend.region().drain();
    assert!(engine.wait().unwrap().success());
    println!("{} requests, {} lost, {} given up", load.started, load.lost, load.left);
    assert!(load.answered > load.lost);
}

#[test]
fn the_other_process_of_an_engine_goes_on() {
    let mut load = Load::new();
    let halves = [0..4, 4..8];
    let mut engines = halves.clone().map(|threads| spawn(&load.io, threads));
    for _ in 0..DEATHS {
        let time = load.random.below(30_000);
        load.run(Duration::from_micros(time));
        let half = load.random.below(2) as usize;
        engines[half].kill().unwrap();
        engines[half].wait().unwrap();
        for thread in halves[half].clone() {
            load.io.backend.region().bury(thread);
            let backend = Arc::clone(&load.io.backend);
            for token in load.io.port.bury(&backend, thread, Repeats::Nobodys).lost {
                load.serve(token);
            }
        }
        engines[half] = spawn(&load.io, halves[half].clone());
    }
    load.finish();
    load.io.backend.region().drain();
    for mut engine in engines {
        assert!(engine.wait().unwrap().success());
    }
    println!("{} requests, {} lost", load.started, load.lost);
    assert!(load.answered > load.lost);
}
