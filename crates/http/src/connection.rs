//! One HTTP/1.1 connection: hyper, with time-outs for every way in which a client can stall.

use crate::activity::{Activity, Expired, Patience};
use crate::watched::{WatchedBody, WatchedSocket};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};

/// What hyper's buffer has at least.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// Limits of a client's connection.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// From the first byte of a request's head to its end.
    pub read_header: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// Longest time in which a client takes nothing of an answer.
    pub write: Duration,
    /// Bytes of a request's head; above it the answer is 431. At least 8 KiB.
    pub max_header_size: usize,
}

/// Serves a connection to its end: until the client closes it, a limit is reached, or, once `drain` is done, the
/// running request has been answered.
///
/// An error is one of the client's making (a broken request, a reset) and has been answered if it can be.
pub async fn serve<S, F, R, B>(
    socket: S,
    settings: &Settings,
    drain: impl Future<Output = ()>,
    service: F,
) -> Result<(), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let activity = Rc::new(Activity::new());
    let socket = WatchedSocket::new(socket, Rc::clone(&activity));
    let for_service = Rc::clone(&activity);
    let service = service_fn(move |request| {
        for_service.request_started();
        let activity = Rc::clone(&for_service);
        let answer = service(request);
        async move {
            let answer = answer.await;
            if answer.headers().contains_key(header::CONNECTION) {
                activity.answered_with_close();
            }
            Ok::<_, Infallible>(answer.map(|body| WatchedBody { body, activity }))
        }
    });
    let connection = http1::Builder::new()
        .max_buf_size(settings.max_header_size.max(SMALLEST_BUFFER))
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    let mut drain = pin!(drain);
    let mut expiry = pin!(expiry(&activity, settings));
    let mut draining = false;
    std::future::poll_fn(|context| {
        if !draining && drain.as_mut().poll(context).is_ready() {
            draining = true;
            connection.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(result) = connection.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        match Pin::new(&mut expiry).poll(context) {
            // Nothing is under way: there is nobody to tell.
            Poll::Ready(Expired::Idle | Expired::Stalled) => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Ends when the connection has to.
async fn expiry(activity: &Activity, settings: &Settings) -> Expired {
    let patience = Patience { idle: settings.idle, head: settings.read_header, write: settings.write };
    loop {
        match activity.check(&patience, Instant::now()) {
            Ok(again) => tokio::time::sleep_until(again.into()).await,
            Err(expired) => return expired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const SETTINGS: Settings = Settings {
        read_header: Duration::from_secs(10),
        idle: Duration::from_secs(100),
        write: Duration::from_secs(60),
        max_header_size: 8 * 1024,
    };

    async fn hello(_: Request<Incoming>) -> Response<Full<Bytes>> {
        Response::new(Full::from("hello"))
    }

    /// What the server sends until it closes the connection, and after which (paused) time it does.
    async fn exchange(request: &[u8]) -> (String, Duration) {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let started = tokio::time::Instant::now();
        client.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        let (served, _) = tokio::join!(
            serve(server, &SETTINGS, std::future::pending(), hello),
            client.read_to_end(&mut answer)
        );
        let _ = served;
        (String::from_utf8(answer).unwrap(), started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_one_connection_are_answered_in_turn() {
        let (answer, _) = exchange(
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        )
        .await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_is_too_large_is_answered_431() {
        let request = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(9 * 1024));
        let (answer, _) = exchange(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
}
