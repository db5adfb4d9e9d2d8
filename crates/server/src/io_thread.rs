//! An I/O thread's loop: connections are served, configurations change, and connections drain.

use crate::answers::Answers;
use crate::app::{App, AppStart, ThreadParts};
use crate::blocking;
use crate::engine_clients::ThreadClients;
use crate::hooks;
use regent_config::HealthCheck;
use regent_connections::{Dealer, Dealt, Front, Stage};
use regent_gateway::Inlined;
use regent_metrics::{ConnectionMeter, HttpMeter, Recorder};
use regent_net::BusyPoll;
use regent_service::scrapes::Scrapes;
use regent_tls::Handshakes;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_local;

/// What an I/O thread is told.
pub(crate) enum Command {
    /// A connection that another thread accepted.
    Serve(Dealt),
    /// Makes an App beside the current one.
    Prepare(Box<AppStart>, oneshot::Sender<io::Result<()>>),
    /// The App that was prepared last is current from now on.
    Change(oneshot::Sender<()>),
    /// The App that was prepared last is not wanted.
    Discard,
    /// Native handlers that run in the server come from these modules now; those before are given back.
    Inline(Arc<Inlined>, oneshot::Sender<Option<Arc<Inlined>>>),
    /// Asks PHP, as `health_uri` says.
    Probe(HealthCheck, oneshot::Sender<Result<(), String>>),
    /// Shows that the thread does its work.
    Answer(oneshot::Sender<()>),
}

/// Everything that an I/O thread starts with.
pub(crate) struct IoStart {
    pub index: usize,
    pub app: AppStart,
    pub recorder: Recorder,
    pub meter: HttpMeter,
    pub connections: ConnectionMeter,
    pub scrapes: Scrapes,
    pub busy_poll: BusyPoll,
    pub commands: mpsc::UnboundedReceiver<Command>,
    pub stage: watch::Receiver<Stage>,
    /// The first thread accepts, and deals connections out to all.
    pub accept: Option<Dealer<Command>>,
}

/// Runs an I/O thread until it is told to drain and has.
pub(crate) fn run(start: IoStart) -> io::Result<()> {
    let runtime = blocking::runtime()
        .on_thread_park(hooks::before_park)
        .on_thread_unpark(hooks::after_unpark)
        .build_local(tokio::runtime::LocalOptions::default())?;
    let result = runtime.block_on(serve(start));
    hooks::unhook();
    // What still waits for a disk, it does for nobody.
    runtime.shutdown_background();
    result
}

async fn serve(start: IoStart) -> io::Result<()> {
    spawn_local(blocking::keep_one_thread());
    let clients = Rc::<ThreadClients>::default();
    let parts = ThreadParts {
        clients: Rc::clone(&clients),
        recorder: Rc::new(start.recorder),
        meter: Rc::new(start.meter),
        scrapes: start.scrapes,
        handshakes: Handshakes::default(),
    };
    let app = App::build(start.app, &parts, None)?;
    let front = Rc::new(Front::new(&app.bindings, start.busy_poll, start.connections));
    let (sockets, busy_poll) = (Rc::clone(&front.sockets), Rc::clone(&front.busy_poll));
    hooks::hook(Rc::clone(&clients), Rc::clone(&sockets), Rc::clone(&busy_poll));
    spawn_local(async move { busy_poll.keep(&*clients, &sockets).await });
    let mut stage = start.stage;
    let accepting = start.accept.map(|dealer| front.accept(dealer, stage.clone())).transpose()?;
    spawn_local(apply(start.commands, app, Rc::clone(&front), parts));
    if Stage::left(&mut stage).await == Stage::Leaving {
        front.leave();
        let _ = tokio::time::timeout(front.patience(), front.none_left()).await;
    }
    front.drain();
    front.none_left().await;
    if let Some(accepting) = accepting {
        // This thread receives for those of HTTP/3 on all threads. An error: it has panicked.
        let _ = accepting.await;
    }
    Ok(())
}

async fn apply(
    mut commands: mpsc::UnboundedReceiver<Command>,
    mut app: Rc<App>,
    front: Rc<Front<Answers>>,
    parts: ThreadParts,
) {
    let mut prepared = None;
    while let Some(command) = commands.recv().await {
        // Who asked may have gone, and then the answer is for nobody.
        match command {
            Command::Serve(dealt) => front.take(dealt),
            Command::Prepare(start, done) => {
                let built = App::build(*start, &parts, Some(&app));
                let _ = done.send(built.map(|app| prepared = Some(app)));
            }
            Command::Change(done) => {
                if let Some(next) = prepared.take() {
                    front.change_to(&next.bindings);
                    app = next;
                }
                let _ = done.send(());
            }
            Command::Discard => prepared = None,
            Command::Inline(inlined, old) => drop(old.send(app.replace_inlined(inlined))),
            Command::Probe(check, done) => {
                let app = Rc::clone(&app);
                spawn_local(async move { drop(done.send(app.probe(&check).await)) });
            }
            Command::Answer(done) => drop(done.send(())),
        }
    }
    // Nobody is left who could send any.
    front.take(Dealt::Nothing);
}

impl From<Dealt> for Command {
    fn from(dealt: Dealt) -> Self {
        Self::Serve(dealt)
    }
}
