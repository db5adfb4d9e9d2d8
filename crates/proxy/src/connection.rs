//! A connection that requests can be sent over.

use crate::connect::{Connected, Version};
use crate::limit::Place;
use crate::transports::Transport;
use crate::upload::Upload;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::time::Duration;
use tokio::task::{AbortHandle, spawn_local};

/// Bytes that an upstream may send of one response, and of all together, before somebody has taken some.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// How long the other end of a connection with requests on it may take to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// What sends requests over a connection.
pub(crate) enum Sender {
    Http1(http1::SendRequest<Upload>),
    Http2(http2::SendRequest<Upload>),
}

/// A connection's task. Dropped, it closes the connection.
pub(crate) struct Task {
    handle: Option<AbortHandle>,
    place: Option<Place>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.take().into_iter().for_each(|task| task.abort());
    }
}

impl Task {
    /// The connection is somebody else's now, and ends with that. Its place is to be kept until then.
    pub fn let_go(mut self) -> Option<Place> {
        self.handle = None;
        self.place.take()
    }
}

/// `place`: where the number of connections has a limit. `None` in place of a task: the connection ends with the last of its senders
/// and streams.
pub(crate) async fn begin(
    connected: Connected,
    transport: &Transport,
    place: Option<Place>,
) -> Result<(Sender, Option<Task>), hyper::Error> {
    let config = &transport.config.transport;
    let head_size = usize::try_from(config.max_response_header).unwrap_or(usize::MAX);
    let io = TokioIo::new(connected.stream);
    match connected.version {
        Version::Http1 => {
            let (sender, connection) = http1::Builder::new().max_buf_size(head_size).handshake(io).await?;
            let task = spawn_local(note_end(connection.with_upgrades()));
            Ok((Sender::Http1(sender), Some(Task { handle: Some(task.abort_handle()), place })))
        }
        Version::Http2 => {
            let interval = Some(config.keepalive_interval).filter(|interval| !interval.is_zero());
            let (sender, connection) = http2::Builder::new(Local)
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_header_list_size(config.max_response_header)
                .keep_alive_interval(interval)
                .keep_alive_timeout(PING_TIMEOUT)
                .handshake(io)
                .await?;
            spawn_local(note_end(connection));
            Ok((Sender::Http2(sender), None))
        }
    }
}

/// What a request gets to hear of it is in its own error.
async fn note_end(connection: impl Future<Output = hyper::Result<()>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to an upstream ended with an error");
    }
}

impl Sender {
    pub async fn send(
        &mut self,
        request: Request<Upload>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Upload>>> {
        match self {
            Self::Http1(sender) => sender.try_send_request(request).await,
            Self::Http2(sender) => sender.try_send_request(request).await,
        }
    }

    pub fn version(&self) -> Version {
        match self {
            Self::Http1(_) => Version::Http1,
            Self::Http2(_) => Version::Http2,
        }
    }
}

/// Runs what HTTP/2 does beside on the I/O thread.
#[derive(Clone)]
pub(crate) struct Local;

impl<F: Future<Output = ()> + 'static> Executor<F> for Local {
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}
