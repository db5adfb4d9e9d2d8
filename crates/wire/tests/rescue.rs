//! What becomes of requests when their engine dies, as far as one process can show it: an engine "dies" when its
//! memory is given up. The real thing is in `processes.rs`.

use crate::common::{Io, SMALL, answered_name, backend, bytes, echo, head, start};
use regent_wire::{
    BodyState, Cancelled, Completion, End, EngineThread, Frame, Geometry, HeadKind, ReadError, Repeats,
    SlotTable, SubmitError, Token,
};
use std::sync::Arc;

/// Gives up the memory, as after the death of its engine; returns what was lost.
fn replace(io: &mut Io, geometry: Geometry) -> Vec<Token> {
    let to = backend(geometry);
    let from = std::mem::replace(&mut io.backend, Arc::clone(&to));
    io.port.move_requests(&from, &to, Repeats::Everybodys).lost
}

/// Runs what waits on one thread; returns the names in their order.
fn run_all(io: &mut Io) -> Vec<String> {
    io.backend.region().drain();
    start(&io.engine(), 0, 0, echo).join().unwrap()
}

#[test]
fn what_waited_goes_on_waiting_in_the_same_order() {
    let mut io = Io::new(SMALL);
    let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let tokens: Vec<Token> = names.iter().map(|name| io.submit(&head(name, Some(0)), 0)).collect();
    // Slots come back in another order than they were taken, so that order is not that of the slots.
    for token in &tokens[..10] {
        io.port.cancel(*token);
    }
    let mut expected = names[10..].to_vec();
    let mut tokens = tokens[10..].to_vec();
    for n in 20..30 {
        expected.push(n.to_string());
        tokens.push(io.submit(&head(&n.to_string(), Some(0)), 0));
    }
    for token in &tokens {
        io.port.end_body(*token, BodyState::Complete).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(replace(&mut io, SMALL), []);
    }
    assert_eq!(run_all(&mut io), expected);
    for (token, name) in tokens.into_iter().zip(expected) {
        assert_eq!(answered_name(&io.finish(token, b"").unwrap().head.unwrap()), name);
    }
}

#[test]
fn a_request_that_moves_keeps_its_limit() {
    let mut io = Io::new(SMALL);
    let token = io.port.acquire(&io.backend, &head("x", Some(0))).unwrap().unwrap();
    let limit = std::time::Duration::from_millis(1500);
    io.port.limit(token, limit);
    io.port.submit(token, 0, regent_wire::clock::now()).unwrap();
    assert_eq!(replace(&mut io, SMALL), []);
    let mut thread = EngineThread::new(io.engine(), 0, 0);
    thread.next_request().unwrap();
    assert_eq!(thread.time_limit(), Some(limit));
}

#[test]
fn a_half_sent_body_goes_on_where_it_was() {
    let mut io = Io::new(SMALL);
    let body = bytes(7, 10_000);
    let token = io.submit(&head("upload", Some(10_000)), 0);
    let sent = io.port.write_body(token, &body).unwrap();
    assert_eq!(sent, 4096);
    assert_eq!(io.port.write_body(token, &body[sent..]), Ok(0));
    assert_eq!(replace(&mut io, SMALL), []);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, echo);
    let response = io.finish(token, &body[sent..]).unwrap();
    assert_eq!(response.body, body);
    engine.region().drain();
    thread.join().unwrap();
}

#[test]
fn a_request_that_is_being_filled_goes_on_in_the_new_memory() {
    let mut io = Io::new(SMALL);
    let token = io.port.acquire(&io.backend, &head("x", Some(3))).unwrap().unwrap();
    io.port.write_body(token, b"abc").unwrap();
    io.port.end_body(token, BodyState::Complete).unwrap();
    assert_eq!(replace(&mut io, SMALL), []);
    io.port.submit(token, 0, regent_wire::clock::now()).unwrap();
    assert_eq!(run_all(&mut io), ["x"]);
    assert_eq!(io.finish(token, b"").unwrap().body, b"abc");
}

#[test]
fn what_was_running_is_lost_and_its_slot_comes_back() {
    let mut io = Io::new(SMALL);
    let running = io.submit(&head("running", None), 0);
    let cancelled = io.submit(&head("cancelled", None), 0);
    let waiting = io.submit(&head("waiting", None), 0);
    let [mut first, mut second] = [0, 1].map(|index| EngineThread::new(io.engine(), index, 0));
    first.next_request().unwrap();
    second.next_request().unwrap();
    assert_eq!(io.port.cancel(cancelled), Cancelled::WhileRunning);
    assert_eq!(io.port.in_use(), 3);
    assert_eq!(replace(&mut io, SMALL), [running]);
    assert_eq!(io.port.in_use(), 2);
    assert_eq!(io.port.read(running), Err(ReadError::Lost));
    assert_eq!(io.port.write_body(running, b"x"), Err(ReadError::Lost));
    assert_eq!(io.port.end_body(running, BodyState::Complete), Err(ReadError::Lost));
    assert_eq!(io.port.cancel(running), Cancelled::Ended);
    assert!(io.port.is_queued(waiting));
    assert_eq!(io.port.cancel(waiting), Cancelled::Withdrawn);
    assert_eq!(io.port.in_use(), 0);
}

#[test]
fn a_response_that_was_complete_survives_its_engine() {
    let mut io = Io::new(SMALL);
    let whole = io.submit(&head("whole", Some(0)), 0);
    let half = io.submit(&head("half", Some(0)), 0);
    let [mut first, mut second] = [0, 1].map(|index| EngineThread::new(io.engine(), index, 0));
    for thread in [&mut first, &mut second] {
        thread.next_request().unwrap();
        thread.head(HeadKind::Final, 200, b"", std::iter::empty()).unwrap();
        thread.body(b"part").unwrap();
        thread.publish();
    }
    first.end(Completion::Complete).unwrap();
    first.publish();
    first.release();
    // Not published: never seen.
    second.body(b"more").unwrap();
    assert_eq!(replace(&mut io, SMALL), [whole, half]);
    for (token, end) in [(whole, Ok(true)), (half, Err(ReadError::Lost))] {
        assert!(matches!(io.port.read(token), Ok(Some(Frame::Head(_)))));
        assert_eq!(io.port.read(token), Ok(Some(Frame::Body(b"part"[..].into()))));
        assert_eq!(io.port.read(token).map(is_whole), end);
        io.port.release(token);
    }
    assert_eq!(io.port.in_use(), 0);
}

#[test]
fn what_does_not_fit_the_new_memory_is_lost() {
    let large = Geometry { request_capacity: 8192, head_capacity: 8192, ..SMALL };
    let mut io = Io::new(large);
    let body = io.submit(&head("body", None), 0);
    io.port.write_body(body, &[0; 5000]).unwrap();
    let long = io.submit(&head(&"x".repeat(5000), None), 0);
    let filling = io.port.acquire(&io.backend, &head(&"x".repeat(5000), None)).unwrap().unwrap();
    let small = io.submit(&head("small", Some(0)), 0);
    let mut lost = replace(&mut io, SMALL);
    lost.sort_by_key(|token| token.slot);
    assert_eq!(lost, [body, long, filling]);
    assert_eq!(io.port.submit(filling, 0, regent_wire::clock::now()), Err(SubmitError::Corrupt));
    io.port.release(body);
    io.port.release(long);
    io.port.end_body(small, BodyState::Complete).unwrap();
    assert_eq!(run_all(&mut io), ["small"]);
    io.finish(small, b"").unwrap();
    assert_eq!(io.port.in_use(), 0);
}

/// One of two processes dies: one of its threads was idle, one runs a request, one has a request that was given up.
#[test]
fn the_death_of_one_process_fails_its_requests_only() {
    let mut io = Io::new(SMALL);
    let tokens = ["dead", "given up", "alive"].map(|name| io.submit(&head(name, None), 0));
    let engine = io.engine();
    let mut threads = [0, 1, 2].map(|index| EngineThread::new(io.engine(), index, 0));
    for thread in &mut threads {
        thread.next_request().unwrap();
    }
    io.port.cancel(tokens[1]);
    for thread in [0, 1] {
        io.backend.region().bury(thread);
        let lost = io.port.bury(&io.backend, thread, Repeats::Everybodys).lost;
        assert_eq!(lost, if thread == 0 { vec![tokens[0]] } else { vec![] });
    }
    io.port.release(tokens[0]);
    assert_eq!(io.port.in_use(), 1);
    threads[2].end(Completion::Complete).unwrap();
    threads[2].publish();
    threads[2].release();
    assert_eq!(io.port.read(tokens[2]).map(is_whole), Ok(true));
    io.port.release(tokens[2]);
    assert_eq!(io.port.in_use(), 0);
    // The dead write no more.
    threads.into_iter().for_each(std::mem::forget);
    let thread = start(&engine, 0, 0, echo);
    let token = io.submit(&head("next", Some(0)), 0);
    io.finish(token, b"").unwrap();
    engine.region().drain();
    thread.join().unwrap();
}

/// SlotTable and release of all phases leave nothing behind, whatever the order.
#[test]
fn two_ports_move_their_own_requests() {
    let geometry = Geometry { io_threads: 2, ..SMALL };
    let from = backend(geometry);
    let to = backend(geometry);
    let mut ports = [0, 1].map(|io| SlotTable::<()>::new(io, 64));
    let tokens = ports.each_mut().map(|port| {
        let token = port.acquire(&from, &head("x", Some(0))).unwrap().unwrap();
        port.submit(token, 1, regent_wire::clock::now()).unwrap();
        token
    });
    for port in &mut ports {
        assert_eq!(port.move_requests(&from, &to, Repeats::Nobodys), Default::default());
    }
    assert_eq!((from.region().waiting(1), to.region().waiting(1)), (2, 2));
    for (port, token) in ports.iter_mut().zip(tokens) {
        assert!(port.is_queued(token));
        assert_eq!(port.cancel(token), Cancelled::Withdrawn);
    }
}

/// Whether the frame is the end of a response that came whole.
fn is_whole(frame: Option<Frame>) -> bool {
    matches!(frame, Some(Frame::End(End { completion: Completion::Complete, .. })))
}
