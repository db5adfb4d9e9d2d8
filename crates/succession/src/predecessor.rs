//! The server whose place this one takes: see [`crate::Attempt`] for its side.

use crate::conversation::{ALL, CONFIGURATION, FAILED, GO, GREETING, PATIENCE, READY, SERVING, keeper};
use regent_net::{Handover, Inherited, InheritedSocket, Received};
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{self, Seek};
use std::sync::Arc;

/// The server whose place this one takes. It goes on as long as this one does not say that it serves.
#[derive(Clone)]
pub struct Predecessor(Arc<Handover>);

/// What a server hands over.
pub struct Legacy {
    pub inherited: Inherited,
    /// Where its configuration is from; `None`: where it was started with it.
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
    pub async fn take_turn(&self) -> io::Result<()> {
        let handover = Arc::clone(&self.0);
        let taking = tokio::task::spawn_blocking(move || {
            handover.send(READY, None)?;
            next(&handover)
        });
        let taken = taking.await.expect("invariant: a conversation does not panic");
        match taken {
            Ok(Received { text, .. }) if text == GO => Ok(()),
            Ok(Received { text, .. }) => Err(io::Error::other(text)),
            Err(error) => Err(error),
        }
    }

    /// Ends when it has no connection of HTTP/3 any more: it has said so, or has ended.
    pub async fn has_left(&self) {
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

fn next(handover: &Handover) -> io::Result<Received> {
    handover.receive()?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;

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
