//! A stream that has left HTTP (RFC 9220).

use crate::h3::code;
use crate::h3::frames;
use crate::h3::incoming::Bodies;
use crate::h3::message::{Message, Part, Wrong};
use crate::h3::response::Reply;
use crate::h3::stream::{Outcome, Shared};
use bytes::{Buf, Bytes};
use regent_exchange::Tunnel;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a frame.
const PIECE: usize = 16 * 1024;

/// Gives the stream to the tunnel until that ends, the client wants no more of it, or the server drains: nobody knows when a tunnel
/// would.
pub(super) async fn dig<F>(
    reply: Reply,
    message: Message,
    tunnel: Tunnel,
    shared: &Shared<'_, F>,
) -> Outcome {
    let back = Rc::new(RefCell::new(Back { reply, unsent: Default::default() }));
    let channel = Channel {
        back: Rc::clone(&back),
        message: Some(message),
        bodies: Rc::clone(&shared.bodies),
        rest: Bytes::new(),
    };
    let is_stopped = poll_fn(|context| back.borrow_mut().poll_stopped(context));
    tokio::select! {
        biased;
        () = is_stopped => return Outcome::Reset,
        () = shared.drain.begun() => back.borrow_mut().end(),
        () = tunnel(Box::new(channel)) => {}
    }
    let Back { reply, .. } = Rc::into_inner(back).expect("invariant: the channel is gone").into_inner();
    match reply.has_ended() {
        true => reply.delivered(&shared.connection).await,
        false => reply.reset(code::REQUEST_CANCELLED),
    }
    Outcome::Complete
}

/// A stream as bytes both ways. The client may send as much more as was taken.
struct Channel {
    back: Rc<RefCell<Back>>,
    /// `None`: the client sends no more.
    message: Option<Message>,
    bodies: Rc<Bodies>,
    /// What has come and was not taken.
    rest: Bytes,
}

/// The way to the client.
struct Back {
    reply: Reply,
    /// The head and the content of a frame, as far as there was no room for them.
    unsent: [Bytes; 2],
}

impl Back {
    /// Ready when the client takes no more. (Of what has ended, it has all then.)
    fn poll_stopped(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.reply.has_ended() { Poll::Pending } else { self.reply.poll_stopped(context) }
    }

    fn poll_unsent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(first) = self.unsent.iter().position(|chunk| !chunk.is_empty()) {
            ready!(self.reply.poll_write(&mut self.unsent[first..], context))?;
        }
        Poll::Ready(Ok(()))
    }

    /// In good order, unless a frame would be cut.
    fn end(&mut self) {
        if self.unsent.iter().all(Bytes::is_empty) {
            // An error says that it has ended.
            let _ = self.reply.finish();
        }
    }
}

impl Channel {
    /// What comes next; nothing at the end.
    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let Some(message) = &mut self.message else { return Poll::Ready(Ok(Bytes::new())) };
        let part = ready!(message.poll_part(context));
        if !matches!(part, Ok(Part::Data(_))) {
            self.message = None;
        }
        Poll::Ready(match part {
            Ok(Part::Data(data)) => Ok(data),
            Ok(Part::End) => Ok(Bytes::new()),
            // RFC 9114 §4.4: only frames of data.
            Ok(Part::Head(_) | Part::Trailers(_)) => self.wrong(code::FRAME_UNEXPECTED),
            Err(Wrong::Protocol(code)) => self.wrong(code),
            Err(Wrong::TooLarge) => self.wrong(code::FRAME_UNEXPECTED),
            Err(Wrong::Lost | Wrong::Incomplete) => Err(io::ErrorKind::ConnectionReset.into()),
        })
    }

    /// Ends the connection.
    fn wrong(&self, code: quinn::VarInt) -> io::Result<Bytes> {
        self.bodies.break_off(code);
        Err(io::ErrorKind::InvalidData.into())
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            self.rest = ready!(self.poll_part(context))?;
        }
        let count = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..count]);
        self.rest.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Channel {
    /// A frame is taken whole, and waits for room here.
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut back = self.back.borrow_mut();
        ready!(back.poll_unsent(context))?;
        let content = Bytes::copy_from_slice(&bytes[..bytes.len().min(PIECE)]);
        let count = content.len();
        if count > 0 {
            let mut head = Vec::with_capacity(9);
            frames::write_head(frames::DATA, count, &mut head);
            back.unsent = [head.into(), content];
            if let Poll::Ready(sent) = back.poll_unsent(context) {
                sent?;
            }
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.back.borrow_mut().poll_unsent(context)
    }

    /// RFC 9220 §3: the end of the stream is that of a connection.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut back = self.back.borrow_mut();
        ready!(back.poll_unsent(context))?;
        Poll::Ready(back.reply.finish().map_err(|_| io::ErrorKind::ConnectionReset.into()))
    }
}
