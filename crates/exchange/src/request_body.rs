//! The body of a request: one type, whichever version of HTTP it comes in.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Why a body did not come whole: it was cut off, or wrongly coded.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// The body of a request.
pub struct RequestBody(Option<Pin<Box<dyn Body<Data = Bytes, Error = BodyError>>>>);

impl RequestBody {
    pub fn empty() -> Self {
        Self(None)
    }

    /// The body, of which nothing is left here.
    pub fn take(&mut self) -> Self {
        Self(self.0.take())
    }

    /// A body of a connection's. One that has ended already, as that of nearly every request, takes no memory.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BodyError>,
    {
        if body.is_end_stream() { Self(None) } else { Self(Some(Box::pin(Foreign(body)))) }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Some(body) => body.as_mut().poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or(SizeHint::with_exact(0), |body| body.size_hint())
    }
}

/// A body with its front's own errors.
struct Foreign<B>(B);

impl<B> Body for Foreign<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.get_mut().0).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full};

    #[tokio::test(flavor = "current_thread")]
    async fn a_body_arrives_as_its_front_has_it() {
        let body = RequestBody::new(Full::new(Bytes::from_static(b"hello")));
        assert_eq!(body.size_hint().exact(), Some(5));
        assert!(!body.is_end_stream());
        assert_eq!(body.collect().await.unwrap().to_bytes(), "hello");
    }

    #[test]
    fn an_empty_body_takes_no_memory() {
        let body = RequestBody::new(Full::new(Bytes::new()));
        assert!(body.0.is_none() && body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
    }
}
