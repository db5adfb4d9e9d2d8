//! Many requests at once: several I/O threads, eight engine threads, bodies of all sizes, clients that leave at any
//! moment. Every request is accounted for exactly once.

use crate::common::{Io, Random, SMALL, answered_name, backend, bytes, echo, engine, eventfd, head, start};
use regent_wire::{BodyState, Cancelled, Completion, End, Frame, Geometry, Scheduling, Token};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

const PORTS: usize = 3;
const THREADS: usize = 8;
const IN_FLIGHT: usize = 40;

/// What became of the requests of one port.
#[derive(Default, Debug, PartialEq, Eq)]
struct Account {
    answered: u64,
    withdrawn: u64,
    given_up: u64,
}

/// A request as its client sees it.
struct Client {
    number: u64,
    body: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    /// Leaves after so many frames.
    leaves_after: Option<u64>,
}

/// How often each request ran.
type Runs = Arc<Vec<AtomicU8>>;

struct Load {
    io: Io,
    clients: HashMap<Token, Client>,
    account: Account,
    random: Random,
    runs: Runs,
    source: Arc<Vec<u8>>,
}

impl Load {
    /// Runs requests with these numbers, so long at most; returns how many were started.
    fn run(&mut self, numbers: std::ops::Range<u64>, deadline: Instant) -> u64 {
        let mut next = numbers.start;
        let mut open = true;
        while open || !self.clients.is_empty() {
            // clock: a load for some time at most.
            open = open && next < numbers.end && Instant::now() < deadline;
            while open && next < numbers.end && self.clients.len() < IN_FLIGHT && self.start(next) {
                next += 1;
            }
            let tokens = self.io.wait_for(&crate::common::short()).unwrap_or_default();
            for token in tokens {
                self.serve(token);
            }
        }
        self.io.wait_until_empty();
        next - numbers.start
    }

    /// `false`: all slots are in use, by scripts whose clients have left.
    fn start(&mut self, number: u64) -> bool {
        let length = match self.random.below(20) {
            0 => self.random.below(20_000),
            1..=9 => 0,
            _ => self.random.below(200),
        } as usize;
        let at = self.random.below((self.source.len() - length) as u64) as usize;
        let body = self.source[at..at + length].to_vec();
        let head = head(&number.to_string(), Some(length as u64));
        let Some(token) = self.io.port.acquire(&self.io.backend, &head).unwrap() else { return false };
        let leaves_after = (self.random.below(8) == 0).then(|| self.random.below(3));
        let mut client = Client { number, body, sent: 0, received: Vec::new(), leaves_after };
        // Before or after: both are allowed.
        if self.random.below(2) == 0 {
            self.send(token, &mut client);
            self.io.port.submit(token, 0, regent_wire::clock::now()).unwrap();
        } else {
            self.io.port.submit(token, 0, regent_wire::clock::now()).unwrap();
            self.send(token, &mut client);
        }
        let gone = client.leaves_after == Some(0);
        self.clients.insert(token, client);
        if gone {
            self.leave(token);
        }
        true
    }

    fn send(&self, token: Token, client: &mut Client) {
        if client.sent == client.body.len() && !client.body.is_empty() {
            return;
        }
        client.sent += self.io.port.write_body(token, &client.body[client.sent..]).unwrap();
        if client.sent == client.body.len() {
            self.io.port.end_body(token, BodyState::Complete).unwrap();
        }
    }

    fn serve(&mut self, token: Token) {
        let Some(mut client) = self.clients.remove(&token) else { return };
        if client.sent < client.body.len() {
            self.send(token, &mut client);
        }
        while let Some(frame) = self.io.port.read(token).unwrap() {
            match frame {
                Frame::Head(head) => assert_eq!(answered_name(&head), client.number.to_string()),
                Frame::Body(part) => client.received.extend(part),
                Frame::End(End { completion, .. }) => {
                    assert_eq!(completion, Completion::Complete);
                    assert!(client.received == client.body, "request {} has another's body", client.number);
                    self.account.answered += 1;
                    self.io.port.release(token);
                    return;
                }
                other => panic!("{other:?}"),
            }
            if let Some(left) = &mut client.leaves_after {
                *left -= 1;
                if *left == 0 {
                    self.clients.insert(token, client);
                    self.leave(token);
                    return;
                }
            }
        }
        self.clients.insert(token, client);
    }

    fn leave(&mut self, token: Token) {
        let client = self.clients.remove(&token).unwrap();
        match self.io.port.cancel(token) {
            Cancelled::Withdrawn => {
                self.account.withdrawn += 1;
                // What runs in spite of that is found at the end.
                self.runs[client.number as usize].fetch_add(1, Ordering::Relaxed);
            }
            Cancelled::WhileRunning | Cancelled::Ended => self.account.given_up += 1,
        }
    }
}

fn run(requests: u64, time: Duration, scheduling: Scheduling, wake_limit: u32, spin: u32, kept_asleep: u32) {
    let geometry = Geometry { io_threads: PORTS as u32, threads: THREADS as u32, ..SMALL };
    let backend = backend(geometry);
    backend.region().tune(0, scheduling, wake_limit, spin);
    backend.region().keep_asleep(0, kept_asleep);
    let doorbells = [(); PORTS].map(|()| eventfd());
    let runs: Runs = Arc::new((0..requests).map(|_| AtomicU8::new(0)).collect());
    let engine = engine(&backend, &doorbells);
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let runs = Arc::clone(&runs);
            start(&engine, index, 0, move |thread, name| {
                runs[name.parse::<usize>().unwrap()].fetch_add(1, Ordering::Relaxed);
                echo(thread, name)
            })
        })
        .collect();
    let source = Arc::new(bytes(1, 1 << 16));
    let deadline = Instant::now() + time;
    let share = requests / PORTS as u64;
    let ports: Vec<_> = doorbells
        .into_iter()
        .enumerate()
        .map(|(io, doorbell)| {
            let mut load = Load {
                io: Io::of(io, Arc::clone(&backend), doorbell),
                clients: HashMap::new(),
                account: Account::default(),
                random: Random::seeded(0x9E37_79B9 + io as u64),
                runs: Arc::clone(&runs),
                source: Arc::clone(&source),
            };
            let first = io as u64 * share;
            std::thread::spawn(move || {
                let started = load.run(first..first + share, deadline);
                let account = load.account;
                assert_eq!(account.answered + account.withdrawn + account.given_up, started, "{account:?}");
                (first, started, account)
            })
        })
        .collect();
    let accounts: Vec<_> = ports.into_iter().map(|port| port.join().unwrap()).collect();
    backend.region().drain();
    let ran: usize = threads.into_iter().map(|thread| thread.join().unwrap().len()).sum();
    let mut expected = 0;
    for (first, started, account) in &accounts {
        expected += started - account.withdrawn;
        let range = *first as usize..(*first + *started) as usize;
        let once = |number: usize| runs[number].load(Ordering::Relaxed) == 1;
        assert_eq!(
            range.clone().find(|number| !once(*number)),
            None,
            "ran twice, or never, or though withdrawn"
        );
        assert!(account.answered > 0 && account.given_up > 0);
    }
    assert_eq!(ran as u64, expected);
    let started: u64 = accounts.iter().map(|(_, started, _)| started).sum();
    println!("{started} requests: {accounts:?}");
}

#[test]
fn every_request_is_accounted_for() {
    run(100_000, Duration::from_secs(3), Scheduling::Spread, 1, 0, 0);
    run(100_000, Duration::from_secs(2), Scheduling::Pack, 2, 100, 0);
    run(100_000, Duration::from_secs(2), Scheduling::Spread, 1, 0, THREADS as u32 - 2);
}

#[test]
#[ignore = "takes minutes"]
fn every_one_of_ten_million_requests_is_accounted_for() {
    run(10_000_000, Duration::from_secs(3600), Scheduling::Spread, 1, 0, 1);
}

/// Scaling down while requests come: no thread that ends takes a request with it, none that stays oversleeps.
#[test]
fn threads_retire_under_load() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let threads: Vec<_> = (0..THREADS).map(|index| start(&engine, index, 0, echo)).collect();
    let done = Arc::new(AtomicBool::new(false));
    let retiring = {
        let (backend, done) = (Arc::clone(&io.backend), Arc::clone(&done));
        std::thread::spawn(move || {
            for thread in 1..THREADS {
                let before = backend.region().thread_view(0).requests;
                while backend.region().thread_view(0).requests < before + 20 && !done.load(Ordering::Relaxed)
                {
                    std::thread::yield_now();
                }
                backend.region().retire(thread);
            }
        })
    };
    for n in 0..3000 {
        let token = io.submit(&head(&n.to_string(), Some(0)), 0);
        io.finish(token, b"").unwrap();
    }
    done.store(true, Ordering::Relaxed);
    retiring.join().unwrap();
    let mut threads = threads.into_iter();
    let last = threads.next().unwrap();
    let mut total: usize = threads.map(|thread| thread.join().unwrap().len()).sum();
    engine.region().drain();
    total += last.join().unwrap().len();
    assert_eq!(total, 3000);
}
