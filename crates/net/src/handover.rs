//! Two processes of which one gives the other its sockets: messages of text, each with a descriptor or none.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown,
    socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::time::Duration;

/// Bytes of the longest text; of a longer one the rest is lost.
const LONGEST: usize = 16 * 1024;

/// One end. All that it does may block.
#[derive(Debug)]
pub struct Handover(OwnedFd);

/// A message.
#[derive(Debug)]
pub struct Received {
    pub text: String,
    /// Closed when this process becomes another program.
    pub descriptor: Option<OwnedFd>,
}

impl Handover {
    /// Both ends. They are closed when this process becomes another program.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        // Its messages keep their bounds, and it has an end, which a socket for datagrams has not.
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok((Self(ours), theirs))
    }

    /// The end that this process was given.
    pub fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Another hold on the same end.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// How long [`Self::receive`] and [`Self::send`] wait at most, from now on. At least a microsecond.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        for timeout in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&self.0, timeout, Some(patience))?;
        }
        Ok(())
    }

    /// # Errors
    /// When the other end is closed, or this system lets no descriptor be sent.
    pub fn send(&self, text: &str, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptor = descriptor.as_slice();
        if !descriptor.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptor)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let text = &text.as_bytes()[..text.len().min(LONGEST)];
        // An end that is closed is an error, and no SIGPIPE.
        sendmsg(&self.0, &[IoSlice::new(text)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next message; `None`: the other end is closed.
    ///
    /// # Errors
    /// `WouldBlock` when nothing has come for as long as [`Self::set_patience`] says.
    pub fn receive(&self) -> io::Result<Option<Received>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut text = vec![0; LONGEST];
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)
        })?;
        if received.bytes == 0 {
            return Ok(None);
        }
        let descriptors = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptor = descriptors.flatten().next();
        text.truncate(received.bytes);
        Ok(Some(Received { text: String::from_utf8_lossy(&text).into_owned(), descriptor }))
    }

    /// Whoever waits at either end is told that the other is closed.
    pub fn end(&self) {
        // It has ended already otherwise.
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

impl AsFd for Handover {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{FdFlags, fcntl_getfd};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (Handover, Handover) {
        let (ours, theirs) = Handover::pair().unwrap();
        (ours, Handover::new(theirs))
    }

    #[test]
    fn a_socket_goes_over_and_is_not_for_programs_that_are_started() {
        let (ours, theirs) = pair();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        ours.send("a socket", Some(listener.as_fd())).unwrap();
        ours.send("that was all", None).unwrap();
        drop((listener, ours));
        let received = theirs.receive().unwrap().unwrap();
        assert_eq!(received.text, "a socket");
        let socket = received.descriptor.unwrap();
        assert!(fcntl_getfd(&socket).unwrap().contains(FdFlags::CLOEXEC));
        let _client = TcpStream::connect(address).unwrap();
        TcpListener::from(socket).accept().unwrap();
        let last = theirs.receive().unwrap().unwrap();
        assert!(last.text == "that was all" && last.descriptor.is_none());
        assert!(theirs.receive().unwrap().is_none());
    }

    #[test]
    fn silence_is_borne_for_as_long_as_was_said() {
        let (_ours, theirs) = pair();
        theirs.set_patience(Duration::from_millis(1)).unwrap();
        assert_eq!(theirs.receive().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn who_waits_is_told_of_the_end() {
        let (ours, theirs) = pair();
        ours.try_clone().unwrap().end();
        assert!(theirs.receive().unwrap().is_none());
        assert!(ours.send("late", None).is_err());
    }
}
