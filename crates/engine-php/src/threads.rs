//! PHP threads: started side by side, at the beginning and whenever the server orders more, each running its pool's script
//! again and again until it is told to end.

use crate::courtesy::Neighbours;
use crate::ffi::{self, ThreadEnd, Var};
use crate::host::PhpThread;
use crate::reporter::Reporter;
use regent_wire::control::{Event, PoolStart, ScriptEnd, Start, ThreadStart, WorkerStart};
use regent_wire::{Engine, EngineThread, ThreadState};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// PHP's recursion and deep destructors need a real stack; only what is touched costs memory.
const STACK: usize = 16 * 1024 * 1024;
/// Wait before a worker script that failed to boot is started again: doubled from the first to the last.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LAST_BACKOFF: Duration = Duration::from_secs(5);
/// How often the engine looks whether it is to drain, while it has no thread.
const DRAIN_LOOK: Duration = Duration::from_millis(100);
/// How often a waiting thread looks whether it must end.
const BACKOFF_STEP: Duration = Duration::from_millis(20);

/// The threads of this engine.
pub struct Threads {
    engine: Arc<Engine>,
    pools: Vec<PoolStart>,
    reporter: Arc<Reporter>,
    neighbours: Arc<Neighbours>,
    /// Threads of the beginning that have not asked for a request yet.
    not_ready: Arc<AtomicUsize>,
    running: Mutex<usize>,
    ended: Condvar,
}

impl Threads {
    /// Starts the first threads.
    pub fn start(engine: Arc<Engine>, start: Start, reporter: Arc<Reporter>) -> Arc<Self> {
        let threads = Arc::new(Self {
            engine,
            pools: start.pools,
            reporter,
            neighbours: Neighbours::new(),
            not_ready: Arc::new(AtomicUsize::new(start.threads.len())),
            running: Mutex::new(0),
            ended: Condvar::new(),
        });
        for thread in start.threads {
            threads.spawn(thread, Some(Arc::clone(&threads.not_ready)));
        }
        threads
    }

    /// Starts more threads.
    pub fn add(self: &Arc<Self>, threads: Vec<ThreadStart>) {
        for thread in threads {
            self.spawn(thread, None);
        }
    }

    /// Returns when the engine was told to drain and all threads have ended.
    pub fn wait(&self) {
        let mut running = self.count();
        while *running > 0 || !self.engine.region().is_draining() {
            // Nobody tells a process without threads that it is to drain.
            running = self.ended.wait_timeout(running, DRAIN_LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn spawn(self: &Arc<Self>, thread: ThreadStart, not_ready: Option<Arc<AtomicUsize>>) {
        let Some(pool) = self.pools.get(usize::from(thread.pool)).cloned() else { return };
        let builder = thread::Builder::new().name(thread_name(&pool, thread.index)).stack_size(STACK);
        let runner = Runner {
            pool,
            reporter: Arc::clone(&self.reporter),
            neighbours: Arc::clone(&self.neighbours),
            not_ready,
        };
        *self.count() += 1;
        let threads = Arc::clone(self);
        let spawned = builder.spawn(move || {
            // Dropped when the thread ends, also by a panic, which the hook has logged.
            let _running = Running { threads: &threads, index: thread.index };
            let wire = EngineThread::new(
                Arc::clone(&threads.engine),
                usize::from(thread.index),
                usize::from(thread.pool),
            );
            runner.run(wire);
        });
        if let Err(error) = spawned {
            self.one_less(thread.index, Some(error.to_string()));
        }
    }

    fn one_less(&self, index: u16, error: Option<String>) {
        self.reporter.send(&Event::ThreadEnded { index, error });
        *self.count() -= 1;
        self.ended.notify_all();
    }

    /// A thread that panics while it counts leaves a number.
    fn count(&self) -> MutexGuard<'_, usize> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that has not ended.
struct Running<'a> {
    threads: &'a Threads,
    index: u16,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        give_memory_back();
        self.threads.one_less(self.index, None);
    }
}

/// The allocator keeps what a thread has freed for later ones, which may never come.
fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: law 5 is not touched: no pointer is passed; the allocator locks what it looks at.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// What one thread needs.
struct Runner {
    pool: PoolStart,
    reporter: Arc<Reporter>,
    neighbours: Arc<Neighbours>,
    not_ready: Option<Arc<AtomicUsize>>,
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
            self.not_ready.clone(),
            Arc::clone(&self.reporter),
        );
        let mut failures = 0;
        while !php.must_stop() {
            match php.run(&options) {
                ThreadEnd::Stopped => return,
                ThreadEnd::Recycle | ThreadEnd::WorkerEnded => {
                    failures = 0;
                    self.report_end(ScriptEnd::Orderly);
                    php.count_restart();
                }
                ThreadEnd::WorkerCrashed => {
                    failures = 0;
                    self.report_end(ScriptEnd::Crash);
                    php.count_restart();
                }
                ThreadEnd::WorkerBootFailed | ThreadEnd::Failed => {
                    failures += 1;
                    self.report_end(ScriptEnd::Crash);
                    if self.gives_up(failures) {
                        return;
                    }
                    php.count_restart();
                    wait_before_restart(&php, failures);
                }
            }
        }
    }

    fn report_end(&self, end: ScriptEnd) {
        if self.pool.worker.is_some() {
            self.reporter.send(&Event::WorkerEnded { worker: self.pool.name.clone(), end });
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
