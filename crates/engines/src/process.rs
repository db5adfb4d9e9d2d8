//! One engine process: started with its memory, watched, and ended.

mod talk;

use crate::program::{Descriptors, EngineChild, Launch, Program};
use bytes::{Buf, BytesMut};
use regent_config::EngineUser;
use regent_wire::EngineMemory;
use regent_wire::control::{self, Event, Order, Start};
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use talk::Talk;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

/// The socket of a process that ends closes a moment before its end can be seen. On a machine that is throttled the
/// kernel takes long to free its memory in between, and what its scripts have started is not to die for that. Shorter
/// than the second after which it counts as hung, so that the log tells the true reason.
const LAST_MOMENT: Duration = Duration::from_millis(750);

/// A running engine. Dropped, it is killed.
pub struct EngineProcess {
    child: Box<dyn EngineChild>,
    events: Talk<OwnedReadHalf>,
    /// When the engine closed its end.
    closed: Option<Instant>,
    /// The engine ends when it closes.
    control: OwnedWriteHalf,
    /// Of what it is to be told, the part that the socket has not taken yet.
    untold: BytesMut,
}

/// What happened to the process of an engine.
pub enum ProcessEvent {
    Message(Event),
    /// It does what no engine does, and has to be killed.
    Offence(String),
    Ended(ExitStatus),
}

impl EngineProcess {
    /// Starts the program on this memory, as this user if there is one. `doorbells`: the I/O threads' eventfds.
    pub fn spawn(
        program: &Program,
        user: Option<&EngineUser>,
        backend: &Arc<EngineMemory>,
        doorbells: &[Arc<OwnedFd>],
        start: &Start,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let doorbells = doorbells.iter().map(|fd| fd.as_fd().try_clone_to_owned());
        let descriptors = Descriptors {
            memory: backend.region().file().try_clone_to_owned()?,
            control: theirs.into(),
            doorbells: doorbells.collect::<io::Result<_>>()?,
        };
        let child = program.launcher.launch(Launch { program: &program.file, user, descriptors })?;
        let (reader, control) = ours.into_split();
        let untold = BytesMut::from(&*control::encode(start));
        Ok(Self { child, events: Talk::new(reader), closed: None, control, untold })
    }

    /// Tells it what to do from now on, as [`EngineProcess::next`] goes on being called.
    pub fn order(&mut self, order: &Order) {
        // To ask whether it listens is pointless as long as it does not.
        if !(matches!(order, Order::Beat { .. }) && self.untold.has_remaining()) {
            self.untold.extend_from_slice(&control::encode(order));
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Waits for the next event, an offence, or the end. Nothing is lost when it is dropped before it ends.
    pub async fn next(&mut self) -> io::Result<ProcessEvent> {
        loop {
            let Self { child, events, closed, control, untold } = self;
            let gone = closed.map(|closed| closed + LAST_MOMENT);
            tokio::select! {
                biased;
                // Before what it says: one that says more than can be heard must get its beats, or it counts as hung.
                written = control.write(untold), if untold.has_remaining() => match written {
                    Ok(count) => untold.advance(count),
                    // It is about to end, or has closed its socket.
                    Err(_) => untold.clear(),
                },
                said = events.next(), if gone.is_none() => match said {
                    Ok(Some(event)) => return Ok(ProcessEvent::Message(event)),
                    Ok(None) => *closed = Some(Instant::now()),
                    Err(offence) => {
                        *closed = Some(Instant::now());
                        return Ok(ProcessEvent::Offence(offence.to_string()));
                    }
                },
                status = child.wait() => {
                    self.wait_for_others().await;
                    return status.map(ProcessEvent::Ended);
                }
                () = tokio::time::sleep_until(gone.unwrap_or_else(Instant::now)), if gone.is_some() => {
                    *closed = Some(Instant::now());
                    return Ok(ProcessEvent::Offence("it has closed its control socket".to_owned()));
                }
            }
        }
    }

    /// An engine can have several processes, which end with the first a moment later and have its socket open until then: what
    /// they take out of a queue must not be moved to another engine meanwhile.
    async fn wait_for_others(&mut self) {
        let closed = async {
            // What they say no longer counts.
            while self.closed.is_none() && matches!(self.events.next().await, Ok(Some(_))) {}
        };
        // Programs of scripts may have it open too.
        let _ = tokio::time::timeout(LAST_MOMENT, closed).await;
    }

    /// Ends it at once, whatever it has become, and all that its scripts have started and that has not left its group.
    pub fn kill(&mut self) {
        self.child.kill();
    }
}
