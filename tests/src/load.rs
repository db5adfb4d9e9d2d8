//! Many requests at once.

use crate::{Response, Server, pause};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Calls `work(0)` … `work(times - 1)` on as many threads, and gives their results in order.
pub fn in_parallel<T: Send>(times: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..times).map(|i| scope.spawn(move || work(i))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Asks for `path` on a new connection each time, from `clients` threads, while `meanwhile` runs; then gives all
/// answers. A refused or broken connection panics: whoever tests this promises that there is none.
pub fn keep_asking(server: &Server, clients: usize, path: &str, meanwhile: impl FnOnce()) -> Vec<Response> {
    let done = AtomicBool::new(false);
    let ask = || {
        let mut answers = Vec::new();
        while !done.load(Ordering::Relaxed) {
            answers.push(server.get(path));
            pause(Duration::from_millis(1));
        }
        answers
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(meanwhile));
        done.store(true, Ordering::Relaxed);
        let answers = threads.into_iter().map(|thread| thread.join());
        let answers: Vec<_> = answers
            .flat_map(|joined| joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
        answers
    })
}
