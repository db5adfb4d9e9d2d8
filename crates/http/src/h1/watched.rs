//! A socket, an answer and its body that report to the connection's [`Activity`].

use crate::h1::activity::Activity;
use crate::h1::events::{self, Framing, Lull};
use crate::h1::inbound::Inbound;
use crate::h1::interim::Interim;
use crate::linger::Linger;
use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body::{Body, Frame, SizeHint};
use regent_net::{Cork, Stream};
use std::convert::Infallible;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A socket whose reads and writes are noticed.
///
/// Shut down, it lingers if the client may still be sending: closing a socket with unread bytes resets the connection,
/// and a reset can overtake the answer that the client has not read yet (RFC 9112 §9.6). So what comes is read and
/// thrown away, for a while. Otherwise nothing is done, unless a [`Cork`] needs it: the socket is about to be closed,
/// which ends the stream in the same way and is one system call less. (A socket to which closing says less, such as one
/// with TLS, needs its shutdown in both cases, also if the connection is dropped in the middle of a request: its client would
/// take an end without a word for an attack. In the middle of a response it is to know that this is not all.)
pub(crate) struct WatchedSocket<S: Stream> {
    socket: S,
    inbound: Inbound,
    activity: Rc<Activity>,
    interim: Rc<Interim>,
    cork: Rc<Cork>,
    linger: Option<Linger>,
    is_shut_down: bool,
}

/// An answer that is on its way.
pub(crate) struct WatchedAnswer<R, B: Body> {
    pub answer: R,
    /// The final answer, while the interim ones that came with it are sent. Boxed, since few have any.
    pub held: Option<Box<Response<B>>>,
    pub activity: Rc<Activity>,
    pub interim: Rc<Interim>,
    /// `Some`: the client wants no other after it.
    pub cork: Option<Rc<Cork>>,
    /// Where its body goes if it is an event stream; `None`: nowhere.
    pub lull: Option<(Rc<Lull<B>>, Framing)>,
}

/// An answer's body whose end is noticed: the last frame, or the drop of a body that was not sent whole.
pub(crate) struct WatchedBody<B: Body> {
    /// `None`: it has gone into its lull.
    body: Option<B>,
    activity: Rc<Activity>,
    /// Its end was seen.
    is_whole: bool,
    /// Where it goes as soon as it has nothing to say; `None`: nowhere.
    lull: Option<(Rc<Lull<B>>, Framing)>,
}

impl<S: Stream> AsyncRead for WatchedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { socket, inbound, activity, .. } = &mut *self;
        activity.reading();
        let before = buffer.filled().len();
        let result = inbound.poll_read(socket, activity, context, buffer);
        if buffer.filled().len() > before {
            activity.received();
        }
        result
    }
}

impl<S: Stream> AsyncWrite for WatchedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_begun_interim(context))?;
        let result = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.noticed(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_begun_interim(context))?;
        let result = Pin::new(&mut self.socket).poll_write_vectored(context, parts);
        self.noticed(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// hyper flushes the socket after each poll of the service, and only when all that it had to write is written: what
    /// is sent here stands between two answers. A stream with TLS may have taken bytes that its socket has not: an answer
    /// that seems to have been sent is still on its way then.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.interim.is_empty() {
            ready!(self.poll_interim(context))?;
            // A final answer may wait for that.
            context.waker().wake_by_ref();
        }
        let result = Pin::new(&mut self.socket).poll_flush(context);
        match result {
            Poll::Pending => self.activity.write_blocked(),
            Poll::Ready(_) => self.activity.flushed(),
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            if !this.may_be_sent_to() && !this.cork.is_holding() && this.socket.close_says_all() {
                return Poll::Ready(Ok(()));
            }
            let result = Pin::new(&mut this.socket).poll_shutdown(context);
            ready!(this.noticed(result))?;
            this.is_shut_down = true;
            if !this.may_be_sent_to() {
                return Poll::Ready(Ok(()));
            }
        }
        let linger = this.linger.get_or_insert_with(Linger::new);
        linger.poll_drain(&mut this.socket, context).map(Ok)
    }
}

impl<S: Stream> WatchedSocket<S> {
    pub fn new(socket: S, activity: Rc<Activity>, interim: Rc<Interim>, cork: Rc<Cork>) -> Self {
        let inbound = Inbound::default();
        Self { socket, inbound, activity, interim, cork, linger: None, is_shut_down: false }
    }

    /// The socket itself, for bytes that are no HTTP.
    pub fn raw(&mut self) -> Pin<&mut S> {
        Pin::new(&mut self.socket)
    }

    /// Has these bytes read again, before all others.
    pub fn give_back(&mut self, read: Vec<u8>) {
        self.inbound.give_back(read);
    }

    /// What was read of it that hyper has not had.
    pub fn take_rest(&mut self) -> Vec<u8> {
        self.inbound.take_rest()
    }

    /// Whether the client may still be sending what nobody will read. hyper closes a connection of its own accord when
    /// a service has dropped a body unread, so the answer need not say it.
    fn may_be_sent_to(&self) -> bool {
        self.activity.is_cut_off() || self.inbound.is_in_body(&self.activity)
    }

    fn noticed<T>(&self, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match result {
            Poll::Pending => self.activity.write_blocked(),
            Poll::Ready(_) => self.activity.written(),
        }
        result
    }
}

impl<S: Stream> WatchedSocket<S> {
    fn poll_interim(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = self.interim.poll_write(&mut self.socket, context);
        self.noticed(result)
    }

    /// Nothing may come between two parts of an interim answer.
    fn poll_begun_interim(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.interim.has_begun() {
            true => self.poll_interim(context),
            false => Poll::Ready(Ok(())),
        }
    }
}

impl<S: Stream> Drop for WatchedSocket<S> {
    fn drop(&mut self) {
        if !self.is_shut_down && !self.activity.is_answering() && !self.socket.close_says_all() {
            // As far as the client takes it.
            let _ = Pin::new(&mut self.socket).poll_shutdown(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl<R: Future<Output = Response<B>> + Unpin, B: Body> WatchedAnswer<R, B> {
    /// An interim answer that comes together with the final one goes first: hyper flushes the socket while it waits for
    /// the final one, and the socket sends the interim one then.
    fn poll_held(&mut self, context: &mut Context<'_>) -> Poll<Response<B>> {
        if let Some(held) = self.held.take_if(|_| self.interim.is_empty() || self.interim.has_begun()) {
            return Poll::Ready(*held);
        }
        if self.held.is_none() {
            let answer = ready!(Pin::new(&mut self.answer).poll(context));
            if self.interim.is_empty() {
                return Poll::Ready(answer);
            }
            self.held = Some(Box::new(answer));
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<R: Future<Output = Response<B>> + Unpin, B: Body> Future for WatchedAnswer<R, B> {
    type Output = Result<Response<WatchedBody<B>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut answer = ready!(self.poll_held(context));
        if self.interim.is_aborted() {
            // The connection ends with this poll.
            return Poll::Pending;
        }
        if self.interim.is_closing() {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if answer.headers().contains_key(header::CONNECTION) {
            self.activity.answered_with_close();
        }
        if let Some(cork) = self.cork.take()
            && answer.body().size_hint().exact().is_some()
        {
            cork.arm();
        }
        let lull = self.lull.take().filter(|_| events::take_mark(&mut answer));
        let activity = Rc::clone(&self.activity);
        Poll::Ready(Ok(answer.map(|body| WatchedBody { body: Some(body), activity, is_whole: false, lull })))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for WatchedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Pending };
        let polled = Pin::new(body).poll_frame(context);
        self.is_whole |= matches!(polled, Poll::Ready(None));
        if polled.is_pending()
            && let Some((lull, framing)) = self.lull.take()
        {
            let activity = Rc::clone(&self.activity);
            let body = Self { body: self.body.take(), activity, is_whole: false, lull: None };
            lull.put(body, framing);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, |body| body.size_hint())
    }
}

impl<B: Body> Drop for WatchedBody<B> {
    fn drop(&mut self) {
        let Some(body) = &self.body else { return };
        if !self.is_whole && !body.is_end_stream() {
            self.activity.broke_off();
        }
        self.activity.request_ended();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linger::LINGER;
    use std::cell::Cell;
    use std::pin::pin;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    fn watched() -> (WatchedSocket<DuplexStream>, Rc<Activity>, DuplexStream) {
        let (client, server) = tokio::io::duplex(1024);
        let activity = Rc::new(Activity::new());
        (WatchedSocket::new(server, Rc::clone(&activity), Rc::default(), Rc::default()), activity, client)
    }

    /// Whether the client sees the end of the stream, after what comes before it.
    async fn sees_the_end(client: &mut DuplexStream) -> bool {
        // clock: virtual in all tests that call this.
        tokio::time::timeout(Duration::from_millis(1), client.read_to_end(&mut Vec::new())).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_socket_that_is_about_to_be_closed_in_good_order_is_not_shut_down_first() {
        let (mut socket, _activity, mut client) = watched();
        socket.write_all(b"the answer").await.unwrap();
        socket.shutdown().await.unwrap();
        assert!(!sees_the_end(&mut client).await);
        drop(socket);
        assert!(sees_the_end(&mut client).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_still_sending_is_told_the_end_and_waited_for() {
        let (mut socket, activity, mut client) = watched();
        activity.answered_with_close();
        let mut shut_down = pin!(socket.shutdown());
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut shut_down).await.is_err());
        assert!(sees_the_end(&mut client).await);
        client.write_all(&[0; 512]).await.unwrap();
        drop(client);
        tokio::time::timeout(LINGER / 2, shut_down).await.expect("the client has closed").unwrap();
    }

    /// One as of TLS: closing it says less than shutting it down.
    struct Sealed {
        stream: DuplexStream,
        was_shut_down: Rc<Cell<bool>>,
    }

    impl Stream for Sealed {}

    impl AsyncRead for Sealed {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Sealed {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.stream).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.was_shut_down.set(true);
            Pin::new(&mut self.stream).poll_shutdown(context)
        }
    }

    #[test]
    fn a_connection_with_tls_that_is_dropped_says_that_it_ends_but_within_a_response() {
        let is_told = |activity: Activity| {
            let (_client, stream) = tokio::io::duplex(1024);
            let was_shut_down = Rc::<Cell<bool>>::default();
            let sealed = Sealed { stream, was_shut_down: Rc::clone(&was_shut_down) };
            drop(WatchedSocket::new(sealed, Rc::new(activity), Rc::default(), Rc::default()));
            was_shut_down.get()
        };
        let activity = Activity::new();
        activity.received();
        assert!(is_told(activity), "its client has stalled in the middle of a head");
        let activity = Activity::new();
        activity.received();
        activity.request_started(Some(0));
        assert!(!is_told(activity), "a body that ends with the stream would seem whole");
        let activity = Rc::new(Activity::new());
        activity.request_started(Some(0));
        let body = http_body_util::Full::new(Bytes::from("half"));
        drop(WatchedBody { body: Some(body), activity: Rc::clone(&activity), is_whole: false, lull: None });
        assert!(!is_told(Rc::into_inner(activity).unwrap()), "so would one that has failed");
    }
}
