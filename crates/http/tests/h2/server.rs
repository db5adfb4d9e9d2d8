//! A server of one connection, on the thread of its test.

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use regent_exchange::{Informational, RequestBody};
use regent_http::Settings;
use regent_http::h2::{Failure, serve};
use regent_net::Drain;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

/// Times that no test reaches.
pub const SETTINGS: Settings = Settings {
    read_header: Duration::from_secs(100),
    idle: Duration::from_secs(100),
    last_request: Duration::from_secs(2),
    write: Duration::from_secs(100),
    max_header_size: 16 * 1024,
};

/// A time-out that a test waits for.
pub const SHORT: Duration = Duration::from_millis(50);

pub type ResponseBody = Pin<Box<dyn Body<Data = Bytes, Error = io::Error>>>;
pub type Responding = Pin<Box<dyn Future<Output = Response<ResponseBody>>>>;

pub struct Server {
    pub drain: Rc<Drain>,
    served: JoinHandle<Result<(), Failure>>,
}

impl Server {
    /// How the connection ended.
    pub async fn end(self) -> Result<(), Failure> {
        self.served.await.unwrap()
    }
}

/// Serves a connection, of which it returns the client's end.
pub fn start<F>(settings: Settings, service: F) -> (Server, DuplexStream)
where
    F: Fn(Request<RequestBody>, Rc<dyn Informational>) -> Responding + 'static,
{
    let (client, socket) = tokio::io::duplex(64 * 1024);
    let drain = Rc::new(Drain::default());
    let of_task = Rc::clone(&drain);
    let served = spawn_local(async move {
        let service = |request, _, early| service(request, early);
        serve(socket, &settings, &of_task, &of_task, service).await
    });
    (Server { drain, served }, client)
}

/// The same, with a client that follows the protocol.
pub async fn connect<F>(settings: Settings, service: F) -> (Server, SendRequest<Bytes>)
where
    F: Fn(Request<RequestBody>, Rc<dyn Informational>) -> Responding + 'static,
{
    let (server, stream) = start(settings, service);
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    spawn_local(async move {
        let _ = connection.await;
    });
    (server, client.ready().await.unwrap())
}

pub async fn local<T>(test: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(test).await
}

/// A service that has this response at once.
pub fn with(status: u16, fields: &[(&'static str, &'static str)], body: ResponseBody) -> Responding {
    let mut response = Response::builder().status(status);
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    let response = response.body(body).unwrap();
    Box::pin(std::future::ready(response))
}

pub fn hello(_: Request<RequestBody>, _: Rc<dyn Informational>) -> Responding {
    with(200, &[], whole("hello"))
}

/// Sends a body back, or the status 500 if it does not come whole.
pub fn echo(request: Request<RequestBody>, _: Rc<dyn Informational>) -> Responding {
    Box::pin(async move {
        match request.into_body().collect().await {
            Ok(body) => Response::new(whole(body.to_bytes())),
            Err(_) => Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR).body(whole("")).unwrap(),
        }
    })
}

/// A service that never has a response.
pub fn never(_: Request<RequestBody>, _: Rc<dyn Informational>) -> Responding {
    Box::pin(std::future::pending())
}

pub fn whole(body: impl Into<Bytes>) -> ResponseBody {
    Box::pin(Full::new(body.into()).map_err(|never| match never {}))
}

/// A body of unknown length that gives these frames.
pub fn frames(frames: impl IntoIterator<Item = Result<Frame<Bytes>, &'static str>>) -> ResponseBody {
    Box::pin(Frames(frames.into_iter().collect()))
}

struct Frames(VecDeque<Result<Frame<Bytes>, &'static str>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.0.pop_front().map(|frame| frame.map_err(io::Error::other)))
    }
}

pub fn data(bytes: impl Into<Bytes>) -> Result<Frame<Bytes>, &'static str> {
    Ok(Frame::data(bytes.into()))
}

pub fn get(path: &str) -> Request<()> {
    request("GET", path)
}

pub fn request(method: &str, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("http://a.example{path}")).body(()).unwrap()
}

/// What came of a response: its head, its body or the code of the error that it ended with, and trailers.
pub struct Received {
    pub head: Response<()>,
    pub body: Result<Bytes, h2::Reason>,
    pub trailers: Option<HeaderMap>,
}

impl Received {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.headers().get(name).map(|value| value.to_str().unwrap())
    }
}

pub async fn receive(response: h2::client::ResponseFuture) -> Result<Received, h2::Error> {
    let (head, mut stream) = response.await?.into_parts();
    let head = Response::from_parts(head, ());
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        match data {
            Ok(data) => {
                stream.flow_control().release_capacity(data.len()).unwrap();
                body.extend_from_slice(&data);
            }
            Err(error) => {
                return Ok(Received { head, body: Err(error.reason().unwrap()), trailers: None });
            }
        }
    }
    let trailers = stream.trailers().await?;
    Ok(Received { head, body: Ok(body.into()), trailers })
}

/// The response to a request without a body.
pub async fn send(client: &mut SendRequest<Bytes>, request: Request<()>) -> Result<Received, h2::Error> {
    let (response, _) = client.send_request(request, true).unwrap();
    receive(response).await
}

/// Lets all other tasks go on until they wait.
pub async fn settle() {
    let mut turns = 0;
    poll_fn(|context| {
        turns += 1;
        context.waker().wake_by_ref();
        if turns > 200 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
