//! What a thread of the played engine does: it takes requests, and lends itself to the test for each.

use crate::call::{Back, Call, Taken};
use crate::process::Process;
use regent_wire::EngineThread;
use regent_wire::control::{Event, ThreadStart};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

/// Starts a thread; it ends when the server says so, or with its process.
pub(crate) fn start(process: &Arc<Process>, ThreadStart { index, pool }: ThreadStart, calls: Sender<Call>) {
    process.thread_begins(index.into());
    let process = Arc::clone(process);
    std::thread::spawn(move || {
        let thread = EngineThread::new(Arc::clone(process.engine()), index.into(), pool.into());
        // Otherwise it ends with its process.
        if let Some(ended) = run(thread, &process, &calls) {
            drop(ended);
            process.say(&Event::ThreadEnded { index, error: None });
        }
        process.thread_ends();
    });
}

/// Returns the thread if it has ended in good order.
fn run(mut thread: EngineThread, process: &Arc<Process>, calls: &Sender<Call>) -> Option<EngineThread> {
    loop {
        if !process.begins_to_ask() {
            process.bury(thread);
            return None;
        }
        let taken = thread.next_request().map(Taken::read);
        process.asks_no_more();
        if process.is_dead() {
            process.bury(thread);
            return None;
        }
        let Some(taken) = taken else { return Some(thread) };
        let (back, given_back) = mpsc::channel();
        // Without a test nobody is there for it.
        calls.send(Call::new(taken, thread, Arc::clone(process), back)).ok()?;
        #[expect(
            clippy::disallowed_methods,
            reason = "a thread of PHP waits for its script, and both end with the test"
        )]
        let back = given_back.recv().ok()?;
        match back {
            Back::Released(released) => thread = released,
            Back::Crash(lost) => {
                process.bury(lost);
                process.crash();
                return None;
            }
        }
    }
}
