//! Requests of one pool start in the order in which they came, whichever I/O threads they came to.

use crate::common::{Io, SMALL, backend, engine, eventfd, head, start};
use regent_wire::{Completion, Geometry};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const IO_THREADS: usize = 4;
/// Of each I/O thread: as many as it has slots.
const REQUESTS: u64 = 64;
const RUNS: usize = 50;

/// A request that was put on the queue between two moments.
struct Arrival {
    name: String,
    began: u64,
    ended: u64,
}

/// Queues all requests of one I/O thread. `clock` gives each moment once.
fn queue_all(mut io: Io, number: usize, clock: &AtomicU64) -> (Io, Vec<Arrival>) {
    let moment = || clock.fetch_add(1, Ordering::SeqCst);
    let arrivals = (0..REQUESTS)
        .map(|request| {
            let name = format!("{number}/{request}");
            let head = head(&name, Some(0));
            let began = moment();
            io.submit(&head, 0);
            Arrival { name, began, ended: moment() }
        })
        .collect();
    (io, arrivals)
}

/// If one was on the queue before another came, it was taken first: whoever is taken later did not end before the latest
/// beginning among those that were taken before.
fn check(started: &[String], arrivals: &[Arrival]) {
    let find = |name: &String| arrivals.iter().find(|arrival| arrival.name == *name).expect("it was queued");
    let mut latest: Option<&Arrival> = None;
    for arrival in started.iter().map(find) {
        if let Some(before) = latest.filter(|before| arrival.ended < before.began) {
            panic!("{} came first, and {} started first", arrival.name, before.name);
        }
        latest = latest.into_iter().chain([arrival]).max_by_key(|arrival| arrival.began);
    }
}

#[test]
fn who_came_first_starts_first_whichever_io_thread_it_came_to() {
    for _ in 0..RUNS {
        let backend = backend(Geometry { io_threads: IO_THREADS as u32, ..SMALL });
        let doorbells: Vec<_> = (0..IO_THREADS).map(|_| eventfd()).collect();
        let engine = engine(&backend, &doorbells);
        let clock = AtomicU64::new(0);
        let ios: Vec<_> = doorbells
            .into_iter()
            .enumerate()
            .map(|(number, doorbell)| Io::of(number, Arc::clone(&backend), doorbell))
            .collect();
        let queued: Vec<_> = std::thread::scope(|scope| {
            let queue = |(number, io)| {
                scope.spawn({
                    let clock = &clock;
                    move || queue_all(io, number, clock)
                })
            };
            let threads: Vec<_> = ios.into_iter().enumerate().map(queue).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (_ios, arrivals): (Vec<_>, Vec<_>) = queued.into_iter().unzip();
        // One thread, so that what it says of the order is all there is to say.
        let thread = start(&engine, 0, 0, |thread, _| {
            thread.end(Completion::Complete)?;
            thread.publish();
            Ok(())
        });
        engine.region().drain();
        let started = thread.join().unwrap();
        assert_eq!(started.len(), IO_THREADS * REQUESTS as usize);
        check(&started, &arrivals.into_iter().flatten().collect::<Vec<_>>());
    }
}
