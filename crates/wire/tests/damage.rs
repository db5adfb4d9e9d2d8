//! What an engine does to the shared memory is found out, wherever requests would wait for ever because of it; and an
//! engine that keeps the protocol is never suspected.

use crate::common::{Io, Random, SMALL, backend, bytes, echo, head, start};
use regent_wire::{BodyState, Damage, Geometry, ReadError, SubmitError, Token, clock};
use std::sync::Arc;

/// Offsets as `include/regent_wire.h` computes them for `SMALL`.
const TAIL: u64 = 4096;
const HEAD: u64 = TAIL + 64;
const THREAD_STATE: u64 = 4096 + 2 * 320 + 4;
const DIRTY: u64 = 5888;
const CELLS: u64 = DIRTY + 64;
const SLOT: u64 = 12_288;
const REQUEST_TAIL: u64 = SLOT + 24;
const RESPONSE_HEAD: u64 = SLOT + 32;
const REQUEST_HEAD: u64 = SLOT + 64;
const RESPONSE_TAIL: u64 = SLOT + 72;
const RESPONSE_RING: u64 = SLOT + 12_288;

/// Inspections after which whatever can be found is found.
const ENOUGH: usize = 10;

fn scribble(io: &Io, at: u64, value: &[u8]) {
    rustix::io::pwrite(io.backend.region().file(), value, at).unwrap();
}

fn inspect(io: &mut Io) -> Vec<Token> {
    let mut news = Vec::new();
    io.backend.inspect();
    io.port.inspect(std::slice::from_ref(&io.backend), |token| news.push(token));
    news
}

/// What is found when this is written while one request waits in the first slot.
fn found(at: u64, value: &[u8]) -> Option<Damage> {
    let mut io = Io::new(SMALL);
    let token = io.submit(&head("x", None), 0);
    assert_eq!(token.slot, 0);
    inspect(&mut io);
    assert_eq!(io.backend.damage(), None);
    scribble(&io, at, value);
    (0..ENOUGH).for_each(|_| drop(inspect(&mut io)));
    io.backend.damage()
}

#[test]
fn damaged_words_are_found() {
    let huge = u64::MAX.to_le_bytes();
    let one = 1u64.to_le_bytes();
    let cases: [(&str, u64, &[u8], Damage); 11] = [
        ("a queue whose end was moved", TAIL, &[0; 8], Damage::Queue),
        ("tokens that are taken again", HEAD, &huge, Damage::Queue),
        ("more taken than was put in", HEAD, &2u64.to_le_bytes(), Damage::Queue),
        ("a token that nobody put there", CELLS, &huge, Damage::Token),
        ("a request that was taken and not begun", HEAD, &one, Damage::Stranded),
        ("a slot that looks free", SLOT, &[0; 8], Damage::State),
        ("a slot that no thread can run", SLOT, &(500u64 << 40 | 1 << 8 | 2).to_le_bytes(), Damage::State),
        ("a request body of another length", REQUEST_TAIL, &one, Damage::Ring),
        ("more read than was written", REQUEST_HEAD, &one, Damage::Ring),
        ("a response that the server has not read", RESPONSE_HEAD, &one, Damage::Ring),
        ("a response beyond its ring", RESPONSE_TAIL, &huge, Damage::Ring),
    ];
    for (what, at, value, damage) in cases {
        assert_eq!(found(at, value), Some(damage), "{what}");
    }
    assert_eq!(found(THREAD_STATE, &9u32.to_le_bytes()), Some(Damage::Thread));
}

#[test]
fn damage_is_noted_when_a_request_meets_it() {
    let mut io = Io::new(SMALL);
    let token = io.port.acquire(&io.backend, &head("x", None)).unwrap().unwrap();
    scribble(&io, HEAD, &5u64.to_le_bytes());
    assert_eq!(io.port.submit(token, 0, clock::now()), Err(SubmitError::Corrupt));
    assert_eq!(io.backend.damage(), Some(Damage::Queue));

    let mut io = Io::new(SMALL);
    let token = io.submit(&head("x", None), 0);
    scribble(&io, REQUEST_HEAD, &5u64.to_le_bytes());
    assert_eq!(io.port.write_body(token, b"abc"), Err(ReadError::Corrupt));
    assert_eq!(io.backend.damage(), Some(Damage::Ring));

    let mut io = Io::new(SMALL);
    let token = io.submit(&head("x", None), 0);
    scribble(&io, RESPONSE_RING, &[0xFF; 8]);
    scribble(&io, RESPONSE_TAIL, &8u64.to_le_bytes());
    assert_eq!(io.port.read(token), Err(ReadError::Corrupt));
    assert_eq!(io.backend.damage(), Some(Damage::Frame));
}

#[test]
fn a_response_whose_mark_was_lost_is_found() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, echo);
    let token = io.submit(&head("x", Some(0)), 0);
    io.port.end_body(token, BodyState::Complete).unwrap();
    while io.backend.region().thread_view(0).requests == 0 || inspect(&mut io).is_empty() {
        scribble(&io, DIRTY, &[0; 8]);
        std::thread::yield_now();
    }
    assert_eq!(inspect(&mut io), [token]);
    assert_eq!(io.backend.damage(), None);
    engine.region().drain();
    thread.join().unwrap();
}

/// With more slots than one inspection looks at, and an engine that is being replaced beside the one that serves.
#[test]
fn each_of_two_engines_has_all_its_requests_looked_at() {
    let geometry = Geometry { slots_per_io: 8192, ..SMALL };
    let (mut io, other) = (Io::new(geometry), backend(geometry));
    let engine = io.engine();
    let thread = start(&engine, 0, 0, echo);
    let token = io.submit(&head("x", Some(0)), 0);
    io.port.end_body(token, BodyState::Complete).unwrap();
    while inspect(&mut io).is_empty() {
        std::thread::yield_now();
    }
    for backends in [[Arc::clone(&other), Arc::clone(&io.backend)], [Arc::clone(&io.backend), other]] {
        let mut news = Vec::new();
        (0..4).for_each(|_| io.port.inspect(&backends, |token| news.push(token)));
        assert_eq!(news, [token, token], "it is looked at every other time");
    }
    engine.region().drain();
    thread.join().unwrap();
}

/// Requests that wait, run, are withdrawn, are given up while they run, and are answered, with bodies larger than the
/// rings.
#[test]
fn an_engine_that_keeps_the_protocol_is_never_suspected() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let threads: Vec<_> = (0..4).map(|index| start(&engine, index, 0, echo)).collect();
    let mut random = Random::seeded(11);
    for round in 0..2000 {
        let length = random.below(9000) as usize;
        let body = bytes(round, length);
        let waiting: Vec<Token> = (0..random.below(6)).map(|_| io.submit(&head("w", None), 0)).collect();
        let token = io.submit(&head("x", Some(length as u64)), 0);
        inspect(&mut io);
        for token in waiting {
            inspect(&mut io);
            io.port.cancel(token);
        }
        inspect(&mut io);
        assert_eq!(io.finish(token, &body).unwrap().body, body);
        inspect(&mut io);
        assert_eq!(io.backend.damage(), None, "in round {round}");
    }
    io.wait_until_empty();
    engine.region().drain();
    threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    io.backend.inspect();
    assert_eq!(io.backend.damage(), None);
}
