//! One engine process: started with its memory, watched, and ended.

use command_fds::CommandFdExt;
use command_fds::FdMapping;
use regent_wire::Backend;
use regent_wire::control::{self, Event, Order, Start, descriptors};
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};

/// A running engine. Dropped, it is killed.
pub(crate) struct EngineProcess {
    child: Child,
    events: Lines<BufReader<OwnedReadHalf>>,
    /// The engine ends when it closes.
    control: OwnedWriteHalf,
}

/// What happened to an engine.
pub(crate) enum Occurrence {
    Event(Event),
    Ended(ExitStatus),
}

impl EngineProcess {
    /// Starts `program` on this memory. `doorbells`: the I/O threads' eventfds.
    pub async fn spawn(
        program: &Path,
        backend: &Arc<Backend>,
        doorbells: &[Arc<OwnedFd>],
        start: &Start,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        let mut mappings = vec![
            FdMapping {
                parent_fd: backend.region().file().try_clone_to_owned()?,
                child_fd: descriptors::MEMORY,
            },
            FdMapping { parent_fd: theirs.into(), child_fd: descriptors::CONTROL },
        ];
        for (fd, child_fd) in doorbells.iter().zip(descriptors::DOORBELLS..) {
            mappings.push(FdMapping { parent_fd: fd.as_fd().try_clone_to_owned()?, child_fd });
        }
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        let child = command.spawn()?;
        let (reader, mut writer) = ours.into_split();
        writer.write_all(&control::encode(start)).await?;
        Ok(Self { child, events: BufReader::new(reader).lines(), control: writer })
    }

    /// Tells it what to do from now on.
    pub async fn order(&mut self, order: &Order) -> io::Result<()> {
        self.control.write_all(&control::encode(order)).await
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Waits for the next event, or the end. Lines that are no events are passed over: the engine may be broken.
    pub async fn next(&mut self) -> io::Result<Occurrence> {
        loop {
            tokio::select! {
                biased;
                line = self.events.next_line() => match line {
                    Ok(Some(line)) => match control::decode(&line) {
                        Ok(event) => return Ok(Occurrence::Event(event)),
                        Err(error) => tracing::warn!(%error, "the engine sent what is no event"),
                    },
                    // The socket closes before the process is gone, or is held open by a child of a script.
                    _ => return self.child.wait().await.map(Occurrence::Ended),
                },
                status = self.child.wait() => return status.map(Occurrence::Ended),
            }
        }
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        // It has ended already otherwise.
        let _ = self.child.start_kill();
    }
}
