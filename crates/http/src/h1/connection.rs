//! One HTTP/1.1 connection: hyper, with time-outs for every way in which a client can stall.

use crate::h1::activity::Activity;
use crate::h1::events::{Events, Framing, Lull, unboxed};
use crate::h1::interim::Interim;
use crate::h1::last_request::LastRequest;
use crate::h1::tunnel;
use crate::h1::watched::{WatchedAnswer, WatchedSocket};
use crate::timeouts::{Expired, Timeouts};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, Version, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use regent_exchange::{Informational, RequestBody};
use regent_net::{CoarseInstant, Cork, Drain, Stream};
use std::error::Error;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// What hyper's buffer has at least.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// Limits of a client's connection.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// From the first byte of a request's head to its end.
    pub read_header: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// How long a connection that is to end is waited for: from its beginning to its first request, and for the rest of a head.
    pub last_request: Duration,
    /// Longest time in which a client takes nothing of an answer.
    pub write: Duration,
    /// Bytes of a request's head; above it the answer is 431. At least 8 KiB.
    pub max_header_size: usize,
}

/// Serves a connection to its end: until the client closes it, a limit is reached, or, once `drain` has begun, the
/// running request has been answered, and one that has begun to come, or that a new client may be about to send.
///
/// `service` is also told how long the request's head took to come, from its first byte to its last; zero if it came
/// whole. While it makes an answer, others can be sent through `interim`, which is this connection's alone.
///
/// `cork` is that of the socket.
///
/// An error is one of the client's making (a broken request, a reset) and has been answered if it can be.
pub async fn serve<S, F, R, B>(
    socket: S,
    cork: Rc<Cork>,
    settings: &Settings,
    drain: &Drain,
    interim: Rc<Interim>,
    service: F,
) -> Result<(), hyper::Error>
where
    S: Stream + 'static,
    F: Fn(Request<RequestBody>, Duration) -> R,
    R: Future<Output = Response<B>> + Unpin,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let activity = Rc::new(Activity::new());
    let socket = WatchedSocket::new(socket, Rc::clone(&activity), Rc::clone(&interim), Rc::clone(&cork));
    let for_service = Rc::clone(&activity);
    let last = Rc::clone(&cork);
    let ends = Rc::clone(&interim);
    let silent = Rc::<Lull<B>>::default();
    let lull = Rc::clone(&silent);
    let service = service_fn(move |request: Request<Incoming>| {
        let head_time = for_service.request_started(request.body().size_hint().exact());
        if request.extensions().get::<OnUpgrade>().is_some() {
            for_service.upgrade_offered();
        }
        let (activity, interim) = (Rc::clone(&for_service), Rc::clone(&interim));
        let is_last = is_last(&request);
        let cork = is_last.then(|| Rc::clone(&last));
        let lull = Framing::of(&request, is_last).map(|framing| (Rc::clone(&lull), framing));
        let answer = service(request.map(RequestBody::new), head_time);
        WatchedAnswer { answer, held: None, activity, interim, cork, lull }
    });
    let mut http = http1::Builder::new();
    http.max_buf_size(settings.max_header_size.max(SMALLEST_BUFFER));
    // Boxed, so that nothing of it is kept while an event stream is silent.
    let mut connection = Box::new(http.serve_connection(TokioIo::new(socket), service));
    let mut watch = drain.watch();
    let mut expiry = pin!(expiry(&activity, settings));
    let mut last_request = LastRequest::default();
    loop {
        let mut draining = false;
        let mut handed_over = None;
        let mut stream = None;
        let served = std::future::poll_fn(|context| {
            let is_left = watch.poll_begun(context);
            if !draining && (ends.is_closing() || (is_left && activity.is_busy())) {
                draining = true;
                Pin::new(&mut *connection).graceful_shutdown();
            }
            let mut served = Pin::new(&mut *connection).poll(context);
            // What has come by now was read.
            if served.is_pending()
                && is_left
                && !draining
                && !last_request.is_awaited(&activity, settings.last_request, context)
            {
                draining = true;
                Pin::new(&mut *connection).graceful_shutdown();
                served = Pin::new(&mut *connection).poll(context);
            }
            if ends.is_aborted() {
                return Poll::Ready(Ok(()));
            }
            // After an `Upgrade` field hyper leaves the socket to whoever takes it over, neither flushed nor shut down. If nobody
            // does, and it is polled again, it ends the connection like any other.
            if matches!(served, Poll::Ready(Ok(()))) && activity.take_upgrade_offered() {
                // What hyper could not send of the 101 is lost to whoever takes over.
                handed_over = ends.take_tunnel().filter(|_| !activity.is_write_blocked());
                if handed_over.is_none() {
                    served = Pin::new(&mut *connection).poll(context);
                }
            }
            // Said behind the head of an answer.
            if !draining && ends.is_closing() {
                context.waker().wake_by_ref();
            }
            // Whatever is left to wait for, or has gone wrong.
            cork.release();
            if served.is_ready() {
                return served;
            }
            // hyper flushes what it has when a body has nothing to say.
            if !activity.is_write_blocked() {
                stream = silent.take();
                if stream.is_some() {
                    return Poll::Ready(Ok(()));
                }
            }
            match Pin::new(&mut expiry).poll(context) {
                // Nothing is under way: the stream is shut down, which a client of TLS needs to see, as far as it takes that.
                Poll::Ready(Expired::Idle) => {
                    Pin::new(&mut *connection).graceful_shutdown();
                    match Pin::new(&mut *connection).poll(context) {
                        Poll::Ready(ended) => Poll::Ready(ended),
                        Poll::Pending => Poll::Ready(Ok(())),
                    }
                }
                // There is nobody to tell.
                Poll::Ready(Expired::Stalled) => Poll::Ready(Ok(())),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
        if let Some(tunnel) = handed_over {
            let parts = connection.into_parts();
            Box::pin(tunnel::dig(parts.io.into_inner(), &parts.read_buf, tunnel, drain)).await;
            return served;
        }
        let Some((body, framing)) = stream else { return served };
        let parts = unboxed(connection).into_parts();
        let mut events = Events::new(parts.io.into_inner(), &parts.read_buf, body, framing);
        drop(parts.read_buf);
        if events.send(expiry.as_mut()).await.is_err() {
            return Ok(());
        }
        let (socket, framing) = events.into_socket();
        if framing != Framing::Chunked || activity.is_cut_off() {
            ends.close_connection();
        }
        connection = Box::new(http.serve_connection(TokioIo::new(socket), parts.service));
    }
}

/// Whether the client has nothing more to send, nor wants another answer (RFC 9112 §9.3).
fn is_last(request: &Request<Incoming>) -> bool {
    request.body().is_end_stream() && ends_connection(request.version(), request.headers())
}

/// By what its request says. As hyper has it, too: if the connection went on, the next request would be seen late.
fn ends_connection(version: Version, headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).into_iter();
    let mut options = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let mut says = |option| options.any(|own| own.trim_ascii().eq_ignore_ascii_case(option));
    match version {
        Version::HTTP_10 => !says(b"keep-alive"),
        _ => says(b"close"),
    }
}

/// Ends when the connection has to.
async fn expiry(activity: &Activity, settings: &Settings) -> Expired {
    let timeouts = Timeouts { idle: settings.idle, head: settings.read_header, write: settings.write };
    loop {
        match activity.check(&timeouts, CoarseInstant::now()) {
            Ok(wait) => tokio::time::sleep(wait).await,
            Err(expired) => return expired,
        }
    }
}

#[cfg(test)]
mod drains;

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use http_body::{Frame, SizeHint};
    use http_body_util::Full;
    use std::cell::{Cell, RefCell};
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use std::io::{Read, Write};
    use std::task::{Context, Waker};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    pub(super) const SETTINGS: Settings = Settings {
        read_header: Duration::from_secs(10),
        idle: Duration::from_secs(100),
        last_request: Duration::from_secs(2),
        write: Duration::from_secs(60),
        max_header_size: 8 * 1024,
    };

    pub(super) fn hello(_: Request<RequestBody>, _: Duration) -> Ready<Response<Full<Bytes>>> {
        ready(Response::new(Full::from("hello")))
    }

    /// What the server sends until it closes the connection, and after which (paused) time it does.
    async fn exchange(request: &[u8]) -> (String, Duration) {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let started = tokio::time::Instant::now();
        client.write_all(request).await.unwrap();
        let (drain, mut answer) = (Drain::default(), Vec::new());
        let (served, _) = tokio::join!(
            serve(server, Rc::default(), &SETTINGS, &drain, Rc::default(), hello),
            client.read_to_end(&mut answer)
        );
        let _ = served;
        // clock: virtual in all tests that call this.
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
    async fn the_service_hears_how_long_a_head_took() {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let (drain, head_times) = (Drain::default(), RefCell::new(Vec::new()));
        let service = |request, head_time| {
            head_times.borrow_mut().push(head_time);
            hello(request, head_time)
        };
        let client = async {
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            assert!(client.read(&mut [0; 1024]).await.unwrap() > 0);
            client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            client.write_all(b"Host: a\r\nConnection: close\r\n\r\n").await.unwrap();
            client.read_to_end(&mut Vec::new()).await.unwrap();
        };
        let (served, ()) =
            tokio::join!(serve(server, Rc::default(), &SETTINGS, &drain, Rc::default(), service), client);
        served.unwrap();
        let [whole, parts] = head_times.borrow()[..] else { panic!("two requests") };
        assert!(whole.is_zero() && !parts.is_zero(), "{whole:?} {parts:?}");
    }

    /// What a client gets that sends these bytes, over a socket that takes so many bytes at once, of a service that sends
    /// hints and then waits as told before it answers.
    async fn hinted<W: Future<Output = ()>>(request: &str, socket: usize, wait: impl Fn() -> W) -> String {
        let (client, server) = tokio::io::duplex(socket);
        let (mut reader, mut writer) = tokio::io::split(client);
        let interim = Rc::new(Interim::default());
        let service = |request: Request<RequestBody>, _| {
            let waited = wait();
            let answer = Response::new(Full::from(request.uri().path().to_owned()));
            let interim = Rc::clone(&interim);
            Box::pin(async move {
                interim.send(request.version(), StatusCode::EARLY_HINTS, &HeaderMap::new());
                waited.await;
                answer
            })
        };
        let mut answers = String::new();
        let drain = Drain::default();
        let (served, sent, read) = tokio::join!(
            serve(server, Rc::default(), &SETTINGS, &drain, Rc::clone(&interim), service),
            writer.write_all(request.as_bytes()),
            reader.read_to_string(&mut answers),
        );
        served.unwrap();
        sent.and(read).unwrap();
        answers
    }

    /// The status lines, each with the body of the answer before it.
    fn outline(answers: &str) -> Vec<&str> {
        answers.split("\r\n").filter(|line| line.contains("HTTP/1.1 ") || line.starts_with('/')).collect()
    }

    const TWO: &str =
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

    #[tokio::test(start_paused = true)]
    async fn an_interim_answer_comes_before_its_final_one() {
        const HINT: &str = "HTTP/1.1 103 Early Hints";
        const NEXT_HINT: &str = "/aHTTP/1.1 103 Early Hints";
        const FINAL: &str = "HTTP/1.1 200 OK";
        for socket in [1, 7, 64 * 1024] {
            let answers = hinted(TWO, socket, || tokio::time::sleep(Duration::from_millis(5))).await;
            assert_eq!(outline(&answers), [HINT, FINAL, NEXT_HINT, FINAL, "/b"], "{answers}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_interim_answer_that_comes_with_the_final_one_is_sent_before_it() {
        const HINT: &str = "HTTP/1.1 103 Early Hints";
        const NEXT_HINT: &str = "/aHTTP/1.1 103 Early Hints";
        const FINAL: &str = "HTTP/1.1 200 OK";
        for socket in [1, 7, 64 * 1024] {
            let answers = hinted(TWO, socket, || ready(())).await;
            assert_eq!(outline(&answers), [HINT, FINAL, NEXT_HINT, FINAL, "/b"], "{answers}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_interim_answer_is_not_for_http_1_0() {
        let request = "GET /a HTTP/1.0\r\nHost: a\r\n\r\n";
        let answers = hinted(request, 64 * 1024, || tokio::time::sleep(Duration::from_millis(5))).await;
        assert!(answers.starts_with("HTTP/1.0 200 OK") && answers.ends_with("/a"), "{answers}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_is_too_large_is_answered_431() {
        let request = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(9 * 1024));
        let (answer, _) = exchange(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }

    /// A body of a known length whose second half comes when it may.
    struct Halves {
        given: usize,
        has_second: Rc<Cell<bool>>,
    }

    impl Body for Halves {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.given == 1 && !self.has_second.get() {
                return Poll::Pending;
            }
            self.given += 1;
            Poll::Ready((self.given <= 2).then(|| Ok(Frame::data(Bytes::from_static(b"half")))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(8 - 4 * self.given.min(2) as u64)
        }
    }

    #[test]
    fn a_connection_ends_where_its_request_says_so() {
        for (version, connection, expected) in [
            (Version::HTTP_11, "close", true),
            (Version::HTTP_11, "TE, Close", true),
            (Version::HTTP_11, "keep-alive", false),
            (Version::HTTP_11, "closed", false),
            (Version::HTTP_10, "close", true),
            (Version::HTTP_10, "Keep-Alive", false),
            (Version::HTTP_10, "TE ,keep-alive", false),
        ] {
            let headers = HeaderMap::from_iter([(header::CONNECTION, connection.parse().unwrap())]);
            assert_eq!(ends_connection(version, &headers), expected, "{version:?} {connection}");
        }
        assert!(ends_connection(Version::HTTP_10, &HeaderMap::new()));
        assert!(!ends_connection(Version::HTTP_11, &HeaderMap::new()));
    }

    /// The last answer of a connection is held back until its end, but not while more of it has to be waited for.
    #[tokio::test]
    async fn a_part_of_the_last_answer_does_not_wait_for_the_rest() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let (socket, cork) =
            regent_net::Socket::new(accepted.into(), regent_net::Transport::Tcp, &Rc::default());
        let drain = Drain::default();
        let has_second = Rc::new(Cell::new(false));
        let halves = || Halves { given: 0, has_second: Rc::clone(&has_second) };
        let answer = |_: Request<RequestBody>, _| ready(Response::new(halves()));
        let mut serving = pin!(serve(socket, cork, &SETTINGS, &drain, Rc::default(), answer));
        let mut poll = || serving.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending());
        client.set_nonblocking(true).unwrap();
        let mut buffer = [0; 1024];
        let length = client.read(&mut buffer).expect("it has been sent");
        assert!(buffer[..length].ends_with(b"\r\n\r\nhalf"));
        has_second.set(true);
        assert!(matches!(poll(), Poll::Ready(Ok(()))));
        client.set_nonblocking(false).unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"half");
    }
}
