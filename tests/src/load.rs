//! Many requests at once.

use crate::{Response, Server, pause, until};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
/// answers. `meanwhile` begins when each client has an answer, and each has another one after its end. A refused or
/// broken connection panics: whoever tests this promises that there is none.
pub fn keep_asking(server: &Server, clients: usize, path: &str, meanwhile: impl FnOnce()) -> Vec<Response> {
    let (begun, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let ask = || {
        let mut answers = vec![server.get(path)];
        begun.fetch_add(1, Ordering::Relaxed);
        loop {
            let is_last = done.load(Ordering::Relaxed);
            answers.push(server.get(path));
            if is_last {
                return answers;
            }
            pause(Duration::from_millis(1));
        }
    };
    let meanwhile = || {
        until("each client has an answer", || (begun.load(Ordering::Relaxed) == clients).then_some(()));
        meanwhile();
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
