//! PHP threads: started at once, each running its pool's script again and again until it is told to end.

use crate::courtesy::Neighbours;
use crate::ffi::{self, ThreadEnd, Var};
use crate::host::PhpThread;
use crate::reporter::Reporter;
use regent_wire::control::{Event, PoolStart, Start, WorkerStart};
use regent_wire::{Engine, EngineThread, ThreadState};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// PHP's recursion and deep destructors need a real stack; only what is touched costs memory.
const STACK: usize = 16 * 1024 * 1024;
/// Wait before a worker script that failed to boot is started again: doubled from the first to the last.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LAST_BACKOFF: Duration = Duration::from_secs(5);
/// How often a waiting thread looks whether it must end.
const BACKOFF_STEP: Duration = Duration::from_millis(20);

/// Runs all threads of all pools; returns when they have ended.
pub fn run(engine: &Arc<Engine>, start: &Start, reporter: &Arc<Reporter>) {
    let total = start.pools.iter().map(|pool| usize::from(pool.threads)).sum();
    let not_ready = Arc::new(AtomicUsize::new(total));
    let neighbours = Neighbours::new();
    let mut handles = Vec::new();
    for (pool_index, pool) in start.pools.iter().enumerate() {
        for number in 0..pool.threads {
            let index = handles.len();
            let wire = (Arc::clone(engine), index, pool_index);
            let runner = Runner {
                pool: pool.clone(),
                reporter: Arc::clone(reporter),
                neighbours: Arc::clone(&neighbours),
                not_ready: Arc::clone(&not_ready),
            };
            let builder = thread::Builder::new().name(thread_name(pool, number)).stack_size(STACK);
            match builder.spawn(move || runner.run(EngineThread::new(wire.0, wire.1, wire.2))) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    let message = format!("a thread of pool {} could not be started: {error}", pool.name);
                    reporter.send(&Event::Log { level: 2, message });
                }
            }
        }
    }
    for handle in handles {
        // A panic was logged by the hook; the other threads go on.
        let _ = handle.join();
    }
}

/// What one thread needs.
struct Runner {
    pool: PoolStart,
    reporter: Arc<Reporter>,
    neighbours: Arc<Neighbours>,
    not_ready: Arc<AtomicUsize>,
}

impl Runner {
    fn run(self, wire: EngineThread) {
        let script = self.pool.worker.as_ref().map(worker_script);
        let environment = self.pool.worker.as_ref().map(worker_environment).unwrap_or_default();
        let variables: Vec<Var> =
            environment.iter().map(|(name, value)| Var::named(name.as_bytes(), value.as_bytes())).collect();
        let options = ffi::ThreadOptions {
            worker_script: script.as_ref().map_or(std::ptr::null(), |script| script.as_ptr()),
            worker_env: variables.as_ptr(),
            n_worker_env: variables.len(),
            max_requests: self.pool.max_requests,
        };
        let mut php = PhpThread::new(
            wire,
            Arc::clone(&self.neighbours),
            Arc::clone(&self.not_ready),
            Arc::clone(&self.reporter),
        );
        let mut failures = 0;
        while !php.must_stop() {
            match php.run(&options) {
                ThreadEnd::Stopped => return,
                ThreadEnd::Recycle => failures = 0,
                ThreadEnd::WorkerEnded => {
                    failures = 0;
                    php.count_restart();
                }
                ThreadEnd::WorkerBootFailed | ThreadEnd::Failed => {
                    failures += 1;
                    if self.gives_up(failures) {
                        return;
                    }
                    php.count_restart();
                    wait_before_restart(&php, failures);
                }
            }
        }
    }

    fn gives_up(&self, failures: u32) -> bool {
        let limit = self.pool.worker.as_ref().and_then(|worker| worker.max_consecutive_failures);
        let reached = limit.is_some_and(|limit| failures >= limit);
        if reached {
            self.reporter.send(&Event::WorkerFailed { worker: self.pool.name.clone(), failures });
        }
        reached
    }
}

fn wait_before_restart(php: &PhpThread, failures: u32) {
    php.set_state(ThreadState::Backoff);
    let wait = FIRST_BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(6)).min(LAST_BACKOFF);
    let until = Instant::now() + wait;
    while !php.must_stop() && Instant::now() < until {
        thread::sleep(BACKOFF_STEP);
    }
    php.set_state(ThreadState::Booting);
}

fn worker_script(worker: &WorkerStart) -> CString {
    CString::new(worker.file.as_os_str().as_bytes())
        .expect("invariant: the server sends no path with a NUL byte")
}

/// `$_SERVER` while the script boots.
fn worker_environment(worker: &WorkerStart) -> Vec<(String, String)> {
    let file = worker.file.to_string_lossy().into_owned();
    let own = [("FRANKENPHP_WORKER", "1".to_owned()), ("REGENT_WORKER", "1".to_owned())];
    let script = ["SCRIPT_FILENAME", "SCRIPT_NAME", "PHP_SELF"].map(|name| (name, file.clone()));
    own.into_iter()
        .chain(script)
        .map(|(name, value)| (name.to_owned(), value))
        .chain(worker.env.iter().cloned())
        .collect()
}

/// As the kernel shows it: at most 15 bytes, with the number at the end.
fn thread_name(pool: &PoolStart, number: u16) -> String {
    let number = format!("-{number}");
    let base = if pool.worker.is_some() { pool.name.rsplit('/').next().unwrap_or("worker") } else { "php" };
    let mut name: String = base.chars().filter(|c| c.is_ascii_graphic()).take(15 - number.len()).collect();
    name.push_str(&number);
    name
}

/// Counts a thread that has asked for its first request.
pub fn count_ready(not_ready: &AtomicUsize, reporter: &Reporter) {
    if not_ready.fetch_sub(1, Ordering::AcqRel) == 1 {
        reporter.send(&Event::Ready);
    }
}
