//! Where the engine is played: what the server takes for programs that it starts.

use crate::call::Call;
use crate::process::{Graves, Process};
use crate::threads;
use regent_server::{Descriptors, EngineChild, Launch, Launcher};
use regent_wire::control::{self, Event, Order, Start, Started};
use regent_wire::{Engine, Region};
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use tokio::sync::oneshot;

const KILL: i32 = 9;

/// Starts processes that are threads of the test.
pub(crate) struct Stage {
    calls: Sender<Call>,
    /// Processes so far.
    started: AtomicUsize,
    graves: Arc<Graves>,
}

impl Stage {
    pub fn new(calls: Sender<Call>) -> Self {
        Self { calls, started: AtomicUsize::new(0), graves: Arc::default() }
    }
}

impl Launcher for Stage {
    fn launch(&self, Launch { descriptors, .. }: Launch<'_>) -> io::Result<Box<dyn EngineChild>> {
        let Descriptors { memory, control, doorbells } = descriptors;
        let region = Region::open(memory).map_err(io::Error::other)?;
        let (ended, end) = oneshot::channel();
        let control = UnixStream::from(control);
        let mut orders = BufReader::new(control.try_clone()?).lines();
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let (calls, graves) = (self.calls.clone(), Arc::clone(&self.graves));
        // What a process is told it is told by its socket, as soon as the server's runtime gets to that.
        let (born, birth) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // The server has given it up otherwise.
            let Some(start) = first(&mut orders) else { return };
            let engine = Arc::new(Engine::new(start.process.into(), region, doorbells));
            let process = Process::new(number, engine, control, ended, graves);
            // The server may have given it up meanwhile.
            if born.send(Arc::clone(&process)).is_ok() {
                play(&process, &start, orders, &calls);
            }
        });
        Ok(Box::new(Played { birth, process: None, end }))
    }
}

fn first(orders: &mut impl Iterator<Item = io::Result<String>>) -> Option<Start> {
    let line = orders.next()?.ok()?;
    Some(control::decode(&line).unwrap_or_else(|error| panic!("no start of an engine: {error}: {line}")))
}

/// As the first thread of an engine: starts the others, and listens to the server.
fn play(
    process: &Arc<Process>,
    start: &Start,
    orders: impl Iterator<Item = io::Result<String>>,
    calls: &Sender<Call>,
) {
    process.engine().answers();
    let started = Started { version: "played".to_owned(), opcache: None, library: None };
    process.say(&Event::Started(started));
    start.threads.iter().for_each(|thread| threads::start(process, *thread, calls.clone()));
    process.say(&Event::Ready);
    for line in orders.map_while(Result::ok) {
        match control::decode(&line) {
            Ok(Order::Beat { number }) => process.engine().answer(number),
            Ok(Order::Start { threads }) => {
                threads.into_iter().for_each(|thread| threads::start(process, thread, calls.clone()));
            }
            Ok(Order::Trace { index }) => process.say(&Event::Traced { index, stack: String::new() }),
            Ok(Order::Profile(order)) => {
                let reason = "it is played".to_owned();
                process.say(&Event::ProfileRefused { number: order.number, reason });
            }
            Err(error) => panic!("the server has given an order that is none: {error}: {line}"),
        }
    }
    // The server has closed the socket, which ends an engine at once.
    process.end(ExitStatus::from_raw(KILL));
}

/// What the server has of such a process.
struct Played {
    /// It is born when it has been told how to start.
    birth: std::sync::mpsc::Receiver<Arc<Process>>,
    process: Option<Arc<Process>>,
    end: oneshot::Receiver<ExitStatus>,
}

impl EngineChild for Played {
    /// All of it is in this process.
    fn id(&self) -> Option<u32> {
        Some(std::process::id())
    }

    fn wait(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>> {
        Box::pin(async {
            let ended = (&mut self.end).await;
            Ok(ended.unwrap_or_else(|_| ExitStatus::from_raw(KILL)))
        })
    }

    fn kill(&mut self) {
        if self.process.is_none() {
            self.process = self.birth.try_recv().ok();
        }
        self.process.iter().for_each(|process| process.end(ExitStatus::from_raw(KILL)));
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.kill();
    }
}
