//! Requests through real memory, one at a time: what each side sees of the other.

use crate::common::{Io, SMALL, answered_name, backend, bytes, echo, head, start};
use regent_wire::names::key;
use regent_wire::{
    BodyState, Cancelled, Completion, End, Frame, Geometry, HeadBuilder, HeadKind, LogLine, ReadError,
    Region, RegionError, Scheduling, SlotTable, SubmitError, ThreadState, Token, clock,
};
use std::sync::{Arc, mpsc};
use std::time::Duration;

#[test]
fn a_request_and_all_kinds_of_frames() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, |thread, _| {
        thread.head(HeadKind::Informational, 103, b"", [(&b"Link"[..], &b"</a.css>"[..])].into_iter())?;
        thread.log(4, b"careful", b"{\"a\":1}")?;
        thread.head(HeadKind::Final, 404, b"Nowhere", [(&b"X-A"[..], &b"b"[..])].into_iter())?;
        thread.body(b"one")?;
        thread.body(b"")?;
        thread.body(b"two")?;
        thread.end(Completion::Truncated)?;
        thread.publish();
        Ok(())
    });
    let token = io.submit(&head("x", Some(0)), 0);
    let response = io.finish(token, b"").unwrap();
    assert_eq!(response.informational[0].status, 103);
    assert_eq!(
        response.log,
        [LogLine { level: 4, message: b"careful".to_vec(), context: b"{\"a\":1}".to_vec() }]
    );
    let answer = response.head.unwrap();
    assert_eq!((answer.status, answer.reason()), (404, &b"Nowhere"[..]));
    assert_eq!(answer.fields().collect::<Vec<_>>(), [(&b"X-A"[..], &b"b"[..])]);
    assert_eq!((response.body, response.completion), (b"onetwo".to_vec(), Some(Completion::Truncated)));
    io.wait_until_empty();
    engine.region().drain();
    assert_eq!(thread.join().unwrap(), ["x"]);
}

/// The ring has 4 KiB.
#[test]
fn heads_trailers_and_lines_that_no_ring_holds_come_in_parts() {
    const LARGE: usize = 120_000;
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, |thread, _| {
        let value = bytes(1, LARGE);
        let fields = || [(&b"X-Large"[..], &value[..]), (b"X-Small", b"s")].into_iter();
        assert!(thread.max_fields() > LARGE);
        thread.head(HeadKind::Informational, 103, b"", fields())?;
        thread.log(4, &value[..50_000], b"{}")?;
        thread.head(HeadKind::Final, 200, b"", fields())?;
        thread.body(&value)?;
        thread.trailers(fields())?;
        thread.end(Completion::Complete)?;
        thread.publish();
        Ok(())
    });
    for _ in 0..2 {
        let token = io.submit(&head("x", Some(0)), 0);
        let response = io.finish(token, b"").unwrap();
        let value = bytes(1, LARGE);
        let fields = [(&b"X-Large"[..], &value[..]), (b"X-Small", b"s")];
        assert!(response.informational[0].fields().eq(fields));
        assert!(response.head.unwrap().fields().eq(fields));
        assert!(response.trailers.unwrap().fields().eq(fields));
        assert!(response.body == value && response.log[0].message == value[..50_000]);
        io.wait_until_empty();
    }
    engine.region().drain();
    assert_eq!(thread.join().unwrap(), ["x", "x"]);
}

#[test]
fn a_part_of_a_head_does_not_show_in_the_next_request() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, |thread, name| {
        if name == "gone" {
            let value = bytes(1, 120_000);
            let left = thread.head(HeadKind::Final, 200, b"", std::iter::once((&b"X"[..], &value[..])));
            assert!(left.is_err(), "its client has left");
            return Ok(());
        }
        echo(thread, name)
    });
    let gone = io.submit(&head("gone", Some(0)), 0);
    io.wait();
    assert_eq!(io.port.read(gone), Ok(None), "a part");
    io.port.cancel(gone);
    io.wait_until_empty();
    let token = io.submit(&head("next", Some(0)), 0);
    assert_eq!(answered_name(&io.finish(token, b"").unwrap().head.unwrap()), "next");
    io.wait_until_empty();
    engine.region().drain();
    assert_eq!(thread.join().unwrap(), ["gone", "next"]);
}

#[test]
fn the_engine_sees_the_head_as_it_was_built() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let mut builder = HeadBuilder::new();
    builder.named(b"APP_ENV", b"prod");
    builder.end_environment();
    builder.known(key("REQUEST_METHOD"), b"PUT");
    let token = io.submit(builder.build(None), 1);
    let mut thread = regent_wire::EngineThread::new(engine, 3, 1);
    let seen = thread.next_request().unwrap();
    assert_eq!((seen.body_length, seen.environment), (None, 1));
    let variables: Vec<_> = seen.map(|variable| (variable.name, variable.value)).collect();
    assert_eq!(variables, [(&b"APP_ENV"[..], &b"prod"[..]), (b"", b"PUT")]);
    assert_eq!(io.backend.region().thread_state(3), ThreadState::Busy);
    assert_eq!(io.backend.region().thread_view(3).requests, 1);
    drop(thread);
    assert_eq!(io.backend.region().thread_state(3), ThreadState::Absent);
    assert_eq!(io.port.read(token), Err(ReadError::Lost));
    io.port.release(token);
    assert_eq!(io.port.in_use(), 0);
}

#[test]
fn bodies_many_times_larger_than_the_rings_flow_both_ways() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, echo);
    for length in [1, 4095, 4096, 4097, 8192, 1 << 20] {
        let body = bytes(length as u64, length);
        let token = io.submit(&head("body", Some(length as u64)), 0);
        assert_eq!(io.finish(token, &body).unwrap().body, body, "{length} bytes");
    }
    engine.region().drain();
    thread.join().unwrap();
}

#[test]
fn a_server_that_does_not_read_holds_the_script_back() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, |thread, _| {
        thread.body(&[b'x'; 100_000])?;
        thread.end(Completion::Complete)?;
        thread.publish();
        Ok(())
    });
    let token = io.submit(&head("x", Some(0)), 0);
    let mut total = 0;
    loop {
        match io.port.read(token).unwrap() {
            Some(Frame::Body(part)) => {
                assert!(part.len() <= SMALL.response_capacity as usize);
                total += part.len();
            }
            Some(Frame::End(_)) => break,
            Some(other) => panic!("{other:?}"),
            None => drop(io.wait()),
        }
    }
    assert_eq!(total, 100_000);
    io.port.release(token);
    engine.region().drain();
    thread.join().unwrap();
}

#[test]
fn fields_can_follow_the_body() {
    const FIELDS: [(&[u8], &[u8]); 2] = [(b"X-Sum", b"1"), (b"X-Empty", b"")];
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, |thread, _| {
        thread.body(b"body")?;
        thread.trailers(FIELDS.into_iter())?;
        thread.end(Completion::Complete)?;
        thread.publish();
        Ok(())
    });
    let token = io.submit(&head("x", Some(0)), 0);
    let response = io.finish(token, b"").unwrap();
    assert_eq!(response.body, b"body");
    assert_eq!(response.trailers.unwrap().fields().collect::<Vec<_>>(), FIELDS);
    engine.region().drain();
    thread.join().unwrap();
}

#[test]
fn a_log_line_of_any_size_is_cut_to_what_fits() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, |thread, _| {
        thread.log(3, &[b'm'; 100_000], &[b'c'; 100_000])?;
        thread.log(3, &[b'm'; 1000], &[b'c'; 1000])?;
        thread.end(Completion::Complete)?;
        thread.publish();
        Ok(())
    });
    let token = io.submit(&head("x", Some(0)), 0);
    let log = io.finish(token, b"").unwrap().log;
    let most = SMALL.frame_capacity as usize / 2;
    for cut in [&log[0].message, &log[0].context] {
        assert!(
            (most - 1000..most).contains(&cut.len()) && cut.ends_with(b" more bytes]"),
            "{} bytes",
            cut.len()
        );
    }
    assert_eq!((log[1].message.len(), log[1].context.len()), (1000, 1000));
    engine.region().drain();
    thread.join().unwrap();
}

#[test]
fn a_request_that_was_withdrawn_never_runs() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let first = io.submit(&head("first", None), 0);
    let second = io.submit(&head("second", None), 0);
    assert!(io.port.is_queued(first));
    assert_eq!(io.port.cancel(first), Cancelled::Withdrawn);
    assert_eq!(io.backend.region().waiting(0), 2);
    let thread = start(&engine, 0, 0, echo);
    io.finish(second, b"").unwrap();
    io.wait_until_empty();
    engine.region().drain();
    assert_eq!(thread.join().unwrap(), ["second"]);
}

#[test]
fn a_script_that_writes_hears_that_the_client_left() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let (left, heard) = mpsc::channel();
    let thread = start(&engine, 0, 0, move |thread, name| {
        if name == "long" {
            left.send(thread.body(&vec![0; 1 << 20]).is_err()).unwrap();
            return Ok(());
        }
        echo(thread, name)
    });
    let token = io.submit(&head("long", None), 0);
    io.wait();
    assert_eq!(io.port.cancel(token), Cancelled::WhileRunning);
    assert!(heard.recv().unwrap());
    io.wait_until_empty();
    let token = io.submit(&head("next", None), 0);
    assert_eq!(answered_name(&io.finish(token, b"").unwrap().head.unwrap()), "next");
    engine.region().drain();
    thread.join().unwrap();
}

#[test]
fn a_script_that_reads_hears_that_the_body_broke() {
    for ways in [0, 1, 2] {
        let mut io = Io::new(SMALL);
        let engine = io.engine();
        let (left, heard) = mpsc::channel();
        let thread = start(&engine, 0, 0, move |thread, _| {
            thread.body(b"I am here")?;
            thread.publish();
            left.send(thread.read_body(&mut [0; 10]).is_err()).unwrap();
            Ok(())
        });
        let token = io.submit(&head("upload", None), 0);
        io.wait();
        match ways {
            0 => assert_eq!(io.port.cancel(token), Cancelled::WhileRunning),
            1 => io.port.end_body(token, BodyState::Broken).unwrap(),
            // The response was all that the client wanted.
            _ => io.port.release(token),
        }
        assert!(heard.recv().unwrap());
        engine.region().drain();
        thread.join().unwrap();
        if ways == 1 {
            io.port.release(token);
        }
        io.wait_until_empty();
    }
}

#[test]
fn a_script_goes_on_after_its_response() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let (go, may_go) = mpsc::channel::<()>();
    let thread = start(&engine, 0, 0, move |thread, _| {
        thread.end(Completion::Complete)?;
        thread.publish();
        may_go.recv().unwrap();
        // Nobody reads this, and it must not hold the script back.
        thread.body(&[0; 100_000])?;
        thread.publish();
        Ok(())
    });
    let token = io.submit(&head("x", Some(0)), 0);
    io.finish(token, b"").unwrap();
    assert_eq!(io.port.in_use(), 1);
    go.send(()).unwrap();
    io.wait_until_empty();
    engine.region().drain();
    thread.join().unwrap();
}

#[test]
fn slots_are_used_up_and_come_back() {
    let mut io = Io::new(SMALL);
    let tokens: Vec<Token> = (0..64).map(|_| io.submit(&head("x", None), 0)).collect();
    assert_eq!(io.port.acquire(&io.backend, b"").unwrap(), None);
    for token in tokens {
        assert_eq!(io.port.cancel(token), Cancelled::Withdrawn);
    }
    assert_eq!(io.port.in_use(), 0);
    assert_eq!(io.port.acquire(&io.backend, &[0; 4097]), Err(SubmitError::HeadTooLarge));
    assert_eq!(io.port.in_use(), 0);
}

/// An engine does not ring when it lets go of a slot whose response it has announced.
#[test]
fn a_slot_is_found_that_came_back_in_silence() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let (go, may_go) = mpsc::channel::<()>();
    let thread = start(&engine, 0, 0, move |thread, name| {
        echo(thread, name)?;
        may_go.recv().unwrap();
        Ok(())
    });
    let first = io.submit(&head("first", Some(0)), 0);
    io.finish(first, b"").unwrap();
    while io.port.in_use() < 64 {
        io.port.acquire(&io.backend, b"").unwrap().unwrap();
    }
    assert_eq!(io.port.acquire(&io.backend, b""), Ok(None));
    go.send(()).unwrap();
    engine.region().drain();
    thread.join().unwrap();
    let token = io.port.acquire(&io.backend, b"").unwrap().unwrap();
    assert_eq!(token.slot, first.slot);
}

/// A response whose end was written but not published is published by the release, and announced.
#[test]
fn a_release_announces_what_was_not_published() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let thread = start(&engine, 0, 0, |thread, _| {
        thread.body(b"all")?;
        thread.end(Completion::Complete)
    });
    let token = io.submit(&head("x", Some(0)), 0);
    assert_eq!(io.finish(token, b"").unwrap().body, b"all");
    engine.region().drain();
    thread.join().unwrap();
}

#[test]
fn a_slot_that_was_not_submitted_comes_back() {
    let mut io = Io::new(SMALL);
    for give_up in [
        |port: &mut SlotTable, token| assert_eq!(port.cancel(token), Cancelled::Withdrawn),
        SlotTable::release,
    ] {
        let token = io.port.acquire(&io.backend, &head("x", None)).unwrap().unwrap();
        assert_eq!(io.port.write_body(token, b"abc"), Ok(3));
        give_up(&mut io.port, token);
        assert_eq!(io.port.in_use(), 0);
    }
}

#[test]
fn a_full_queue_refuses_and_keeps_no_slot() {
    let mut io = Io::new(SMALL);
    for _ in 0..256 {
        let token = io.submit(&head("x", None), 0);
        io.port.cancel(token);
    }
    let token = io.port.acquire(&io.backend, &head("y", None)).unwrap().unwrap();
    assert_eq!(io.port.submit(token, 0, regent_wire::clock::now()), Err(SubmitError::QueueFull));
    assert_eq!(io.port.in_use(), 0);
    // The other pool has room, and a thread that pops the void tokens makes some.
    let token = io.submit(&head("y", None), 1);
    io.port.end_body(token, BodyState::Complete).unwrap();
    let engine = io.engine();
    let threads = [start(&engine, 0, 0, echo), start(&engine, 1, 1, echo)];
    engine.region().drain();
    assert_eq!(threads.map(|thread| thread.join().unwrap()), [vec![], vec!["y".to_owned()]]);
    assert_eq!(io.backend.region().waiting(0), 0);
}

#[test]
fn a_drained_engine_runs_what_waits_and_ends() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let tokens: Vec<Token> = (0..20).map(|n| io.submit(&head(&n.to_string(), Some(0)), 0)).collect();
    io.backend.region().drain();
    let threads: Vec<_> = (0..4).map(|index| start(&engine, index, 0, echo)).collect();
    for token in tokens {
        io.finish(token, b"").unwrap();
    }
    assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap().len()).sum::<usize>(), 20);
    io.wait_until_empty();
}

#[test]
fn a_retired_thread_ends_and_the_others_go_on() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let [first, second] = [0, 1].map(|index| start(&engine, index, 0, echo));
    io.backend.region().retire(0);
    first.join().unwrap();
    for n in 0..10 {
        let token = io.submit(&head(&n.to_string(), None), 0);
        io.finish(token, b"").unwrap();
    }
    engine.region().drain();
    assert_eq!(second.join().unwrap().len(), 10);
}

#[test]
fn the_number_of_a_thread_that_has_ended_can_be_used_again() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let first = start(&engine, 0, 0, echo);
    io.backend.region().retire(0);
    first.join().unwrap();
    assert_eq!(io.backend.region().thread_state(0), ThreadState::Absent);
    io.backend.region().reuse(0);
    let second = start(&engine, 0, 1, echo);
    let token = io.submit(&head("x", None), 1);
    io.finish(token, b"").unwrap();
    assert_eq!(io.backend.region().thread_view(0).requests, 1);
    engine.region().drain();
    assert_eq!(second.join().unwrap(), ["x"]);
}

#[test]
fn the_server_sees_how_long_requests_wait_and_run() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    assert_eq!(io.backend.region().oldest(0), None);
    let before = clock::now();
    let token = io.submit(&head("x", Some(0)), 0);
    let submitted = io.backend.region().oldest(0).unwrap();
    assert!(before <= submitted && submitted <= clock::now());
    let mut thread = regent_wire::EngineThread::new(engine, 2, 0);
    assert_eq!((io.backend.region().waiting(0), io.backend.region().taken(0)), (1, 0));
    thread.next_request().unwrap();
    assert_eq!((io.backend.region().waiting(0), io.backend.region().taken(0)), (0, 1));
    let view = io.backend.region().thread_view(2);
    assert_eq!((view.state, view.since, view.token), (ThreadState::Busy, thread.started(), token));
    thread.set_memory(4096);
    thread.end(Completion::Complete).unwrap();
    thread.publish();
    let Ok(Some(Frame::End(End { timing: Some(timing), .. }))) = io.port.read(token) else {
        panic!("no end")
    };
    assert_eq!(timing.waited, thread.started() - submitted);
    assert_eq!(timing.thread, Some(2));
    assert!(timing.cpu.is_some(), "the first request of a thread is measured");
    let busy = thread.release();
    assert!(timing.execution <= busy);
    let view = io.backend.region().thread_view(2);
    assert_eq!((view.state, view.busy, view.memory), (ThreadState::Idle, busy, 4096));
}

#[test]
fn a_guard_lives_until_the_engine_has_let_go_of_the_request() {
    let io = Io::new(SMALL);
    let mut port = SlotTable::new(0, SMALL.slots_per_io as usize);
    let mut thread = regent_wire::EngineThread::new(io.engine(), 0, 0);
    let guard = Arc::new(());
    let submit = |port: &mut SlotTable<Arc<()>>| {
        let token = port.acquire(&io.backend, &head("x", None)).unwrap().unwrap();
        port.guard(token, Arc::clone(&guard));
        port.submit(token, 0, clock::now()).unwrap();
        token
    };
    let token = submit(&mut port);
    let running = |port: &SlotTable<Arc<()>>| {
        let mut since = Vec::new();
        port.running(&io.backend, |_, started| since.push(started));
        since
    };
    assert_eq!(running(&port), []);
    thread.next_request().unwrap();
    assert_eq!(running(&port), [thread.started()]);
    assert_eq!(port.cancel(token), Cancelled::WhileRunning);
    port.drain(&io.backend, |_| {});
    assert_eq!(Arc::strong_count(&guard), 2, "its thread is not free yet");
    assert_eq!(running(&port), [thread.started()]);
    thread.release();
    port.drain(&io.backend, |_| {});
    assert_eq!(Arc::strong_count(&guard), 1);

    let withdrawn = submit(&mut port);
    assert_eq!(port.cancel(withdrawn), Cancelled::Withdrawn);
    assert_eq!(Arc::strong_count(&guard), 1);
}

#[test]
fn a_request_is_overdue_from_its_limit_on_as_long_as_somebody_waits() {
    let mut io = Io::new(SMALL);
    let mut thread = regent_wire::EngineThread::new(io.engine(), 0, 0);
    let second = std::time::Duration::from_secs(1);
    let free = io.submit(&head("free", None), 0);
    thread.next_request().unwrap();
    assert_eq!(thread.time_limit(), None);
    let overdue = |io: &Io, now| {
        let mut tokens = Vec::new();
        io.port.overdue(&io.backend, now, |token| tokens.push(token));
        tokens
    };
    assert_eq!(overdue(&io, thread.started() + 1000 * second), []);
    thread.end(Completion::Complete).unwrap();
    thread.release();
    io.port.release(free);

    let limited = io.port.acquire(&io.backend, &head("limited", None)).unwrap().unwrap();
    io.port.limit(limited, second);
    io.port.submit(limited, 0, clock::now()).unwrap();
    assert_eq!(overdue(&io, clock::now() + 5 * second), [], "nobody runs it");
    thread.next_request().unwrap();
    assert_eq!(thread.time_limit(), Some(second));
    assert_eq!(overdue(&io, thread.started() + second / 2), []);
    assert_eq!(overdue(&io, thread.started() + second), [limited]);
    assert_eq!(io.port.cancel(limited), Cancelled::WhileRunning);
    assert_eq!(overdue(&io, thread.started() + second), [], "it was given up");
}

#[test]
fn withdrawn_requests_do_not_count_as_waiting() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let tokens = ["a", "b", "c"].map(|name| io.submit(&head(name, Some(0)), 0));
    assert_eq!(io.backend.waiting(0), 3);
    assert_eq!(io.port.cancel(tokens[0]), Cancelled::Withdrawn);
    assert_eq!(io.port.cancel(tokens[2]), Cancelled::Withdrawn);
    assert_eq!((io.backend.waiting(0), io.backend.region().waiting(0)), (1, 3));
    let thread = start(&engine, 0, 0, echo);
    io.finish(tokens[1], b"").unwrap();
    engine.region().drain();
    assert_eq!(thread.join().unwrap(), ["b"]);
    assert_eq!((io.backend.waiting(0), io.backend.region().waiting(0)), (0, 0));
}

#[test]
fn requests_start_in_the_order_of_their_arrival() {
    for scheduling in [Scheduling::Spread, Scheduling::Pack] {
        let mut io = Io::new(SMALL);
        io.backend.region().tune(0, scheduling, 2, 100);
        let engine = io.engine();
        let tokens: Vec<Token> = (0..60).map(|n| io.submit(&head(&n.to_string(), Some(0)), 0)).collect();
        let thread = start(&engine, 0, 0, echo);
        for token in tokens {
            io.finish(token, b"").unwrap();
        }
        engine.region().drain();
        assert_eq!(thread.join().unwrap(), (0..60).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn news_that_came_together_is_told_in_the_order_of_arrival() {
    let mut io = Io::new(SMALL);
    let engine = io.engine();
    let [first, second] =
        [(); 2].map(|()| io.port.acquire(&io.backend, &head("x", Some(0))).unwrap().unwrap());
    for (token, arrival) in [(second, 1), (first, 2)] {
        io.port.submit(token, 0, Duration::from_secs(arrival)).unwrap();
        io.port.end_body(token, BodyState::Complete).unwrap();
    }
    engine.region().drain();
    start(&engine, 0, 0, echo).join().unwrap();
    let mut told = Vec::new();
    io.port.drain(&io.backend, |token| told.push(token));
    assert_eq!(told, [second, first]);
}

#[test]
fn an_engine_cannot_make_the_memory_smaller() {
    let io = Io::new(SMALL);
    let memory = io.backend.region().file();
    assert_eq!(rustix::fs::ftruncate(memory, 0), Err(rustix::io::Errno::PERM));
    assert_eq!(
        rustix::fs::fcntl_add_seals(memory, rustix::fs::SealFlags::WRITE),
        Err(rustix::io::Errno::PERM)
    );
}

#[test]
fn memory_of_another_version_or_size_is_refused() {
    let file = || rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let empty = file();
    assert!(matches!(Region::open(empty), Err(RegionError::Size { actual: 0, .. })));
    let zero = file();
    rustix::fs::ftruncate(&zero, 4096).unwrap();
    assert!(matches!(Region::open(zero), Err(RegionError::Version)));
    let short = file();
    let mut header = vec![0; 4096];
    rustix::io::pread(backend(SMALL).region().file(), &mut header, 0).unwrap();
    rustix::io::pwrite(&short, &header, 0).unwrap();
    assert!(matches!(Region::open(short), Err(RegionError::Size { actual: 4096, .. })));
    let absurd = Geometry { slots_per_io: 63, ..SMALL };
    assert!(matches!(Region::create(absurd), Err(RegionError::Geometry(_))));
}
