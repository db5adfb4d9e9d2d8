//! One stream: a request, and the response to it.

use crate::date::DateField;
use crate::h2::early::Early;
use crate::h2::incoming::Incoming;
use crate::h2::sender::{Sender, Unsent};
use crate::h2::tunnel;
use crate::request_head::{Refusal, admit};
use crate::response_head::{Content, final_head, refusal};
use crate::websocket;
use ::h2::ext::Protocol;
use ::h2::server::SendResponse;
use ::h2::{Reason, RecvStream};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use regent_exchange::{Informational, RequestBody};
use regent_net::Drain;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// What all streams of a connection share.
pub(super) struct Shared<'a, F> {
    pub service: F,
    /// Ends streams that have left HTTP.
    pub drain: &'a Drain,
    /// How long a client may give a stream no room.
    pub write: Duration,
    pub date: DateField,
    /// Held by each request's body that is still coming.
    pub bodies: Rc<()>,
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
}

/// Serves a request to the end of its response. What the service does for it is dropped, with the request's body, as soon as
/// the client resets the stream.
pub(super) async fn run<F, R, B>(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    head_time: Duration,
    shared: Rc<Shared<'_, F>>,
) -> Outcome
where
    F: Fn(Request<RequestBody>, Duration, Rc<dyn Informational>) -> R,
    R: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error = io::Error>,
{
    // A stream that was reset before anybody looked costs no more than this.
    if poll_fn(|context| Poll::Ready(respond.poll_reset(context).is_ready())).await {
        return Outcome::Reset;
    }
    let (mut head, body) = request.into_parts();
    let (uri, protocol) = (std::mem::take(&mut head.uri).into_parts(), head.extensions.remove::<Protocol>());
    if let Err(refusal) = admit(&mut head, uri, protocol.as_ref().map(AsRef::as_ref)) {
        return refuse(respond, &head.method, refusal, &shared.date);
    }
    let method = head.method.clone();
    let early = Rc::new(Early::new(respond));
    let (body, receive) = match websocket::is_stand_in(&head) {
        true => (RequestBody::empty(), Some(body)),
        false => (incoming(body, &head.headers, &early, &shared.bodies), None),
    };
    let response = {
        let hints: Rc<dyn Informational> = Rc::clone(&early) as _;
        let mut response = pin!((shared.service)(Request::from_parts(head, body), head_time, hints));
        poll_fn(|context| match early.poll_reset(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => response.as_mut().poll(context).map(Some),
        })
        .await
    };
    let (Some(response), Some(respond)) = (response, early.take()) else { return Outcome::Reset };
    match receive {
        None => send(response, respond, &method, &shared).await,
        // Boxed, so that streams which carry requests have no room for it.
        Some(receive) => Box::pin(open(response, respond, receive, &early, &shared)).await,
    }
}

/// Opens a stream for WebSocket, if the service has agreed.
async fn open<F, B>(
    response: Response<B>,
    mut respond: SendResponse<Bytes>,
    receive: RecvStream,
    early: &Early,
    shared: &Shared<'_, F>,
) -> Outcome
where
    B: Body<Data = Bytes, Error = io::Error>,
{
    let tunnel = early.take_tunnel();
    match (response.status(), tunnel) {
        (StatusCode::SWITCHING_PROTOCOLS, Some(tunnel)) => {
            let head = websocket::opening(response.into_parts().0, shared.date.now());
            let Ok(stream) = respond.send_response(head, false) else { return Outcome::Reset };
            tunnel::dig(stream, receive, tunnel, shared.drain).await
        }
        (status, _) if websocket::misleads(status) => {
            tracing::debug!(%status, "a service has agreed to a WebSocket, and has not taken it");
            respond.send_reset(Reason::INTERNAL_ERROR);
            Outcome::Broken
        }
        _ => send(response, respond, &Method::GET, shared).await,
    }
}

fn incoming(body: RecvStream, head: &HeaderMap, early: &Rc<Early>, bodies: &Rc<()>) -> RequestBody {
    match body.is_end_stream() {
        true => RequestBody::empty(),
        false => RequestBody::new(Incoming::new(body, head, early, Rc::clone(bodies))),
    }
}

async fn send<F, B>(
    response: Response<B>,
    mut respond: SendResponse<Bytes>,
    method: &Method,
    shared: &Shared<'_, F>,
) -> Outcome
where
    B: Body<Data = Bytes, Error = io::Error>,
{
    let (parts, body) = response.into_parts();
    let Some((head, content)) = final_head(parts, method, &body.size_hint(), shared.date.now()) else {
        tracing::debug!("a service has given an informational response for the final one");
        respond.send_reset(Reason::INTERNAL_ERROR);
        return Outcome::Broken;
    };
    let length = match content {
        Content::Body(None) if body.is_end_stream() => return send_head(respond, head),
        Content::None => return send_head(respond, head),
        Content::Body(length) => length,
    };
    let Ok(stream) = respond.send_response(head, false) else { return Outcome::Reset };
    let mut sender = Sender::new(stream, shared.write);
    let (reason, outcome) = match sender.send(body, length).await {
        Ok(()) => return Outcome::Complete,
        Err(Unsent::Reset) => return Outcome::Reset,
        Err(Unsent::Stalled) => (Reason::CANCEL, Outcome::Refused),
        Err(Unsent::Failed(error)) => {
            tracing::debug!(%error, "a response broke off");
            (Reason::INTERNAL_ERROR, Outcome::Broken)
        }
    };
    sender.into_stream().send_reset(reason);
    outcome
}

/// A response that ends with its head.
fn send_head(mut respond: SendResponse<Bytes>, head: Response<()>) -> Outcome {
    match respond.send_response(head, true) {
        Ok(_) => Outcome::Complete,
        Err(_) => Outcome::Reset,
    }
}

fn refuse(mut respond: SendResponse<Bytes>, method: &Method, refused: Refusal, date: &DateField) -> Outcome {
    tracing::debug!(?refused, "a request was refused");
    match refused {
        Refusal::Malformed => respond.send_reset(Reason::PROTOCOL_ERROR),
        Refusal::Status(status) => refuse_with(respond, method, status, date.now()),
    }
    Outcome::Refused
}

fn refuse_with(mut respond: SendResponse<Bytes>, method: &Method, status: StatusCode, date: HeaderValue) {
    let (response, text) = refusal(status, date);
    let is_head = *method == Method::HEAD;
    // The line waits in the stream for a client that gives no room.
    if let Ok(mut stream) = respond.send_response(response, is_head)
        && !is_head
    {
        let _ = stream.send_data(text.into(), true);
    }
}
