//! Requests that are run once more after the death of their engine, or of one process of it.

use crate::common::{Io, SMALL, answered_name, backend, echo, head, start};
use regent_wire::{
    BodyState, Completion, Engine, EngineThread, HeadKind, ReadError, Repeats, Rescued, Token, clock,
};
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A request that may be run again, with all of its body.
fn submit(io: &mut Io, name: &str, body: &[u8]) -> Token {
    let token = io.port.acquire(&io.backend, &head(name, Some(body.len() as u64))).unwrap().unwrap();
    io.port.may_repeat(token, clock::now() + 60 * SECOND);
    assert_eq!(io.port.write_body(token, body), Ok(body.len()));
    io.port.end_body(token, BodyState::Complete).unwrap();
    io.port.submit(token, 0, clock::now()).unwrap();
    token
}

/// A thread that has taken the next request, and dies with it.
fn run(engine: &Arc<Engine>, index: usize) -> EngineThread {
    let mut thread = EngineThread::new(Arc::clone(engine), index, 0);
    thread.next_request().unwrap();
    thread
}

/// Gives up the memory, as after the death of its engine.
fn replace(io: &mut Io, repeats: Repeats) -> Rescued {
    let to = backend(SMALL);
    let from = std::mem::replace(&mut io.backend, Arc::clone(&to));
    io.port.move_requests(&from, &to, repeats)
}

/// Runs what waits on one thread; returns the names in their order.
fn run_all(io: &mut Io) -> Vec<String> {
    io.backend.region().drain();
    start(&io.engine(), 0, 0, echo).join().unwrap()
}

#[test]
fn what_ran_goes_before_what_waited_and_runs_once_more() {
    let mut io = Io::new(SMALL);
    let tokens = ["a", "b", "c", "d"].map(|name| submit(&mut io, name, b"body"));
    let engine = io.engine();
    let threads = [run(&engine, 0), run(&engine, 1)];
    let rescued = replace(&mut io, Repeats::Everybodys);
    assert_eq!(rescued, Rescued { lost: vec![], repeated: tokens[..2].to_vec() });
    assert_eq!(tokens.map(|token| io.port.is_repeated(token)), [true, true, false, false]);
    assert_eq!(run_all(&mut io), ["a", "b", "c", "d"]);
    for (token, name) in tokens.into_iter().zip(["a", "b", "c", "d"]) {
        let response = io.finish(token, b"").unwrap();
        assert_eq!(answered_name(&response.head.unwrap()), name);
        assert_eq!(response.body, b"body");
    }
    assert_eq!(io.port.in_use(), 0);
    threads.into_iter().for_each(std::mem::forget);
}

#[test]
fn nothing_runs_a_third_time() {
    let mut io = Io::new(SMALL);
    let token = submit(&mut io, "x", b"");
    std::mem::forget(run(&io.engine(), 0));
    assert_eq!(replace(&mut io, Repeats::Everybodys).repeated, [token]);
    std::mem::forget(run(&io.engine(), 0));
    assert_eq!(replace(&mut io, Repeats::Everybodys).lost, [token]);
    assert_eq!(io.port.read(token), Err(ReadError::Lost));
}

#[test]
fn a_request_that_waits_moves_as_often_as_it_has_to_and_may_still_be_repeated() {
    let mut io = Io::new(SMALL);
    let token = submit(&mut io, "x", b"");
    for _ in 0..3 {
        assert_eq!(replace(&mut io, Repeats::Nobodys), Rescued::default());
    }
    std::mem::forget(run(&io.engine(), 0));
    assert_eq!(replace(&mut io, Repeats::Everybodys).repeated, [token]);
}

#[test]
fn the_thread_that_is_at_fault_takes_its_request_along() {
    let mut io = Io::new(SMALL);
    let guilty = submit(&mut io, "guilty", b"");
    let innocent = submit(&mut io, "innocent", b"");
    let engine = io.engine();
    std::mem::forget(run(&engine, 0));
    std::thread::spawn(move || std::mem::forget(run(&engine, 1))).join().unwrap();
    let tid = io.backend.region().thread_view(0).tid;
    let rescued = replace(&mut io, Repeats::AllBut(tid));
    assert_eq!(rescued, Rescued { lost: vec![guilty], repeated: vec![innocent] });
}

#[test]
fn what_cannot_be_unsaid_or_said_again_is_lost() {
    let mut io = Io::new(SMALL);
    let open = io.port.acquire(&io.backend, &head("open", None)).unwrap().unwrap();
    io.port.may_repeat(open, Duration::MAX);
    io.port.submit(open, 0, clock::now()).unwrap();
    let large = io.port.acquire(&io.backend, &head("large", None)).unwrap().unwrap();
    io.port.may_repeat(large, Duration::MAX);
    io.port.submit(large, 0, clock::now()).unwrap();
    let [begun, unread, logged, plain] =
        ["begun", "unread", "logged", "plain"].map(|name| submit(&mut io, name, b""));
    let unasked = io.submit(&head("unasked", Some(0)), 0);
    io.port.end_body(unasked, BodyState::Complete).unwrap();
    let engine = io.engine();
    let mut threads: Vec<_> = (0..7).map(|index| run(&engine, index)).collect();
    let mut buffer = [0; 4096];
    for _ in 0..2 {
        io.port.write_body(large, &[1; 4096]).unwrap();
        threads[1].read_body(&mut buffer).unwrap();
    }
    io.port.end_body(large, BodyState::Complete).unwrap();
    for begun in [2, 3] {
        threads[begun].head(HeadKind::Informational, 103, b"", std::iter::empty()).unwrap();
        threads[begun].publish();
    }
    threads[4].log(3, b"a warning", b"").unwrap();
    threads[4].publish();
    assert!(io.port.read(begun).unwrap().is_some());
    assert!(io.port.read(logged).unwrap().is_some());
    let Rescued { mut lost, repeated } = replace(&mut io, Repeats::Everybodys);
    lost.sort_by_key(|token| std::cmp::Reverse(token.slot));
    let mut expected = vec![open, large, begun, unread, unasked];
    expected.sort_by_key(|token| std::cmp::Reverse(token.slot));
    assert_eq!((lost, repeated.len()), (expected, 2));
    assert!([logged, plain].iter().all(|token| repeated.contains(token)));
    threads.into_iter().for_each(std::mem::forget);
}

#[test]
fn the_time_on_a_thread_counts_for_its_limit_and_not_as_a_wait() {
    let mut io = Io::new(SMALL);
    let arrival = clock::now() - SECOND;
    let mut tokens = Vec::new();
    for limit in [Duration::from_nanos(1), 60 * SECOND] {
        let token = io.port.acquire(&io.backend, &head("x", Some(0))).unwrap().unwrap();
        io.port.may_repeat(token, Duration::MAX);
        io.port.limit(token, limit);
        io.port.end_body(token, BodyState::Complete).unwrap();
        io.port.submit(token, 0, arrival).unwrap();
        tokens.push(token);
    }
    let engine = io.engine();
    let threads = [run(&engine, 0), run(&engine, 1)];
    let started = threads[1].started();
    while clock::now() < started + Duration::from_millis(2) {}
    let rescued = replace(&mut io, Repeats::Everybodys);
    assert_eq!(rescued, Rescued { lost: vec![tokens[0]], repeated: vec![tokens[1]] });
    let waited = clock::now() - io.port.waits_since(tokens[1]);
    assert!(waited >= started - arrival, "{waited:?}");
    assert!(waited <= clock::now() - arrival - Duration::from_millis(2), "{waited:?}");
    let mut thread = EngineThread::new(io.engine(), 0, 0);
    thread.next_request().unwrap();
    let left = thread.time_limit().unwrap();
    assert!(left <= 60 * SECOND - Duration::from_millis(2) && left > 50 * SECOND, "{left:?}");
    threads.into_iter().for_each(std::mem::forget);
    std::mem::forget(thread);
}

#[test]
fn it_is_not_run_again_after_its_time() {
    let mut io = Io::new(SMALL);
    let token = io.port.acquire(&io.backend, &head("x", Some(0))).unwrap().unwrap();
    io.port.may_repeat(token, clock::now());
    io.port.end_body(token, BodyState::Complete).unwrap();
    io.port.submit(token, 0, clock::now()).unwrap();
    std::mem::forget(run(&io.engine(), 0));
    assert_eq!(replace(&mut io, Repeats::Everybodys).lost, [token]);
}

/// The others of the engine go on, and the memory stays.
#[test]
fn the_request_of_a_process_that_has_died_waits_behind_the_others() {
    let mut io = Io::new(SMALL);
    let [dead, alive, waiting] = ["dead", "alive", "waiting"].map(|name| submit(&mut io, name, b"abc"));
    let engine = io.engine();
    let (first, mut second) = (run(&engine, 0), run(&engine, 1));
    assert_eq!(first.read_body(&mut [0; 2]), Ok(2), "it is read from the start again");
    io.backend.region().bury(0);
    let backend = Arc::clone(&io.backend);
    let rescued = io.port.bury(&backend, 0, Repeats::Everybodys);
    assert_eq!(rescued, Rescued { lost: vec![], repeated: vec![dead] });
    assert!(io.port.is_queued(dead));
    second.end(Completion::Complete).unwrap();
    second.publish();
    second.release();
    assert_eq!(run_all(&mut io), ["waiting", "dead"]);
    for token in [dead, waiting] {
        assert_eq!(io.finish(token, b"").unwrap().body, b"abc");
    }
    io.finish(alive, b"").unwrap();
    assert_eq!(io.port.in_use(), 0);
    std::mem::forget(first);
    drop(second);
}

#[test]
fn a_client_that_has_left_is_not_run_for_again() {
    let mut io = Io::new(SMALL);
    let token = submit(&mut io, "x", b"");
    std::mem::forget(run(&io.engine(), 0));
    io.port.cancel(token);
    assert_eq!(replace(&mut io, Repeats::Everybodys), Rescued::default());
    assert_eq!((io.port.in_use(), io.backend.region().waiting(0)), (0, 0));
}
