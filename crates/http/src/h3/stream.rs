//! One stream: a request, and the response to it.

use crate::date::DateField;
use crate::h3::code;
use crate::h3::early::{Early, Wish};
use crate::h3::fields::{self, Asked, Refused};
use crate::h3::incoming::{Bodies, Incoming};
use crate::h3::message::{Message, Part, Wrong};
use crate::h3::response::{Reply, Unsent};
use crate::h3::tunnel;
use crate::request_head::{Refusal, admit};
use crate::response_head::{Content, final_head, refusal};
use crate::websocket;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use quinn::{Connection, RecvStream, SendStream, VarInt};
use regent_exchange::{Informational, RequestBody};
use regent_net::Drain;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// What all streams of a connection share.
pub(super) struct Shared<'a, F> {
    pub service: F,
    /// Ends streams that have left HTTP.
    pub drain: &'a Drain,
    pub connection: Connection,
    /// How long a head may take to come.
    pub read_header: Duration,
    /// How long a client may give a stream no room.
    pub write: Duration,
    /// Bytes of a head.
    pub max_header_size: usize,
    pub date: DateField,
    pub bodies: Rc<Bodies>,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Complete,
    /// By the client, or with the connection.
    Reset,
    /// By us; the client is to blame.
    Refused,
    /// By us; the service is to blame.
    Broken,
    /// With what ends the connection too.
    Fatal(VarInt),
}

/// Why there is no request to serve.
enum NoRequest {
    Ended(Outcome),
    /// The stream is to be reset.
    Reset(VarInt),
    /// There is a response to it.
    Status(Method, StatusCode),
}

/// Serves a request to the end of its response. What the service does for it is dropped, with the request's body, as soon as
/// the client resets the stream.
pub(super) async fn run<F, R, B>(send: SendStream, receive: RecvStream, shared: Rc<Shared<'_, F>>) -> Outcome
where
    F: Fn(Request<RequestBody>, Duration, Rc<dyn Informational>) -> R,
    R: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error = io::Error>,
{
    let mut message = Message::new(receive, shared.max_header_size);
    let mut reply = Reply::new(send, shared.write);
    let (head, head_time) = match read_head(&mut message, &mut reply, &shared).await {
        Ok(read) => read,
        Err(NoRequest::Ended(outcome)) => return outcome,
        Err(NoRequest::Reset(code)) => {
            reply.reset(code);
            return Outcome::Refused;
        }
        Err(NoRequest::Status(method, status)) => return refuse(reply, &method, status, &shared).await,
    };
    let method = head.method.clone();
    let early = Rc::<Early>::default();
    if websocket::is_stand_in(&head) {
        // Boxed, so that streams which carry requests have no room for it.
        return Box::pin(open(head, head_time, message, reply, &shared)).await;
    }
    let body = match begin_body(message, &head, &early, &shared).await {
        Ok(body) => body,
        Err(Wrong::Protocol(code)) => return Outcome::Fatal(code),
        Err(Wrong::Lost) => return Outcome::Reset,
        Err(Wrong::TooLarge | Wrong::Incomplete) => {
            reply.reset(code::MESSAGE_ERROR);
            return Outcome::Refused;
        }
    };
    let hints: Rc<dyn Informational> = Rc::clone(&early) as _;
    let response = (shared.service)(Request::from_parts(head, body), head_time, hints);
    let response = match serve(response, &mut reply, &early).await {
        Ok(response) => response,
        Err(Outcome::Refused) => {
            reply.reset(code::REQUEST_CANCELLED);
            return Outcome::Refused;
        }
        Err(outcome) => return outcome,
    };
    let hints = early.end();
    send_response(hints, response, reply, &method, &shared).await
}

/// Opens a stream for WebSocket, if the service agrees. `head`: of the request that stands for it.
async fn open<F, R, B>(
    head: Parts,
    head_time: Duration,
    message: Message,
    mut reply: Reply,
    shared: &Shared<'_, F>,
) -> Outcome
where
    F: Fn(Request<RequestBody>, Duration, Rc<dyn Informational>) -> R,
    R: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error = io::Error>,
{
    let early = Rc::<Early>::default();
    let hints: Rc<dyn Informational> = Rc::clone(&early) as _;
    let response = (shared.service)(Request::from_parts(head, RequestBody::empty()), head_time, hints);
    let response = match serve(response, &mut reply, &early).await {
        Ok(response) => response,
        Err(Outcome::Refused) => {
            reply.reset(code::REQUEST_CANCELLED);
            return Outcome::Refused;
        }
        Err(outcome) => return outcome,
    };
    let (mut hints, tunnel) = (early.end(), early.take_tunnel());
    match (response.status(), tunnel) {
        (StatusCode::SWITCHING_PROTOCOLS, Some(tunnel)) => {
            let head = websocket::opening(response.into_parts().0, shared.date.now());
            hints.extend(fields::response(head.status(), head.headers()));
            match reply.write(hints.into()).await {
                Ok(()) => tunnel::dig(reply, message, tunnel, shared).await,
                Err(Unsent::Stalled) => Outcome::Refused,
                Err(_) => Outcome::Reset,
            }
        }
        (status, _) if websocket::misleads(status) => {
            tracing::debug!(%status, "a service has agreed to a WebSocket, and has not taken it");
            Outcome::Broken
        }
        _ => send_response(hints, response, reply, &Method::GET, shared).await,
    }
}

/// The head of a request, and how long it took to come.
async fn read_head<F>(
    message: &mut Message,
    reply: &mut Reply,
    shared: &Shared<'_, F>,
) -> Result<(Parts, Duration), NoRequest> {
    let mut begun = None;
    let first = poll_fn(|context| {
        if reply.poll_stopped(context).is_ready() {
            return Poll::Ready(Err(Wrong::Lost));
        }
        let part = message.poll_part(context);
        if part.is_pending() {
            begun.get_or_insert_with(Instant::now);
        }
        part
    });
    let section = match timeout(shared.read_header, first).await {
        Err(_) => return Err(NoRequest::Reset(code::REQUEST_INCOMPLETE)),
        Ok(Err(Wrong::Protocol(code))) => return Err(NoRequest::Ended(Outcome::Fatal(code))),
        Ok(Err(Wrong::Lost)) => return Err(NoRequest::Ended(Outcome::Reset)),
        Ok(Err(Wrong::Incomplete)) => return Err(NoRequest::Reset(code::REQUEST_INCOMPLETE)),
        Ok(Err(Wrong::TooLarge)) => return Err(too_large()),
        Ok(Ok(Part::Head(section))) => section,
        Ok(Ok(_)) => unreachable!("invariant: a message begins with its head"),
    };
    let head_time = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    let request = fields::request(&section, shared.max_header_size);
    let Asked { mut head, uri, protocol } = request.map_err(|refused| match refused {
        Refused::Compression => NoRequest::Ended(Outcome::Fatal(code::QPACK_DECOMPRESSION_FAILED)),
        Refused::TooLarge => too_large(),
        Refused::Malformed => NoRequest::Reset(code::MESSAGE_ERROR),
    })?;
    match admit(&mut head, uri, protocol.as_deref()) {
        Ok(()) => Ok((head, head_time)),
        Err(Refusal::Malformed) => Err(NoRequest::Reset(code::MESSAGE_ERROR)),
        Err(Refusal::Status(status)) => Err(NoRequest::Status(head.method, status)),
    }
}

fn too_large() -> NoRequest {
    NoRequest::Status(Method::GET, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
}

/// The body, or that there is none, if that can be seen already.
async fn begin_body<F>(
    mut message: Message,
    head: &Parts,
    early: &Rc<Early>,
    shared: &Shared<'_, F>,
) -> Result<RequestBody, Wrong> {
    let first = poll_fn(|context| Poll::Ready(message.poll_part(context))).await;
    let first = match first {
        Poll::Pending => None,
        // A body of less than it was to have.
        Poll::Ready(Ok(Part::End)) if fields::content_length(&head.headers).unwrap_or(0) > 0 => {
            return Err(Wrong::Incomplete);
        }
        Poll::Ready(Ok(Part::End)) => return Ok(RequestBody::empty()),
        Poll::Ready(part) => Some(part?),
    };
    let (bodies, most) = (Rc::clone(&shared.bodies), shared.max_header_size);
    Ok(RequestBody::new(Incoming::new(message, first, &head.headers, early, most, bodies)))
}

/// The service's response, with what it wants to be sent before.
async fn serve<R>(response: R, reply: &mut Reply, early: &Early) -> Result<R::Output, Outcome>
where
    R: Future,
{
    enum Next<T> {
        Response(T),
        Wish(Wish),
        Reset,
    }
    let mut response = pin!(response);
    loop {
        let next = poll_fn(|context| {
            if reply.poll_stopped(context).is_ready() {
                return Poll::Ready(Next::Reset);
            }
            match response.as_mut().poll(context) {
                Poll::Ready(response) => Poll::Ready(Next::Response(response)),
                Poll::Pending => early.poll_wish(context).map(Next::Wish),
            }
        });
        match next.await {
            Next::Reset => return Err(Outcome::Reset),
            Next::Response(response) => return Ok(response),
            Next::Wish(Wish::Abort) => return Err(Outcome::Broken),
            Next::Wish(Wish::Send(frames)) => {
                reply.write(frames.into()).await.map_err(|unsent| match unsent {
                    Unsent::Stalled => Outcome::Refused,
                    Unsent::Reset | Unsent::Failed(_) => Outcome::Reset,
                })?;
            }
        }
    }
}

/// `hints`: frames that go before it.
async fn send_response<F, B>(
    mut hints: Vec<u8>,
    response: Response<B>,
    mut reply: Reply,
    method: &Method,
    shared: &Shared<'_, F>,
) -> Outcome
where
    B: Body<Data = Bytes, Error = io::Error>,
{
    let (parts, body) = response.into_parts();
    let Some((head, content)) = final_head(parts, method, &body.size_hint(), shared.date.now()) else {
        tracing::debug!("a service has given an informational response for the final one");
        return Outcome::Broken;
    };
    hints.extend(fields::response(head.status(), head.headers()));
    let sent = match (reply.write(hints.into()).await, content) {
        (Ok(()), Content::None) => reply.finish(),
        (Ok(()), Content::Body(length)) => reply.send(body, length).await,
        (unsent, _) => unsent,
    };
    match sent {
        Ok(()) => {
            reply.delivered(&shared.connection).await;
            Outcome::Complete
        }
        Err(Unsent::Reset) => Outcome::Reset,
        Err(Unsent::Stalled) => {
            reply.reset(code::REQUEST_CANCELLED);
            Outcome::Refused
        }
        Err(Unsent::Failed(error)) => {
            tracing::debug!(%error, "a response broke off");
            reply.reset(code::INTERNAL_ERROR);
            Outcome::Broken
        }
    }
}

async fn refuse<F>(mut reply: Reply, method: &Method, status: StatusCode, shared: &Shared<'_, F>) -> Outcome {
    tracing::debug!(%status, "a request was refused");
    let (response, text) = refusal(status, shared.date.now());
    let mut bytes = fields::response(response.status(), response.headers());
    if *method != Method::HEAD {
        crate::h3::frames::write_head(crate::h3::frames::DATA, text.len(), &mut bytes);
        bytes.extend_from_slice(text.as_bytes());
    }
    if reply.write(bytes.into()).await.is_ok() && reply.finish().is_ok() {
        reply.delivered(&shared.connection).await;
    }
    Outcome::Refused
}
