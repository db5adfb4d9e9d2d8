//! What PHP threads do: each runs its pool's script again and again until it is told to end.

use crate::ffi::{self, ThreadEnd, Var};
use crate::host::PhpThread;
use crate::php;
use crate::profiler::Profiler;
use crate::renewal::{Renewal, RenewalPool};
use crate::warmup::Warmup;
use regent_engine_host::{Afterwards, EngineLoad, Job, Profiling, Readiness, Reporter, RunningThread};
use regent_wire::control::{Event, PoolStart, ProfileOrder, ScriptEnd, WorkerStart};
use regent_wire::{Engine, EngineThread, ThreadState};
use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Wait before a worker script that failed to boot is started again: doubled from the first to the last.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LAST_BACKOFF: Duration = Duration::from_secs(5);
/// How often a waiting thread looks whether it must end.
const BACKOFF_STEP: Duration = Duration::from_millis(20);

/// Bytes.
const LONGEST_TRACE: usize = 8192;

/// The pools of this engine.
pub struct Scripts {
    pools: Vec<PoolStart>,
    /// As many as there are pools.
    renewals: Vec<Arc<RenewalPool>>,
    reporter: Arc<Reporter>,
    load: Arc<EngineLoad>,
    /// The pools of the threads that have run, by the threads' numbers.
    threads: Arc<Mutex<HashMap<u16, u16>>>,
    profiler: Profiler,
}

impl Scripts {
    pub fn new(pools: Vec<PoolStart>, reporter: &Arc<Reporter>) -> Self {
        let renewals = pools.iter().map(|_| Arc::default()).collect();
        Self {
            pools,
            renewals,
            reporter: Arc::clone(reporter),
            load: EngineLoad::new(),
            threads: Arc::default(),
            profiler: Profiler::default(),
        }
    }
}

impl Job for Scripts {
    fn name(&self, pool: u16) -> Option<&str> {
        let pool = self.pools.get(usize::from(pool))?;
        Some(match pool.worker {
            Some(_) => pool.name.rsplit('/').next().unwrap_or("worker"),
            None => "php",
        })
    }

    fn run(&self, thread: EngineThread, readiness: Readiness) -> Afterwards {
        let Some(pool) = self.pools.get(thread.pool()) else { return Afterwards::End };
        let warmup = Warmup::new(pool, &self.reporter);
        let renewal = Renewal::new(&self.renewals[thread.pool()], pool);
        let numbers = (thread.index() as u16, thread.pool() as u16);
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).insert(numbers.0, numbers.1);
        let php = PhpThread::new(thread, Arc::clone(&self.load), warmup, renewal, readiness);
        Runner { pool, reporter: &self.reporter }.run(php)
    }

    fn enter_process(&self) -> Result<(), String> {
        php::enter_process().map_err(|error| error.to_string())
    }

    fn leave_process(&self) {
        php::stop();
    }

    fn trace(&self, index: u16) -> String {
        let mut text = vec![0; LONGEST_TRACE];
        // SAFETY: law 5: a buffer of that size, for the time of the call; what the thread does meanwhile is its own.
        let length = unsafe { ffi::regent_php_trace(index.into(), text.as_mut_ptr().cast(), text.len()) };
        String::from_utf8_lossy(&text[..length.min(LONGEST_TRACE)]).into_owned()
    }

    fn profile(&self, order: ProfileOrder, engine: &Arc<Engine>) {
        let (threads, process) = (Arc::clone(&self.threads), std::process::id() as i32);
        let running = move || {
            let threads = threads.lock().unwrap_or_else(PoisonError::into_inner);
            let running =
                threads.iter().map(|(index, pool)| RunningThread { index: *index, pool: *pool, process });
            running.collect()
        };
        self.profiler.begin(Profiling {
            order,
            engine: Arc::clone(engine),
            reporter: Arc::clone(&self.reporter),
            threads: Box::new(running),
        });
    }
}

/// What one thread needs.
struct Runner<'a> {
    pool: &'a PoolStart,
    reporter: &'a Reporter,
}

impl Runner<'_> {
    fn run(self, mut php: PhpThread) -> Afterwards {
        let script = self.pool.worker.as_ref().map(worker_script);
        let environment = self.pool.worker.as_ref().map(worker_environment).unwrap_or_default();
        let variables: Vec<Var> =
            environment.iter().map(|(name, value)| Var::named(name.as_bytes(), value.as_bytes())).collect();
        let options = ffi::ThreadOptions {
            worker_script: script.as_ref().map_or(std::ptr::null(), |script| script.as_ptr()),
            worker_env: variables.as_ptr(),
            n_worker_env: variables.len(),
            number: php.index(),
        };
        let mut failures = 0;
        while !php.must_stop() {
            let end = php.run(&options);
            match end {
                ThreadEnd::Stopped => return Afterwards::End,
                ThreadEnd::WornOut => {
                    self.report_end(ScriptEnd::Orderly);
                    return Afterwards::Replace;
                }
                // A process is renewed as a whole: so all that it has leaked is given back.
                ThreadEnd::Recycle if cfg!(not(php_threads)) => {
                    self.report_end(ScriptEnd::Orderly);
                    php.hand_over();
                    return Afterwards::Replace;
                }
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
                        return Afterwards::End;
                    }
                    php.count_restart();
                    wait_before_restart(&php, failures);
                }
            }
        }
        Afterwards::End
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
