//! The threads of an engine: started side by side, at the beginning and whenever the server orders more, until each
//! is told to end.

use crate::heap::Heap;
use crate::processes::FromProcess;
use crate::{Reporter, die_with_parent};
use regent_wire::control::{Event, Order, ProfileOrder, ThreadStart};
use regent_wire::{Engine, EngineThread};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// Recursion of scripts and of modules needs a real stack, in bytes; only what is touched costs memory.
const STACK: usize = 16 * 1024 * 1024;
/// How often the engine looks whether it is to drain, while it has no thread.
const DRAIN_LOOK: Duration = Duration::from_millis(100);
/// Bytes of a thread's name that the kernel shows.
const MOST_NAME: usize = 15;

/// What the threads do.
pub trait Job: Send + Sync + 'static {
    /// What a thread of this pool is called; `None` if there is no such pool.
    fn name(&self, pool: u16) -> Option<&str>;
    /// Answers requests until the thread must end.
    fn run(&self, thread: EngineThread, readiness: Readiness) -> Afterwards;

    /// What another thread of this engine is at, a line for each function; nothing if that cannot be told.
    fn trace(&self, _index: u16) -> String {
        String::new()
    }

    /// Takes a profile and sends it, while the threads go on. Without an answer it cannot be taken.
    fn profile(&self, _order: ProfileOrder, _engine: &Arc<Engine>) {}

    /// A process was forked for one thread ([`crate::processes`]), which is about to run in it. An error ends it.
    fn enter_process(&self) -> Result<(), String> {
        Ok(())
    }

    /// The thread of a forked process has ended, and so will the process.
    fn leave_process(&self) {}
}

/// What becomes of a thread that has done its job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    End,
    /// A new thread of the system takes its place: something of this one cannot be undone.
    Replace,
}

/// The threads of this process.
pub struct ThreadPool {
    engine: Arc<Engine>,
    reporter: Arc<Reporter>,
    job: Box<dyn Job>,
    /// Threads of the beginning that have not asked for a request yet.
    not_ready: Arc<AtomicUsize>,
    running: Mutex<usize>,
    ended: Condvar,
    /// Threads to be replaced. A thread inherits much from the one that makes it, so they don't do it themselves.
    worn_out: Mutex<Vec<ThreadStart>>,
    heap: Heap,
}

/// Says that a thread is about to ask for its first request.
pub struct Readiness {
    /// Of a thread that was among the first.
    tells: Option<Tells>,
    reporter: Arc<Reporter>,
}

enum Tells {
    /// The server, if it is the last of those that are counted here.
    Server(Arc<AtomicUsize>),
    /// The process that counts them.
    Manager(u16),
}

impl Readiness {
    /// Of the thread of a forked process.
    pub(crate) fn of_process(index: u16, reporter: Arc<Reporter>) -> Self {
        Self { tells: Some(Tells::Manager(index)), reporter }
    }

    /// The last of the first threads tells the server. Later calls do nothing.
    pub fn announce(&mut self) {
        let Some(tells) = self.tells.take() else { return };
        match tells {
            Tells::Server(not_ready) if not_ready.fetch_sub(1, Ordering::AcqRel) == 1 => {
                self.reporter.send(&Event::Ready);
            }
            Tells::Server(_) => {}
            Tells::Manager(index) => {
                self.reporter.tell(&FromProcess::Ready { index });
            }
        }
    }
}

impl ThreadPool {
    /// Starts the first threads.
    pub fn start(
        engine: Arc<Engine>,
        first: Vec<ThreadStart>,
        reporter: Arc<Reporter>,
        job: impl Job,
    ) -> Arc<Self> {
        let threads = Arc::new(Self {
            engine,
            reporter,
            job: Box::new(job),
            not_ready: Arc::new(AtomicUsize::new(first.len())),
            running: Mutex::new(0),
            ended: Condvar::new(),
            worn_out: Mutex::default(),
            heap: Heap::default(),
        });
        for thread in first {
            threads.spawn(thread, Some(Arc::clone(&threads.not_ready)));
        }
        threads
    }

    /// Carries out what the server orders: starts threads, those from before the first threads among them, and tells what
    /// they are at.
    pub fn follow(self: &Arc<Self>, orders: mpsc::Receiver<Order>) {
        let threads = Arc::clone(self);
        let carry_out = move || orders.into_iter().for_each(|order| threads.carry_out(order));
        thread::Builder::new().name("orders".into()).spawn(carry_out).expect("a thread can be made at start");
    }

    /// Returns when the engine was told to drain and all threads have ended; replaces those that are worn out until then.
    pub fn wait(self: &Arc<Self>) {
        let mut running = self.count();
        while *running > 0 || !self.engine.region().is_draining() {
            // Nobody tells a process without threads that it is to drain.
            drop(self.ended.wait_timeout(running, DRAIN_LOOK).unwrap_or_else(PoisonError::into_inner).0);
            self.replace_worn_out();
            running = self.count();
        }
    }

    fn carry_out(self: &Arc<Self>, order: Order) {
        match order {
            Order::Start { threads } => threads.into_iter().for_each(|thread| self.spawn(thread, None)),
            Order::Trace { index } => {
                self.reporter.send(&Event::Traced { index, stack: self.job.trace(index) });
            }
            Order::Profile(order) => self.job.profile(order, &self.engine),
            // Answered where it came in.
            Order::Beat { .. } => {}
        }
    }

    fn spawn(self: &Arc<Self>, start: ThreadStart, not_ready: Option<Arc<AtomicUsize>>) {
        let Some(name) = self.job.name(start.pool) else { return };
        *self.count() += 1;
        self.spawn_counted(start, name, not_ready);
    }

    fn replace_worn_out(self: &Arc<Self>) {
        let worn_out = std::mem::take(&mut *self.worn_out.lock().unwrap_or_else(PoisonError::into_inner));
        for start in worn_out {
            let Some(name) = self.job.name(start.pool) else { continue };
            self.spawn_counted(start, name, None);
        }
    }

    fn spawn_counted(self: &Arc<Self>, start: ThreadStart, name: &str, not_ready: Option<Arc<AtomicUsize>>) {
        let builder = thread::Builder::new().name(thread_name(name, start.index)).stack_size(STACK);
        let readiness =
            Readiness { tells: not_ready.map(Tells::Server), reporter: Arc::clone(&self.reporter) };
        let threads = Arc::clone(self);
        let spawned = builder.spawn(move || {
            // Dropped when the thread ends, also by a panic, which the hook has logged.
            let running = Running { threads: &threads, start };
            let (index, pool) = (usize::from(start.index), usize::from(start.pool));
            // It cannot fail: the main thread has asked for the same.
            let _ = die_with_parent();
            let thread = EngineThread::new(Arc::clone(&threads.engine), index, pool);
            if threads.job.run(thread, readiness) == Afterwards::Replace {
                running.hand_over();
            }
        });
        if let Err(error) = spawned {
            self.one_less(start.index, Some(error.to_string()));
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
    threads: &'a ThreadPool,
    start: ThreadStart,
}

impl Running<'_> {
    /// To the thread that takes this one's place.
    fn hand_over(self) {
        self.threads.heap.give_back();
        self.threads.worn_out.lock().unwrap_or_else(PoisonError::into_inner).push(self.start);
        self.threads.ended.notify_all();
        std::mem::forget(self);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.threads.heap.give_back();
        self.threads.one_less(self.start.index, None);
    }
}

/// As the kernel shows it, with the number at the end.
pub(crate) fn thread_name(base: &str, number: u16) -> String {
    let number = format!("-{number}");
    let mut name: String =
        base.chars().filter(|c| c.is_ascii_graphic()).take(MOST_NAME - number.len()).collect();
    name.push_str(&number);
    name
}
