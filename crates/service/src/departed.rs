//! Requests that go on when their clients have left (`run_departed`).

use crate::counted::Counted;
use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use regent_exchange::ResponseBody;
use regent_gateway::Logged;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::task::spawn_local;

pub(crate) type Answering = Pin<Box<dyn Future<Output = Response<Counted>>>>;

/// Makes a response, also when nobody waits for it any more: dropped before its end, it becomes a task.
struct GoesOn(Option<Answering>);

/// A body that is read to its end by a task when nobody takes the rest.
struct Outliving(Option<Counted>);

/// What goes on when it is dropped before its end.
pub(crate) fn outlived(answering: impl Future<Output = Response<Counted>> + 'static) -> Answering {
    Box::pin(GoesOn(Some(Box::pin(answering))))
}

impl Future for GoesOn {
    type Output = Response<Counted>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Counted>> {
        let answering = self.0.as_mut().expect("invariant: a future that is done is not polled");
        let response = std::task::ready!(answering.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(outliving(response))
    }
}

impl Drop for GoesOn {
    fn drop(&mut self) {
        if let Some(answering) = self.0.take() {
            go_on(async move { read_to_end(answering.await.into_body()).await });
        }
    }
}

impl Drop for Outliving {
    fn drop(&mut self) {
        if let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) {
            go_on(read_to_end(body));
        }
    }
}

impl Body for Outliving {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

fn outliving(response: Response<Counted>) -> Response<Counted> {
    if response.body().is_end_stream() {
        return response;
    }
    let response = response.map(|body| ResponseBody::stream(Outliving(Some(body))));
    Counted::nowhere(Logged::nowhere(response))
}

/// Nobody goes on in a server that ends.
fn go_on(rest: impl Future<Output = ()> + 'static) {
    if Handle::try_current().is_ok() {
        spawn_local(rest);
    }
}

async fn read_to_end(mut body: Counted) {
    while let Some(Ok(_)) = body.frame().await {}
}
