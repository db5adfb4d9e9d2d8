//! The head of PHP's answer, made fit for HTTP.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::ext::ReasonPhrase;
use regent_wire::{End, ResponseHead};
use std::collections::VecDeque;

/// Fields that are between the client and us, not the script's (RFC 9110 §7.6.1). `Connection: close` is honoured.
const HOP_BY_HOP: [HeaderName; 5] =
    [header::TRANSFER_ENCODING, header::UPGRADE, header::TE, header::TRAILER, header::PROXY_AUTHENTICATE];

/// Fields that room is made for beforehand: an engine can announce any number.
const MOST_RESERVED: usize = 64;

/// What has come of an answer so far.
#[derive(Default)]
pub(crate) struct Collected {
    pub head: Option<ResponseHeader>,
    pub body: VecDeque<Bytes>,
    pub end: Option<End>,
}

/// Status and fields of an answer.
pub(crate) struct ResponseHeader {
    status: StatusCode,
    reason: Option<ReasonPhrase>,
    fields: HeaderMap,
}

impl ResponseHeader {
    /// Takes what is valid HTTP and drops the rest: a script can write anything.
    pub fn new(head: &ResponseHead) -> Self {
        // One more, since `Server` will be added.
        let mut fields = HeaderMap::with_capacity(head.field_count().min(MOST_RESERVED) + 1);
        for (name, value) in head.fields() {
            let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) else {
                tracing::debug!(name = %String::from_utf8_lossy(name), "an invalid header field was dropped");
                continue;
            };
            if !is_hop_by_hop(&name, &value) {
                fields.append(name, value);
            }
        }
        Self {
            // 1xx would be taken for informational by the client, which then waits for the real answer for ever.
            status: StatusCode::from_u16(head.status)
                .ok()
                .filter(|status| !status.is_informational())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            reason: (!head.reason().is_empty())
                .then(|| ReasonPhrase::try_from(head.reason()))
                .and_then(Result::ok),
            fields,
        }
    }

    pub fn into_response<B>(self, body: B) -> Response<B> {
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.fields;
        if let Some(reason) = self.reason {
            response.extensions_mut().insert(reason);
        }
        response
    }
}

fn is_hop_by_hop(name: &HeaderName, value: &HeaderValue) -> bool {
    HOP_BY_HOP.contains(name)
        || *name == "keep-alive"
        || (*name == header::CONNECTION && !value.as_bytes().eq_ignore_ascii_case(b"close"))
}
