//! The server whose place this one takes: see [`crate::upgrade`] for its side.

use crate::StartError;
use crate::state::Server;
use regent_connections::Opened;
use regent_net::{FileIdentity, Handover, Inherited, InheritedSocket, Keeper, Received};
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{self, Seek};
use std::sync::Arc;
use std::time::Duration;

/// What both servers say first. Another number is for a server that says something else afterwards.
pub(crate) const GREETING: &str = "regent handover 1";
/// All sockets have been sent.
pub(crate) const ALL: &str = "all";
/// With a file: where the configuration is from.
pub(crate) const CONFIGURATION: &str = "configuration";
/// The new server could serve.
pub(crate) const READY: &str = "ready";
/// The new server is to serve.
pub(crate) const GO: &str = "go";
/// The new server serves.
pub(crate) const SERVING: &str = "serving";
/// Before the reason why the new server does not start.
pub(crate) const FAILED: &str = "failed ";
/// Before what belongs to a socket.
const SOCKET: &str = "socket ";

/// How long the other server may take to an answer, beside that of a machine that has much to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The server whose place this one takes. It goes on as long as this one does not say that it serves.
#[derive(Clone)]
pub struct Predecessor(Arc<Handover>);

/// What a server hands over.
pub struct Legacy {
    pub inherited: Inherited,
    /// What [`crate::ConfigSource::current`] has said there.
    pub configuration: Option<String>,
}

impl Predecessor {
    /// The one at the other end of this socket, and what it hands over. May block.
    ///
    /// # Errors
    /// When it does not say what servers say.
    pub fn meet(socket: OwnedFd) -> io::Result<(Self, Legacy)> {
        let handover = Handover::new(socket);
        handover.set_patience(PATIENCE)?;
        if next(&handover)?.text != GREETING {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the server before speaks another language: stop it, and start this one",
            ));
        }
        let (mut sockets, mut configuration) = (Vec::new(), None);
        loop {
            match next(&handover)? {
                Received { text, .. } if text == ALL => break,
                Received { text, descriptor: Some(file) } if text == CONFIGURATION => {
                    let mut file = File::from(file);
                    file.rewind()?;
                    configuration = Some(io::read_to_string(file)?);
                }
                Received { text, descriptor: Some(socket) } => {
                    sockets.push(InheritedSocket::new(socket, keeper(&text))?);
                }
                Received { text, .. } => return Err(io::Error::other(format!("`{text}` came in between"))),
            }
        }
        Ok((Self(Arc::new(handover)), Legacy { inherited: Inherited::new(sockets), configuration }))
    }

    /// Says why this server does not take its place.
    pub fn refuse(&self, reason: &str) {
        // It has gone itself otherwise.
        let _ = self.0.send(&format!("{FAILED}{reason}"), None);
    }

    /// Says that this server serves. From then on nobody else does.
    pub fn serving(&self) -> io::Result<()> {
        self.0.send(SERVING, None)
    }

    /// Says that this server could serve, and waits until it is to.
    pub(crate) async fn take_turn(&self) -> Result<(), StartError> {
        let handover = Arc::clone(&self.0);
        let taking = tokio::task::spawn_blocking(move || {
            handover.send(READY, None)?;
            next(&handover)
        });
        let taken = taking.await.expect("invariant: a conversation does not panic");
        match taken {
            Ok(Received { text, .. }) if text == GO => Ok(()),
            Ok(Received { text, .. }) => Err(StartError::Predecessor(io::Error::other(text))),
            Err(error) => Err(StartError::Predecessor(error)),
        }
    }

    /// Ends when it has no connection of HTTP/3 any more: it has said so, or has ended.
    pub(crate) async fn has_left(&self) {
        let handover = Arc::clone(&self.0);
        let leaving = tokio::task::spawn_blocking(move || {
            loop {
                match handover.receive() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Ok(None) | Err(_) => return,
                    Ok(Some(_)) => {}
                }
            }
        });
        leaving.await.expect("invariant: a conversation does not panic");
    }
}

impl Server {
    /// Accepts from these as soon as it is this server's turn; from those of HTTP/3 when the server before has none any more:
    /// two cannot tell apart for whom a datagram is.
    pub async fn succeed(
        self: &Arc<Self>,
        predecessor: &Predecessor,
        sockets: Vec<Opened>,
    ) -> Result<(), StartError> {
        let (streams, datagrams) =
            sockets.into_iter().partition(|opened| matches!(opened, Opened::Stream(..)));
        self.io.prepare_to_open(streams).await.map_err(StartError::Predecessor)?;
        if let Some(check) = self.current().health.clone() {
            self.io.probe(check).await.map_err(StartError::NotReady)?;
        }
        predecessor.take_turn().await?;
        self.io.open();
        let (server, predecessor) = (Arc::downgrade(self), predecessor.clone());
        tokio::spawn(async move {
            predecessor.has_left().await;
            if let Some(server) = server.upgrade() {
                server.receive(datagrams).await;
            }
        });
        Ok(())
    }

    async fn receive(&self, mut sockets: Vec<Opened>) {
        let Ok(mut state) = self.lock().await else { return };
        state.awaits_datagrams = false;
        // A reload may have closed some.
        sockets.retain(|opened| state.addresses.has(opened.number()));
        match self.io.prepare_to_open(sockets).await {
            Ok(()) => self.io.open(),
            Err(error) => tracing::error!(%error, "HTTP/3 could not be taken over from the server before"),
        }
    }
}

fn next(handover: &Handover) -> io::Result<Received> {
    handover.receive()?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// What a socket is announced with.
pub(crate) fn announcement(keeper: &Keeper) -> String {
    match keeper {
        Keeper::ServiceManager(name) => format!("{SOCKET}kept {name}"),
        Keeper::Server(None) => format!("{SOCKET}own"),
        Keeper::Server(Some(FileIdentity { device, inode })) => format!("{SOCKET}file {device} {inode}"),
    }
}

fn keeper(announcement: &str) -> Keeper {
    let about = announcement.strip_prefix(SOCKET).unwrap_or_default();
    if let Some(name) = about.strip_prefix("kept ") {
        return Keeper::ServiceManager(name.to_owned());
    }
    let numbers = about.strip_prefix("file ").and_then(|numbers| numbers.split_once(' '));
    let identity = numbers.and_then(|(device, inode)| {
        Some(FileIdentity { device: device.parse().ok()?, inode: inode.parse().ok()? })
    });
    Keeper::Server(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_a_socket_is_goes_with_it() {
        let file = FileIdentity { device: 7, inode: u64::MAX };
        for own in
            [Keeper::Server(None), Keeper::Server(Some(file)), Keeper::ServiceManager("a b.socket".into())]
        {
            assert_eq!(keeper(&announcement(&own)), own);
        }
    }

    #[test]
    fn who_says_something_else_is_no_server() {
        for said in [&["hello"][..], &[GREETING, "nonsense"], &[]] {
            let (ours, theirs) = Handover::pair().unwrap();
            said.iter().for_each(|text| ours.send(text, None).unwrap());
            drop(ours);
            assert!(Predecessor::meet(theirs).is_err(), "{said:?}");
        }
    }
}
