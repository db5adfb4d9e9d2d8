//! The process that speaks with the server.

use super::message::{FromProcess, ToZygote};
use crate::{Attached, Host, HostError, Profiling, Reporter, RunningThread};
use nix::unistd::Pid;
use regent_wire::Engine;
use regent_wire::control::{self, Event, MAX_EVENT, Order, OverdueEnd, ProfileOrder, ThreadStart};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// How often it looks whether the engine is to drain, while it has no process.
const DRAIN_LOOK: Duration = Duration::from_millis(100);
/// Longest wait for a zygote that does not read its orders.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes: an event, and what stands around it.
const MESSAGE: usize = MAX_EVENT + 1024;

/// This process, beside the zygote.
pub struct Manager {
    processes: Arc<ProcessPool>,
    orders: mpsc::Receiver<Order>,
    first: Vec<ThreadStart>,
}

/// The processes of the engine, as its manager knows them.
struct ProcessPool {
    engine: Arc<Engine>,
    reporter: Arc<Reporter>,
    zygote: ZygoteLink,
    messages: UnixDatagram,
    state: Mutex<State>,
}

struct ZygoteLink {
    pid: Pid,
    orders: UnixStream,
}

#[derive(Default)]
struct State {
    /// By the number of the thread.
    processes: HashMap<u16, Process>,
    /// Threads of the beginning that have not asked for a request yet.
    not_ready: HashSet<u16>,
}

struct Process {
    thread: ThreadStart,
    /// `None`: it has not been made yet.
    pid: Option<i32>,
    /// Its thread has ended in an orderly way; whether another process is to take its place.
    done: Option<bool>,
}

/// The zygote has ended, and with it all that it has forked.
#[derive(Debug, thiserror::Error)]
#[error("the process that the others are forked from ({pid}) has ended")]
pub struct ZygoteEnded {
    pid: Pid,
}

impl Manager {
    pub(super) fn new(
        attached: Attached,
        zygote: Pid,
        orders_to_zygote: UnixStream,
        messages: UnixDatagram,
    ) -> Result<Self, HostError> {
        orders_to_zygote.set_write_timeout(Some(PATIENCE))?;
        let Host { engine, start, reporter, orders } = attached.follow()?;
        let not_ready = start.threads.iter().map(|thread| thread.index).collect();
        let processes = Arc::new(ProcessPool {
            engine,
            reporter,
            zygote: ZygoteLink { pid: zygote, orders: orders_to_zygote },
            messages,
            state: Mutex::new(State { processes: HashMap::new(), not_ready }),
        });
        Ok(Self { processes, orders, first: start.threads })
    }

    /// Carries out what the server orders until the engine was told to drain and all processes have ended. `trace`: the
    /// signal that asks a process what it is at; `profile`: begins a profile of them.
    pub fn run(self, trace: i32, profile: impl Fn(Profiling) + Send + 'static) -> Result<(), ZygoteEnded> {
        let Self { processes, orders, first } = self;
        first.into_iter().for_each(|thread| processes.start(thread, false));
        let follower = Arc::clone(&processes);
        let follow = move || orders.into_iter().for_each(|order| follower.carry_out(order, trace, &profile));
        thread::Builder::new().name("orders".into()).spawn(follow).expect("a thread can be made at start");
        processes.listen()
    }
}

impl ProcessPool {
    fn carry_out(self: &Arc<Self>, order: Order, trace: i32, profile: &impl Fn(Profiling)) {
        match order {
            Order::Start { threads } => threads.into_iter().for_each(|thread| self.start(thread, false)),
            Order::Trace { index } => self.zygote.order(&ToZygote::Signal { index, number: trace }),
            Order::Profile(order) => profile(self.profiling(order)),
            // Answered where it came in.
            Order::Beat { .. } => {}
        }
    }

    fn profiling(self: &Arc<Self>, order: ProfileOrder) -> Profiling {
        let processes = Arc::clone(self);
        Profiling {
            order,
            engine: Arc::clone(&self.engine),
            reporter: Arc::clone(&self.reporter),
            threads: Box::new(move || processes.running()),
        }
    }

    fn running(&self) -> Vec<RunningThread> {
        let state = self.state();
        let running = state.processes.values().filter_map(|process| {
            let ThreadStart { index, pool } = process.thread;
            Some(RunningThread { index, pool, process: process.pid? })
        });
        running.collect()
    }

    fn start(&self, thread: ThreadStart, renews: bool) {
        self.state().processes.insert(thread.index, Process { thread, pid: None, done: None });
        self.zygote.order(&ToZygote::Fork { thread, renews });
    }

    /// To the zygote and its processes.
    fn listen(&self) -> Result<(), ZygoteEnded> {
        let wait = Timespec::try_from(DRAIN_LOOK).expect("invariant: a tenth of a second");
        let mut message = vec![0; MESSAGE];
        loop {
            let mut events =
                [PollFd::new(&self.messages, PollFlags::IN), PollFd::new(&self.zygote.orders, PollFlags::IN)];
            // A failure is as good as a time-out.
            let _ = poll(&mut events, Some(&wait));
            let [said, is_over] = events.map(|event| !event.revents().is_empty());
            if said {
                self.on_event(&mut message);
            } else if is_over {
                return Err(ZygoteEnded { pid: self.zygote.pid });
            } else if self.engine.region().is_draining() && self.state().processes.is_empty() {
                return Ok(());
            }
        }
    }

    fn on_event(&self, buffer: &mut [u8]) {
        let Ok(length) = self.messages.recv(buffer) else { return };
        let Ok(Ok(message)) = std::str::from_utf8(&buffer[..length]).map(control::decode) else { return };
        match message {
            FromProcess::Event(event) => self.pass_on(*event),
            FromProcess::Forked { index, pid } => {
                if let Some(process) = self.state().processes.get_mut(&index) {
                    process.pid = Some(pid);
                }
            }
            FromProcess::Ready { index } => self.note_ready(index),
            FromProcess::NotForked { index, error } => {
                self.state().processes.remove(&index);
                self.reporter.send(&Event::ThreadEnded { index, error: Some(error) });
            }
            FromProcess::Done { index, replace } => {
                if let Some(process) = self.state().processes.get_mut(&index) {
                    process.done = Some(replace);
                }
            }
            FromProcess::Ended { index, how, signal } => self.note_end(index, how, signal),
        }
    }

    /// A process can do what a thread cannot: end though its request does not.
    fn pass_on(&self, mut event: Event) {
        let mut kill = None;
        if let Event::Overdue(request) = &mut event
            && request.end == OverdueEnd::WrittenOff
        {
            request.end = OverdueEnd::Killed;
            kill = Some(request.index);
        }
        self.reporter.send(&event);
        if let Some(index) = kill {
            self.zygote.order(&ToZygote::Kill { index });
        }
    }

    fn note_ready(&self, index: u16) {
        let mut state = self.state();
        let is_last = state.not_ready.remove(&index) && state.not_ready.is_empty();
        drop(state);
        if is_last {
            self.reporter.send(&Event::Ready);
        }
    }

    fn note_end(&self, index: u16, how: String, signal: Option<i32>) {
        let Some(process) = self.state().processes.remove(&index) else { return };
        match process.done {
            Some(true) => self.start(process.thread, true),
            Some(false) => self.reporter.send(&Event::ThreadEnded { index, error: None }),
            None => self.reporter.send(&Event::Died { index, how, signal }),
        }
    }

    /// A thread that panics leaves a table that is whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ZygoteLink {
    /// A zygote that cannot be told anything has ended, or is about to be found hanging; either ends the engine.
    fn order(&self, order: &ToZygote) {
        let write: io::Result<()> = (&self.orders).write_all(&control::encode(order));
        if write.is_err() {
            let _ = self.orders.shutdown(std::net::Shutdown::Both);
        }
    }
}
