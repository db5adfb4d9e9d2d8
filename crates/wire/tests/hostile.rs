//! An engine that writes anything anywhere: the server never panics, never reads beside the memory, never loops for
//! ever, and only that engine's requests suffer.

use crate::common::{Io, Random, SMALL, answered_name, backend, echo, engine, head, start};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use regent_wire::{BodyState, EngineMemory, Repeats, SlotTable, Token, clock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// As `include/regent_wire.h` computes them for `SMALL`.
const SLOTS: u64 = 12_288;
const SLOT_SIZE: u64 = 16_384;
const REQUEST_RING: u64 = 8192;
const RESPONSE_RING: u64 = 12_288;

#[derive(Debug, Clone)]
enum Step {
    Submit { pool: usize, body: usize },
    Write { which: usize, length: usize },
    EndBody { which: usize },
    Read { which: usize },
    Cancel { which: usize },
    Release { which: usize },
    Drain,
    Park,
    Look,
    Inspect,
    Bury { thread: usize },
    Scribble { at: u64, value: u64 },
}

/// Any word before the slots: header, pools, threads, doorbells, FIFO cells.
fn shared() -> impl Strategy<Value = u64> {
    (0..SLOTS / 8).prop_map(|word| word * 8)
}

/// Any word of the control part or the ring's first words of one of the first slots, which are given out first.
fn in_slot(slots: std::ops::Range<u64>) -> impl Strategy<Value = u64> {
    let within = prop_oneof![
        0..32_u64,
        (0..8_u64).prop_map(|word| REQUEST_RING / 8 + word),
        (0..64_u64).prop_map(|word| RESPONSE_RING / 8 + word),
    ];
    (slots, within).prop_map(|(slot, word)| SLOTS + slot * SLOT_SIZE + word * 8)
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        0..6_u64,
        any::<u64>(),
        // A state word of an early generation.
        (0..4_u64, 0..5_u64).prop_map(|(generation, state)| generation << 8 | state),
        // A frame's header.
        (0..20_u64, 0..7_u64).prop_map(|(length, kind)| kind << 32 | length),
        (0..20_u64).prop_map(|n| 1 << (n * 3)),
        4090..4105_u64,
    ]
}

fn step(at: impl Strategy<Value = u64> + 'static) -> impl Strategy<Value = Step> {
    let which = || 0..8_usize;
    prop_oneof![
        2 => (0..2_usize, 0..5000_usize).prop_map(|(pool, body)| Step::Submit { pool, body }),
        1 => (which(), 0..9000_usize).prop_map(|(which, length)| Step::Write { which, length }),
        1 => which().prop_map(|which| Step::EndBody { which }),
        3 => which().prop_map(|which| Step::Read { which }),
        1 => which().prop_map(|which| Step::Cancel { which }),
        1 => which().prop_map(|which| Step::Release { which }),
        1 => Just(Step::Drain),
        1 => Just(Step::Park),
        1 => Just(Step::Look),
        1 => Just(Step::Inspect),
        1 => (0..8_usize).prop_map(|thread| Step::Bury { thread }),
        8 => (at, value()).prop_map(|(at, value)| Step::Scribble { at, value }),
    ]
}

fn scribble(backend: &EngineMemory, at: u64, value: u64) {
    rustix::io::pwrite(backend.region().file(), &value.to_ne_bytes(), at).unwrap();
}

struct Server {
    port: SlotTable,
    backend: Arc<EngineMemory>,
    tokens: Vec<Token>,
}

impl Server {
    fn run(&mut self, step: &Step) {
        let backend = Arc::clone(&self.backend);
        let token = |which: usize| self.tokens.get(which % self.tokens.len().max(1)).copied();
        match *step {
            Step::Submit { pool, body } => {
                let Ok(Some(token)) = self.port.acquire(&backend, &head("x", None)) else { return };
                self.port.may_repeat(token, Duration::MAX);
                let _ = self.port.write_body(token, &vec![1; body]);
                if self.port.submit(token, pool, regent_wire::clock::now()).is_ok() {
                    self.tokens.push(token);
                }
            }
            Step::Write { which, length } => {
                token(which).map(|token| self.port.write_body(token, &vec![2; length]));
            }
            Step::EndBody { which } => {
                token(which).map(|token| self.port.end_body(token, BodyState::Complete));
            }
            Step::Read { which } => {
                if let Some(Ok(Some(frame))) = token(which).map(|token| self.port.read(token)) {
                    let _ = format!("{frame:?}");
                }
            }
            Step::Cancel { which } => {
                if let Some(token) = token(which) {
                    self.port.cancel(token);
                    self.tokens.retain(|other| *other != token);
                }
            }
            Step::Release { which } => {
                if let Some(token) = token(which) {
                    self.port.release(token);
                    self.tokens.retain(|other| *other != token);
                }
            }
            Step::Drain => self.drain(),
            Step::Park => {
                self.port.park(&backend);
                self.drain();
                self.port.unpark(&backend);
            }
            Step::Look => {
                let region = backend.region();
                region.idle(0);
                region.waiting(0);
                region.thread_state(3);
                region.thread_view(3);
                self.port.overdue(&backend, clock::now(), |_| {});
                self.port.write_off(region.thread_view(3).token);
                self.tokens.iter().for_each(|token| {
                    self.port.is_queued(*token);
                });
            }
            Step::Inspect => {
                backend.inspect();
                let mut news = 0;
                self.port.inspect(std::slice::from_ref(&backend), |_| news += 1);
                assert!(news <= 64, "more news than slots");
            }
            Step::Bury { thread } => {
                backend.region().bury(thread);
                self.port.bury(&backend, thread, Repeats::Everybodys);
            }
            Step::Scribble { at, value } => scribble(&backend, at, value),
        }
    }

    fn drain(&mut self) {
        let mut news = 0;
        self.port.drain(&self.backend, |_| news += 1);
        assert!(news <= 64, "more news than slots");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Everything in the memory may change at any moment; requests to another engine, of the same port, are answered,
    /// and the slots come back when the hostile engine is replaced.
    #[test]
    fn only_the_requests_of_the_hostile_engine_suffer(
        steps in prop::collection::vec(step(prop_oneof![shared(), in_slot(0..8)]), 1..150),
    ) {
        let mut io = Io::new(SMALL);
        let honest = Arc::clone(&io.backend);
        let victims: Vec<_> = (0..4).map(|n| io.submit(&head(&n.to_string(), Some(3)), 0)).collect();
        let mut server = Server { port: io.port, backend: backend(SMALL), tokens: Vec::new() };
        steps.iter().for_each(|step| server.run(step));
        let next = backend(SMALL);
        server.port.move_requests(&server.backend, &next, Repeats::Everybodys);
        for token in server.tokens {
            server.port.cancel(token);
        }
        prop_assert_eq!(server.port.in_use(), victims.len());

        io.port = server.port;
        let thread = start(&engine(&honest, [&io.doorbell]), 0, 0, echo);
        for (n, token) in victims.into_iter().enumerate() {
            let response = io.finish(token, b"abc").unwrap();
            prop_assert_eq!(answered_name(&response.head.unwrap()), n.to_string());
            prop_assert_eq!(response.body, b"abc");
        }
        io.wait_until_empty();
        honest.region().drain();
        thread.join().unwrap();
    }

    /// What goes on in one slot does not reach the others of the same memory.
    #[test]
    fn a_damaged_slot_harms_no_other(
        steps in prop::collection::vec((in_slot(0..1), value()), 1..50),
    ) {
        let mut io = Io::new(SMALL);
        let damaged = io.submit(&head("damaged", None), 1);
        prop_assert_eq!(damaged.slot, 0);
        let engine = io.engine();
        let thread = start(&engine, 0, 0, echo);
        for (n, (at, value)) in steps.into_iter().enumerate() {
            scribble(&io.backend, at, value);
            let _ = io.port.read(damaged);
            let _ = io.port.write_body(damaged, &[0; 3000]);
            if n % 8 == 0 {
                let token = io.submit(&head(&n.to_string(), Some(3)), 0);
                let response = io.finish(token, b"abc").unwrap();
                prop_assert_eq!(answered_name(&response.head.unwrap()), n.to_string());
                prop_assert_eq!(response.body, b"abc");
            }
        }
        engine.region().drain();
        thread.join().unwrap();
    }
}

/// The words change while the server looks at them.
#[test]
fn a_server_survives_an_engine_that_writes_all_the_time() {
    let mut server = Server { port: SlotTable::new(0, 64), backend: backend(SMALL), tokens: Vec::new() };
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(prop_oneof![shared(), in_slot(0..8)]), 4000);
    let steps = steps.new_tree(&mut runner).unwrap().current();
    let hostile = Arc::clone(&server.backend);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::seeded(7);
            while !stop.load(Ordering::Relaxed) {
                let at = match random.below(2) {
                    0 => random.below(SLOTS / 8) * 8,
                    _ => SLOTS + random.below(8) * SLOT_SIZE + random.below(32) * 8,
                };
                scribble(&hostile, at, random.next() >> random.below(64));
            }
        });
        steps.iter().for_each(|step| server.run(step));
        stop.store(true, Ordering::Relaxed);
    });
}
