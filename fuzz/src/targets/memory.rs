//! A server whose engine writes anything anywhere in their memory: it never panics, nor goes on for ever, and gets all its
//! slots back with the next engine.
//!
//! Each step is a byte for its kind and what follows of numbers.

use crate::input::Input;
use regent_wire::names::key;
use regent_wire::{EngineMemory, BodyState, Geometry, HeadBuilder, Repeats, SlotTable, Region, Scheduling, Token};
use std::sync::Arc;
use std::time::Duration;

const GEOMETRY: Geometry = Geometry {
    io_threads: 1,
    slots_per_io: 64,
    pools: 2,
    threads: 8,
    head_capacity: 4096,
    request_capacity: 4096,
    response_capacity: 4096,
    frame_capacity: 131_072,
};

/// As `include/regent_wire.h` computes them for this geometry.
const SLOTS: usize = 12_288;
const SLOT_SIZE: usize = 16_384;

const MOST_STEPS: usize = 200;

pub fn run(data: &[u8]) {
    let mut server = Server { port: SlotTable::new(0, 64), backend: backend(), tokens: Vec::new() };
    let mut input = Input::new(data);
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            break;
        }
        server.step(&mut input);
    }
    let next = backend();
    server.port.move_requests(&server.backend, &next, Repeats::Everybodys);
    for token in std::mem::take(&mut server.tokens) {
        server.port.cancel(token);
    }
    assert_eq!(server.port.in_use(), 0, "slots were lost to a hostile engine");
}

struct Server {
    port: SlotTable,
    backend: Arc<EngineMemory>,
    tokens: Vec<Token>,
}

impl Server {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(16) {
            0 | 1 => self.submit(input),
            2 => drop(self.token(input).map(|token| self.port.write_body(token, &vec![2; input.short().into()]))),
            3 => drop(self.token(input).map(|token| self.port.end_body(token, BodyState::Complete))),
            4 | 5 => self.read(input),
            6 => {
                if let Some(token) = self.take_token(input) {
                    self.port.cancel(token);
                }
            }
            7 => {
                if let Some(token) = self.take_token(input) {
                    self.port.release(token);
                }
            }
            8 => self.drain(),
            9 => {
                self.port.park(&self.backend);
                self.drain();
                self.port.unpark(&self.backend);
            }
            10 => self.look(input.below(8)),
            11 => {
                let thread = input.below(8);
                self.backend.region().bury(thread);
                self.port.bury(&self.backend, thread, Repeats::Everybodys);
            }
            _ => self.scribble(input),
        }
    }

    fn submit(&mut self, input: &mut Input<'_>) {
        let mut head = HeadBuilder::new();
        head.known(key("REQUEST_METHOD"), b"GET");
        head.known(key("REQUEST_URI"), b"/");
        let Ok(Some(token)) = self.port.acquire(&self.backend, head.build(None)) else { return };
        self.port.may_repeat(token, Duration::MAX);
        let _ = self.port.write_body(token, &vec![1; input.byte().into()]);
        if self.port.submit(token, input.below(2), regent_wire::clock::now()).is_ok() {
            self.tokens.push(token);
        }
    }

    fn read(&mut self, input: &mut Input<'_>) {
        let Some(token) = self.token(input) else { return };
        if let Ok(Some(frame)) = self.port.read(token) {
            let _ = format!("{frame:?}");
        }
    }

    fn look(&self, thread: usize) {
        let region = self.backend.region();
        region.idle(0);
        region.waiting(0);
        region.thread_state(thread);
        let view = region.thread_view(thread);
        self.port.request_line(view.token);
        self.tokens.iter().for_each(|token| {
            self.port.is_queued(*token);
        });
    }

    /// A word of the shared part, or of one of the slots that are given out first.
    fn scribble(&self, input: &mut Input<'_>) {
        let at = match input.byte() {
            0..64 => usize::from(input.short()) * 8 % SLOTS,
            place => SLOTS + usize::from(place) % 8 * SLOT_SIZE + usize::from(input.short()) * 8 % SLOT_SIZE,
        };
        let value = match input.below(4) {
            0 => u64::from(input.byte()),
            // A state word, or the header of a frame.
            1 => u64::from(input.byte()) << 8 | u64::from(input.byte()),
            2 => u64::from(input.byte()) << 32 | u64::from(input.byte()),
            _ => input.word(),
        };
        rustix::io::pwrite(self.backend.region().file(), &value.to_ne_bytes(), at as u64).expect("memory");
    }

    fn drain(&mut self) {
        let mut news = 0;
        self.port.drain(&self.backend, |_| news += 1);
        assert!(news <= 64, "more news than slots");
    }

    fn token(&self, input: &mut Input<'_>) -> Option<Token> {
        self.tokens.get(input.below(8) % self.tokens.len().max(1)).copied()
    }

    fn take_token(&mut self, input: &mut Input<'_>) -> Option<Token> {
        let token = self.token(input)?;
        self.tokens.retain(|other| *other != token);
        Some(token)
    }
}

fn backend() -> Arc<EngineMemory> {
    let region = Region::create(GEOMETRY).expect("memory");
    for pool in 0..GEOMETRY.pools as usize {
        region.tune(pool, Scheduling::Spread, 1, 0);
    }
    Arc::new(EngineMemory::new(region))
}
