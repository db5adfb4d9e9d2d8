//! One HTTP/1.1 connection: hyper, with time-outs for every way in which a client can stall.

use crate::activity::{Activity, Expired, Moment, Patience};
use crate::drain::Drain;
use crate::watched::{WatchedAnswer, WatchedSocket};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
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

/// Serves a connection to its end: until the client closes it, a limit is reached, or, once `drain` has begun, the
/// running request has been answered.
///
/// An error is one of the client's making (a broken request, a reset) and has been answered if it can be.
pub async fn serve<S, F, R, B>(
    socket: S,
    settings: &Settings,
    drain: &Drain,
    service: F,
) -> Result<(), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Response<B>> + Unpin,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let activity = Rc::new(Activity::new());
    let socket = WatchedSocket::new(socket, Rc::clone(&activity));
    let for_service = Rc::clone(&activity);
    let service = service_fn(move |request| {
        for_service.request_started();
        WatchedAnswer { answer: service(request), activity: Rc::clone(&for_service) }
    });
    let connection = http1::Builder::new()
        .max_buf_size(settings.max_header_size.max(SMALLEST_BUFFER))
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    let mut drain = drain.watch();
    let mut expiry = pin!(expiry(&activity, settings));
    let mut draining = false;
    std::future::poll_fn(|context| {
        if !draining && drain.poll_begun(context) {
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
        match activity.check(&patience, Moment::now()) {
            Ok(wait) => tokio::time::sleep(wait).await,
            Err(expired) => return expired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use std::future::{Ready, ready};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const SETTINGS: Settings = Settings {
        read_header: Duration::from_secs(10),
        idle: Duration::from_secs(100),
        write: Duration::from_secs(60),
        max_header_size: 8 * 1024,
    };

    fn hello(_: Request<Incoming>) -> Ready<Response<Full<Bytes>>> {
        ready(Response::new(Full::from("hello")))
    }

    /// What the server sends until it closes the connection, and after which (paused) time it does.
    async fn exchange(request: &[u8]) -> (String, Duration) {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let started = tokio::time::Instant::now();
        client.write_all(request).await.unwrap();
        let (drain, mut answer) = (Drain::default(), Vec::new());
        let (served, _) =
            tokio::join!(serve(server, &SETTINGS, &drain, hello), client.read_to_end(&mut answer));
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

    #[tokio::test(start_paused = true)]
    async fn a_drain_ends_an_idle_connection() {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let drain = Drain::default();
        let mut answer = Vec::new();
        let client = async {
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            let first = client.read(&mut [0; 1024]).await.unwrap();
            drain.begin();
            client.read_to_end(&mut answer).await.unwrap();
            first
        };
        let (served, first) = tokio::join!(serve(server, &SETTINGS, &drain, hello), client);
        served.unwrap();
        assert!(first > 0 && answer.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_lets_a_running_request_end() {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let drain = Drain::default();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let service = |request| {
            Box::pin(async {
                drain.begin();
                tokio::time::sleep(Duration::from_secs(5)).await;
                hello(request).await
            })
        };
        let (served, _) =
            tokio::join!(serve(server, &SETTINGS, &drain, service), client.read_to_end(&mut answer));
        served.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            answer.to_ascii_lowercase().contains("connection: close") && answer.ends_with("hello"),
            "{answer}"
        );
    }
}
