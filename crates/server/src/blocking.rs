//! Threads for work that blocks: files, encoders, certificates.
//!
//! tokio makes them when they are wanted and ends those that have nothing to do. Where it has none and can make none, as at
//! the limit of a user or a control group, it panics; where it has one, the work waits for that. So there always is one.

use std::panic::catch_unwind;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

/// How long one lives that has nothing to do.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How often one is given something to do: so often that it never is without as long as that, and no more often, since they
/// take turns.
const INTERVAL: Duration = Duration::from_secs(7);

/// Of each runtime. They wait for disks, mostly.
const MOST: usize = 64;

/// A runtime of one thread, in which [`keep_one_thread`] is to run.
pub fn runtime() -> Builder {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().thread_keep_alive(KEEP_ALIVE).max_blocking_threads(MOST);
    builder
}

/// Has the runtime always have a thread for work that blocks. Never ends.
pub async fn keep_one_thread() {
    loop {
        // As panics do here, this one says itself what is wrong.
        if let Ok(task) = catch_unwind(|| spawn_blocking(|| ())) {
            // It cannot fail but with the runtime.
            let _ = task.await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
