use super::*;
use crate::h1::connection::{Settings, serve};
use http_body::Frame;
use regent_exchange::RequestBody;
use regent_net::Drain;
use std::cell::RefCell;
use std::future::{Ready, ready};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const SETTINGS: Settings = Settings {
    read_header: Duration::from_secs(10),
    idle: Duration::from_secs(100),
    last_request: Duration::from_secs(2),
    write: Duration::from_secs(60),
    max_header_size: 8 * 1024,
};
const GET: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
const LAST_GET: &str = "GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

type Event = io::Result<Bytes>;

/// Ends with its sender.
struct Body(UnboundedReceiver<Event>);

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| event.map(Frame::data)))
    }
}

/// Knows how much was read for at most when the client was asked last.
struct Measured(DuplexStream, Rc<Cell<usize>>);

impl Stream for Measured {
    fn close_says_all(&self) -> bool {
        true
    }
}

impl AsyncRead for Measured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.1.set(buffer.remaining());
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Measured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// A connection on which each request gets the next of these event streams.
struct Served {
    client: DuplexStream,
    events: Vec<UnboundedSender<Event>>,
    drain: Rc<Drain>,
    read_size: Rc<Cell<usize>>,
    task: tokio::task::JoinHandle<()>,
}

impl Served {
    /// Within a [`tokio::task::LocalSet`]. `socket`: how many bytes it holds.
    fn new(streams: usize, socket: usize) -> Self {
        Self::with(SETTINGS, streams, socket)
    }

    fn with(settings: Settings, streams: usize, socket: usize) -> Self {
        let (client, server) = duplex(socket);
        let (read_size, drain) = (Rc::new(Cell::new(0)), Rc::new(Drain::default()));
        let server = Measured(server, Rc::clone(&read_size));
        let (events, bodies): (Vec<_>, Vec<_>) = (0..streams).map(|_| unbounded_channel()).unzip();
        let bodies = RefCell::new(bodies.into_iter());
        let answer = move |_: Request<RequestBody>, _| -> Ready<Response<Body>> {
            let mut response = Response::new(Body(bodies.borrow_mut().next().expect("one for each request")));
            response.extensions_mut().insert(EventStream);
            ready(response)
        };
        let own_drain = Rc::clone(&drain);
        let task = tokio::task::spawn_local(async move {
            let _ = serve(server, Rc::default(), &settings, &own_drain, Rc::default(), answer).await;
        });
        Self { client, events, drain, read_size, task }
    }

    async fn ask(&mut self, requests: &str) {
        self.client.write_all(requests.as_bytes()).await.unwrap();
    }

    fn say(&self, stream: usize, data: &'static str) {
        self.events[stream].send(Ok(data.into())).unwrap();
    }

    /// All up to these bytes.
    async fn read_until(&mut self, end: &str) -> String {
        let mut all = String::new();
        while !all.ends_with(end) {
            all.push(char::from(self.client.read_u8().await.unwrap()));
        }
        all
    }

    async fn rest(mut self) -> String {
        let mut rest = String::new();
        self.client.read_to_string(&mut rest).await.unwrap();
        self.task.await.unwrap();
        rest
    }
}

async fn locally(test: impl Future<Output = ()>) {
    tokio::task::LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn hyper_has_a_connection_until_its_stream_is_silent_and_again_when_it_has_ended() {
    locally(async {
        let mut served = Served::new(2, 1024);
        served.say(0, "first");
        served.ask(GET).await;
        assert!(served.read_until("5\r\nfirst\r\n").await.contains("transfer-encoding: chunked\r\n"));
        served.say(0, "second");
        assert_eq!(served.read_until("second\r\n").await, "6\r\nsecond\r\n");
        assert_eq!(served.read_size.get(), READ);
        served.events.remove(0);
        assert_eq!(served.read_until("0\r\n\r\n").await, "0\r\n\r\n");
        served.ask(LAST_GET).await;
        assert!(served.read_until("\r\n\r\n").await.starts_with("HTTP/1.1 200 OK\r\n"));
        served.events.clear();
        assert_eq!(served.rest().await, "0\r\n\r\n");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_sent_ahead_is_answered_behind_the_stream() {
    locally(async {
        for socket in [32, 1024] {
            let mut served = Served::new(2, socket);
            served.ask(GET).await;
            served.read_until("\r\n\r\n").await;
            served.ask(&LAST_GET[..20]).await;
            served.say(0, "event");
            served.read_until("event\r\n").await;
            served.events.remove(0);
            served.ask(&LAST_GET[20..]).await;
            let next = served.read_until("\r\n\r\nHTTP/1.1 200 OK\r\n").await;
            assert_eq!(next, "0\r\n\r\nHTTP/1.1 200 OK\r\n", "{socket}");
            served.events.clear();
            assert!(served.rest().await.ends_with("\r\n\r\n0\r\n\r\n"));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_is_the_end_of_a_stream_by_http_1_0() {
    locally(async {
        let mut served = Served::new(1, 1024);
        served.ask("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        let head = served.read_until("\r\n\r\n").await;
        assert!(!head.contains("chunked"), "{head}");
        served.say(0, "event");
        served.read_until("event").await;
        served.say(0, "last");
        served.events.clear();
        assert_eq!(served.rest().await, "last");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_the_connection_behind_the_stream() {
    locally(async {
        let mut served = Served::new(1, 1024);
        served.ask(GET).await;
        served.read_until("\r\n\r\n").await;
        served.say(0, "event");
        served.read_until("event\r\n").await;
        served.drain.begin();
        served.say(0, "last");
        assert_eq!(served.read_until("last\r\n").await, "4\r\nlast\r\n");
        served.events.clear();
        assert_eq!(served.rest().await, "0\r\n\r\n");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_has_no_last_chunk() {
    locally(async {
        let mut served = Served::new(1, 1024);
        served.ask(GET).await;
        served.read_until("\r\n\r\n").await;
        served.say(0, "event");
        served.read_until("event\r\n").await;
        served.events[0].send(Err(io::ErrorKind::Other.into())).unwrap();
        assert_eq!(served.rest().await, "");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_its_stream() {
    locally(async {
        let mut served = Served::new(1, 1024);
        served.ask(GET).await;
        served.read_until("\r\n\r\n").await;
        served.say(0, "event");
        served.read_until("event\r\n").await;
        let Served { client, events, task, .. } = served;
        drop(client);
        events[0].closed().await;
        task.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_not_waited_for_without_end() {
    locally(async {
        let mut served = Served::with(Settings { write: Duration::from_secs(1), ..SETTINGS }, 1, 64);
        served.ask(GET).await;
        served.read_until("\r\n\r\n").await;
        served.say(0, "event");
        served.read_until("event\r\n").await;
        let long = Bytes::from(vec![b'x'; 1024]);
        (0..MOST_FRAMES * 2).for_each(|_| served.events[0].send(Ok(long.clone())).unwrap());
        served.events[0].closed().await;
        assert!(served.rest().await.len() <= 64);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_in_bursts_arrives_whole() {
    locally(async {
        let mut served = Served::new(1, 100);
        served.ask(LAST_GET).await;
        served.read_until("\r\n\r\n").await;
        let mut expected = String::new();
        for length in 0..2000 {
            let data = "x".repeat(length % 300);
            served.events[0].send(Ok(data.clone().into())).unwrap();
            if !data.is_empty() {
                expected += &format!("{:x}\r\n{data}\r\n", data.len());
            }
        }
        served.events.clear();
        assert_eq!(served.rest().await, expected + "0\r\n\r\n");
    })
    .await;
}
