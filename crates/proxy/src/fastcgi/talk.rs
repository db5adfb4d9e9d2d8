//! A connection to a FastCGI server, with its one request.

use crate::fastcgi::fault::Fault;
use crate::fastcgi::head::Incoming;
use crate::fastcgi::record::{Decoder, Piece};
use crate::fastcgi::stdin::{self, Sent};
use crate::timed::Timed;
use crate::upload::{Progress, Upload};
use bytes::Bytes;
use http::{Response, StatusCode};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::task::JoinHandle;

/// Bytes that are read at a time.
const READ: usize = 16 * 1024;
/// Bytes of the error stream that go to the log.
const MOST_STDERR: usize = 16 * 1024;

/// Dropped, it closes the connection.
pub(super) struct Talk {
    stream: ReadHalf<Timed>,
    decoder: Decoder,
    /// `None`: the request has been sent.
    sending: Option<JoinHandle<Sent>>,
    stderr: Option<Stderr>,
}

/// What a script says on its error stream, for the log.
struct Stderr {
    upstream: String,
    text: Vec<u8>,
    status: Option<StatusCode>,
}

impl Talk {
    /// Begins to send. `name`: of the upstream, if what scripts write to their error stream is to be logged.
    pub fn begin(
        stream: Timed,
        variables: &[u8],
        upload: Upload,
        progress: &Rc<Progress>,
        name: Option<String>,
    ) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            stream: reader,
            decoder: Decoder::default(),
            sending: Some(stdin::send(writer, variables, upload, progress)),
            stderr: name.map(|upstream| Stderr { upstream, text: Vec::new(), status: None }),
        }
    }

    /// Reads the head of the response, of at most so many bytes, and what has come of the body with it.
    pub async fn head(&mut self, most: usize) -> Result<(Response<()>, Bytes), Fault> {
        let mut incoming = Incoming::default();
        loop {
            let Some(output) = poll_fn(|context| self.poll_output(context)).await? else {
                return Err(Fault::Head("there is none"));
            };
            if let Some((response, rest)) = incoming.take(&output, most)? {
                self.stderr.iter_mut().for_each(|stderr| stderr.status = Some(response.status()));
                return Ok((response, rest));
            }
        }
    }

    /// More of the script's output; `None` at its end.
    pub fn poll_output(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        loop {
            match self.decoder.next()? {
                Some(Piece::Stdout(bytes)) => return Poll::Ready(Ok(Some(bytes))),
                Some(Piece::Stderr(bytes)) => {
                    self.stderr.iter_mut().for_each(|stderr| stderr.take(&bytes));
                }
                Some(Piece::End) => return Poll::Ready(Ok(None)),
                None => ready!(self.poll_read(context))?,
            }
        }
    }

    /// Reads the rest, whatever it is, so that the script can come to its end.
    pub async fn drain(mut self) {
        while let Ok(Some(_)) = poll_fn(|context| self.poll_output(context)).await {}
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if let Some(sending) = &mut self.sending
            && let Poll::Ready(sent) = Pin::new(sending).poll(context)
        {
            self.sending = None;
            if matches!(sent, Ok(Sent::Broken)) {
                return Poll::Ready(Err(Fault::Upload));
            }
        }
        let buffer = self.decoder.buffer();
        buffer.reserve(READ);
        let read = pin!(self.stream.read_buf(buffer)).poll(context);
        Poll::Ready(match ready!(read)? {
            0 => Err(Fault::Cut),
            _ => Ok(()),
        })
    }
}

impl Stderr {
    fn take(&mut self, bytes: &[u8]) {
        let room = MOST_STDERR - self.text.len();
        self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// As Caddy does: an error if the response is one.
    fn log(&self) {
        let text = String::from_utf8_lossy(self.text.trim_ascii());
        let upstream = self.upstream.as_str();
        match self.status {
            _ if text.is_empty() => {}
            Some(status) if status.as_u16() < 400 => {
                tracing::warn!(upstream, stderr = %text, "a script's errors")
            }
            _ => tracing::error!(upstream, stderr = %text, "a script's errors"),
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.sending.iter().for_each(JoinHandle::abort);
        self.stderr.iter().for_each(Stderr::log);
    }
}
