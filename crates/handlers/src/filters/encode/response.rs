//! What becomes of a response: which are encoded, and how their header changes.

use super::Encode;
use super::body::{EncodedBody, Flushing};
use super::budget::Reserved;
use super::entity_tag::{self, Named};
use super::negotiate::has_no_transform;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use regent_config::EncodeFormat;
use std::io;
use std::sync::Arc;

/// Fields that are about the bytes as they were: their ranges (RFC 9110 §14.3), and what was computed of them (RFC 9530).
const OF_PLAIN_BYTES: [HeaderName; 6] = [
    header::CONTENT_LENGTH,
    header::ACCEPT_RANGES,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// `encode` for one request.
pub(crate) struct Encoding {
    pub(super) encode: Arc<Encode>,
    pub(super) method: Method,
    /// `None`: this client gets responses as they are.
    pub(super) format: Option<EncodeFormat>,
    pub(super) named: Named,
}

/// The body of a response that has gone through [`Encoding::apply`].
pub(crate) enum MaybeEncoded<B> {
    Plain(B),
    /// Encoded at once.
    Whole(Bytes),
    /// Encoded while it is sent.
    Streamed(Box<EncodedBody<B>>),
}

enum Treatment {
    Leave,
    /// Another client would get another form of it.
    Vary,
    /// It was encoded when the client got it.
    NotModified,
    Encode(EncodeFormat),
}

impl Encoding {
    pub(crate) fn apply<B>(&self, mut response: Response<B>) -> Response<MaybeEncoded<B>>
    where
        B: Body<Data = Bytes, Error = io::Error> + Unpin,
    {
        match self.treatment(response.status(), response.headers(), response.body()) {
            Treatment::Leave => response.map(MaybeEncoded::Plain),
            Treatment::Vary => {
                add_vary(response.headers_mut());
                response.map(MaybeEncoded::Plain)
            }
            Treatment::NotModified => {
                self.mark_not_modified(response.headers_mut());
                response.map(MaybeEncoded::Plain)
            }
            Treatment::Encode(format) => match self.encode.budget.reserve(format) {
                Some(reserved) => self.encode(format, reserved, response),
                None => {
                    tracing::debug!("a response is sent as it is: encoders hold as much memory as they may");
                    add_vary(response.headers_mut());
                    response.map(MaybeEncoded::Plain)
                }
            },
        }
    }

    fn treatment<B: Body>(&self, status: StatusCode, headers: &HeaderMap, body: &B) -> Treatment {
        let has_no_content = matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
        if status.is_informational() || has_no_content || is_encoded(headers) {
            return Treatment::Leave;
        }
        if status == StatusCode::NOT_MODIFIED {
            return Treatment::NotModified;
        }
        if has_no_transform(headers) || !self.encode.matcher.fits(status, headers) {
            return Treatment::Leave;
        }
        if is_partial(status, headers) {
            return Treatment::Vary;
        }
        let length = self.length(headers, body);
        if length.is_some_and(|length| length == 0 || length < self.encode.minimum_length) {
            return Treatment::Leave;
        }
        match self.format {
            // What GET would send is not known, and so neither is how.
            Some(_) if self.method == Method::HEAD && length.is_none() => Treatment::Vary,
            Some(format) => Treatment::Encode(format),
            None => Treatment::Vary,
        }
    }

    /// Of the response to GET, in bytes.
    fn length<B: Body>(&self, headers: &HeaderMap, body: &B) -> Option<u64> {
        let announced = || headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse::<u64>().ok();
        if self.method == Method::HEAD { announced() } else { body.size_hint().exact().or_else(announced) }
    }

    fn encode<B>(
        &self,
        format: EncodeFormat,
        reserved: Reserved,
        response: Response<B>,
    ) -> Response<MaybeEncoded<B>>
    where
        B: Body<Data = Bytes, Error = io::Error> + Unpin,
    {
        let (mut head, body) = response.into_parts();
        let flushing = flushing(&head.headers);
        mark_encoded(&mut head.headers, format);
        let body = if self.method == Method::HEAD {
            MaybeEncoded::Plain(body)
        } else {
            match Box::new(EncodedBody::new(body, format, flushing).holding(reserved)).whole() {
                Ok(whole) => {
                    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
                    MaybeEncoded::Whole(whole)
                }
                Err(body) => MaybeEncoded::Streamed(body),
            }
        };
        Response::from_parts(head, body)
    }

    /// RFC 9110 §15.4.5: it has the tag and the `Vary` that the response to GET would have.
    fn mark_not_modified(&self, headers: &mut HeaderMap) {
        add_vary(headers);
        if let (Some(format), Named::Encoded) = (self.format, self.named) {
            replace_tag(headers, format);
        }
    }
}

/// `identity` says that it is not.
fn is_encoded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Ranges are counted in the plain bytes.
fn is_partial(status: StatusCode, headers: &HeaderMap) -> bool {
    matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE)
        || headers.contains_key(header::CONTENT_RANGE)
}

fn flushing(headers: &HeaderMap) -> Flushing {
    const EVENTS: &[u8] = b"text/event-stream";
    let kind = headers.get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if kind.eq_ignore_ascii_case(EVENTS) { Flushing::EachFrame } else { Flushing::OnPause }
}

fn mark_encoded(headers: &mut HeaderMap, format: EncodeFormat) {
    for name in &OF_PLAIN_BYTES {
        headers.remove(name);
    }
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(format.name()));
    add_vary(headers);
    replace_tag(headers, format);
}

fn replace_tag(headers: &mut HeaderMap, format: EncodeFormat) {
    let tag = headers.get(header::ETAG).and_then(|tag| entity_tag::encoded(tag, format.name()));
    if let Some(tag) = tag {
        headers.insert(header::ETAG, tag);
    }
}

fn add_vary(headers: &mut HeaderMap) {
    let is_it = |name: &[u8]| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding");
    let mut values = headers.get_all(header::VARY).iter();
    if !values.any(|value| value.as_bytes().split(|byte| *byte == b',').any(|name| is_it(name.trim_ascii())))
    {
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
}

#[cfg(test)]
mod tests;
