//! The body of a script's response on its way to the client.

use crate::fastcgi::fault::Fault;
use crate::fastcgi::head;
use crate::fastcgi::talk::Talk;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::timeout;

/// How long a script may go on when its response is complete: what it writes then nobody reads.
const AFTERWARDS: Duration = Duration::from_secs(60);

/// A script's output behind the head, held to the length that the head says. Dropped before its end, it closes the
/// connection.
pub(crate) struct Stdout {
    /// Has come with the head.
    first: Bytes,
    /// Bytes that are to come; `None`: until the script ends.
    left: Option<u64>,
    /// `None`: the body has come to its end.
    talk: Option<Talk>,
}

/// `method`: what was asked for.
pub(super) fn begin(response: Response<()>, first: Bytes, talk: Talk, method: &Method) -> Response<Stdout> {
    let status = response.status();
    let is_without = *method == Method::HEAD
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED);
    let left = if is_without { Some(0) } else { head::declared(response.headers()) };
    let mut body = Stdout { first, left, talk: Some(talk) };
    if left == Some(0) {
        body.end();
    }
    response.map(|()| body)
}

impl Stdout {
    /// The response is complete, and the script may not be: closing the connection would end it.
    fn end(&mut self) {
        if let Some(talk) = self.talk.take() {
            spawn_local(timeout(AFTERWARDS, talk.drain()));
        }
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        let Some(talk) = &mut self.talk else { return Poll::Ready(Ok(None)) };
        if !self.first.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.first))));
        }
        let output = ready!(talk.poll_output(context))?;
        if output.is_none() {
            self.talk = None;
            if self.left.is_some_and(|left| left > 0) {
                return Poll::Ready(Err(Fault::Cut));
            }
        }
        Poll::Ready(Ok(output))
    }
}

impl Body for Stdout {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(mut bytes) = ready!(self.poll_bytes(context))? else { return Poll::Ready(None) };
        if let Some(left) = &mut self.left {
            bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= bytes.len() as u64;
            if *left == 0 {
                self.end();
            }
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.talk.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.talk, self.left) {
            (None, _) => SizeHint::with_exact(0),
            (Some(_), Some(left)) => SizeHint::with_exact(left),
            (Some(_), None) => SizeHint::default(),
        }
    }
}
