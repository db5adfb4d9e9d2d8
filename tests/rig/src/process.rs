//! A process of the played engine: alive until it ends in good order, is killed, or dies as the test wants.

use regent_wire::control::{self, Event};
use regent_wire::{Engine, EngineThread};
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

const SEGV: i32 = 11;

pub(crate) struct Process {
    number: usize,
    engine: Arc<Engine>,
    control: UnixStream,
    is_dead: AtomicBool,
    end: Mutex<Option<oneshot::Sender<ExitStatus>>>,
    /// Threads that run, and of these those that wait for a request.
    threads: Mutex<Threads>,
    changed: Condvar,
    graves: Arc<Graves>,
}

/// What the threads of dead processes have held. Nothing of it is given back to their memory as long as there is a server,
/// which looks at what they have left there.
#[derive(Default)]
pub(crate) struct Graves(Mutex<Vec<EngineThread>>);

#[derive(Default)]
struct Threads {
    /// Numbers of all that it has ever had.
    own: Vec<usize>,
    running: usize,
    asking: usize,
}

impl Process {
    pub fn new(
        number: usize,
        engine: Arc<Engine>,
        control: UnixStream,
        end: oneshot::Sender<ExitStatus>,
        graves: Arc<Graves>,
    ) -> Arc<Self> {
        Arc::new(Self {
            number,
            engine,
            control,
            is_dead: AtomicBool::new(false),
            end: Mutex::new(Some(end)),
            threads: Mutex::default(),
            changed: Condvar::new(),
            graves,
        })
    }

    pub fn number(&self) -> usize {
        self.number
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    /// Tells the server something.
    pub fn say(&self, event: &Event) {
        self.write(&control::encode(event));
    }

    /// Writes these bytes to the control socket.
    pub fn write(&self, bytes: &[u8]) {
        // The server has gone otherwise, or has killed it.
        let _ = (&self.control).write_all(bytes);
    }

    /// Closes its end of the control socket for what it says.
    pub fn hang_up(&self) {
        // As above.
        let _ = self.control.shutdown(Shutdown::Write);
    }

    /// The calling thread, which is one of it, has run into a fault.
    pub fn crash(&self) {
        self.engine.note_fault();
        self.end(ExitStatus::from_raw(SEGV));
    }

    /// Ends it at once, with this status. No thread of it touches the memory after that: so it is with the dead.
    pub fn end(&self, status: ExitStatus) {
        if self.is_dead.swap(true, Ordering::SeqCst) {
            return;
        }
        let region = self.engine.region();
        let asking = lock(&self.threads);
        asking.own.iter().for_each(|thread| region.retire(*thread));
        drop(self.changed.wait_while(asking, |threads| threads.asking > 0));
        self.tell(status);
    }

    /// Ends it as one that has ended itself.
    pub fn exit(&self) {
        self.is_dead.store(true, Ordering::SeqCst);
        self.tell(ExitStatus::default());
    }

    fn tell(&self, status: ExitStatus) {
        // Nobody waits for it when the server has gone.
        let _ = lock(&self.end).take().map(|end| end.send(status));
        let _ = self.control.shutdown(Shutdown::Both);
    }

    pub fn bury(&self, thread: EngineThread) {
        lock(&self.graves.0).push(thread);
    }

    pub fn thread_begins(&self, number: usize) {
        let mut threads = lock(&self.threads);
        threads.own.push(number);
        threads.running += 1;
    }

    /// Ends the process with its last thread, if it drains.
    pub fn thread_ends(&self) {
        let mut threads = lock(&self.threads);
        threads.running -= 1;
        let is_last = threads.running == 0;
        drop(threads);
        if is_last && self.engine.region().is_draining() && !self.is_dead() {
            self.exit();
        }
    }

    /// A thread is about to ask for a request; `false`: it must not any more.
    pub fn begins_to_ask(&self) -> bool {
        let mut threads = lock(&self.threads);
        if self.is_dead() {
            return false;
        }
        threads.asking += 1;
        true
    }

    pub fn asks_no_more(&self) {
        lock(&self.threads).asking -= 1;
        self.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
