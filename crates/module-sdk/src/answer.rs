//! What a handler returns.

use crate::error::Result;
use crate::request::Request;
use crate::stream::Stream;
use serde::Serialize;
use std::borrow::Cow;

/// An answer: a status, header fields, and a body, which is whole or is made while it is sent.
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Whole(Cow<'static, [u8]>),
    Made(Box<Maker>),
}

type Maker = dyn FnOnce(&mut Request, &mut Stream) -> Result<()>;

impl Answer {
    /// An answer without a body.
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Whole(Cow::Borrowed(&[])) }
    }

    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::content("text/plain; charset=utf-8", into_bytes(text.into()))
    }

    pub fn html(text: impl Into<Cow<'static, str>>) -> Self {
        Self::content("text/html; charset=utf-8", into_bytes(text.into()))
    }

    /// # Errors
    /// The value cannot be written as JSON, like a map whose keys are no text.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(Self::content("application/json", serde_json::to_vec(value)?))
    }

    pub fn content(content_type: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { body: Body::Whole(body.into()), ..Self::empty(200) }.header("Content-Type", content_type)
    }

    /// 303: the client is to go on with GET there.
    pub fn redirect(location: impl Into<Cow<'static, str>>) -> Self {
        Self::empty(303).header("Location", location)
    }

    /// A body that `make` writes when the status and the fields are set; the request's body can be read meanwhile.
    pub fn stream(
        content_type: &'static str,
        make: impl FnOnce(&mut Request, &mut Stream) -> Result<()> + 'static,
    ) -> Self {
        Self { body: Body::Made(Box::new(make)), ..Self::empty(200) }.header("Content-Type", content_type)
    }

    /// 200 to 599.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// One field more; several of one name are sent as they are.
    #[must_use]
    pub fn header(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&'static str> for Answer {
    fn from(text: &'static str) -> Self {
        Self::text(text)
    }
}

impl From<serde_json::Value> for Answer {
    fn from(value: serde_json::Value) -> Self {
        Self::content("application/json", value.to_string().into_bytes())
    }
}

fn into_bytes(text: Cow<'static, str>) -> Cow<'static, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}
