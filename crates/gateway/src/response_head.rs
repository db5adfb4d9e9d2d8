//! What an engine answers, made fit for HTTP.

use crate::fields::{accepts_trailers, names, valid};
use crate::length::DeclaredLength;
use crate::streamed::{Script, Streamed, TrailerSlot, trailed, whole};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version, header};
use hyper::ext::ReasonPhrase;
use regent_exchange::{Informational, ResponseBody};
use regent_handlers::Exchange;
use regent_spool::Spools;
use regent_wire::{End, ResponseHead};
use std::collections::VecDeque;
use std::sync::Arc;

/// Fields that are between the client and us, not the script's (RFC 9110 §7.6.1). `Connection: close` is honoured, and
/// `Trailer` where trailers can be sent.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::PROXY_AUTHENTICATE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Fields that room is made for beforehand: an engine can announce any number.
const MOST_RESERVED: usize = 64;

/// What has come of an answer so far.
#[derive(Default)]
pub struct BufferedResponse {
    pub head: Option<ResponseHeader>,
    pub body: VecDeque<Bytes>,
    /// Boxed, since few answers have any.
    pub trailers: Option<Box<HeaderMap>>,
    pub end: Option<End>,
}

/// Status and fields of an answer.
pub struct ResponseHeader {
    status: StatusCode,
    reason: Option<ReasonPhrase>,
    /// Without `Content-Length`.
    fields: HeaderMap,
    declared: DeclaredLength,
    /// `Trailer`: names of fields that are to follow the body.
    announced: Option<HeaderValue>,
}

/// What of a request shapes its answer.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
}

impl<'a> Asked<'a> {
    pub fn by(exchange: &'a Exchange) -> Self {
        Self { method: exchange.original_method(), headers: &exchange.headers }
    }
}

impl ResponseHeader {
    pub fn of(head: &ResponseHead) -> Self {
        Self::new(head.status, head.reason(), head.field_count(), head.fields())
    }

    /// Takes what is valid HTTP and drops the rest: a script can write anything. `count`: about how many fields there are.
    pub fn new<'a>(
        status: u16,
        reason: &[u8],
        count: usize,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Self {
        let mut header = Self {
            // 1xx would be taken for informational by the client, which then waits for the real answer for ever.
            status: StatusCode::from_u16(status)
                .ok()
                .filter(|status| !status.is_informational())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            reason: (!reason.is_empty()).then(|| ReasonPhrase::try_from(reason)).and_then(Result::ok),
            // One more, since `Server` will be added.
            fields: HeaderMap::with_capacity(count.min(MOST_RESERVED) + 1),
            declared: DeclaredLength::None,
            announced: None,
        };
        for (name, value) in fields {
            if let Some((name, value)) = valid(name, value) {
                header.add(name, value);
            }
        }
        header
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

    /// The answer with all that follows its head. Its length is the true one, whatever the engine says. Trailers are for
    /// clients that asked for them.
    pub(crate) fn into_whole(
        mut self,
        body: VecDeque<Bytes>,
        trailers: Option<Box<HeaderMap>>,
        asked: Asked<'_>,
    ) -> Response<ResponseBody> {
        if self.is_bodiless() {
            return self.into_response(whole(VecDeque::new()));
        }
        if body.is_empty() && asked.method == Method::HEAD {
            // PHP writes no body then, and a GET may have one (RFC 9110 §9.3.2).
            self.declare(self.declared.bytes());
        }
        match trailers.filter(|trailers| !trailers.is_empty() && accepts_trailers(asked.headers)) {
            None => self.into_response(whole(body)),
            Some(trailers) => {
                self.announced = names(&trailers);
                self.announce_trailers(asked.headers);
                self.into_response(trailed(body, *trailers))
            }
        }
    }

    /// The answer of a script that is still writing it; `body` and `trailers` are what has come of it. A plain length is
    /// kept, and the body is held to it, unless trailers follow: those need chunks.
    pub(crate) fn into_streamed(
        mut self,
        spools: &Arc<Spools>,
        body: VecDeque<Bytes>,
        trailers: Option<Box<HeaderMap>>,
        mut script: Script,
        asked: Asked<'_>,
    ) -> Response<ResponseBody> {
        let length = if self.is_bodiless() {
            Some(0)
        } else if self.announce_trailers(asked.headers) {
            script.trailers = Some(TrailerSlot::new(trailers.into()));
            None
        } else {
            self.declared.bytes()
        };
        self.declare(length);
        // The answer to HEAD is whole with its head. One of no known length may come from a script that never ends.
        let owed = length.map(|bytes| if asked.method == Method::HEAD { 0 } else { bytes });
        self.into_response(Streamed::start(spools, body, script, owed))
    }

    /// Says which trailers will follow, if the engine has announced any and the client takes them. Returns whether it does.
    fn announce_trailers(&mut self, request: &HeaderMap) -> bool {
        let Some(names) = self.announced.take().filter(|_| accepts_trailers(request)) else { return false };
        self.fields.insert(header::TRAILER, names);
        true
    }

    /// Whether the status has no content (RFC 9110 §15.3.5, §15.3.6, §15.4.5).
    fn is_bodiless(&self) -> bool {
        matches!(self.status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
    }

    /// Of 204 and 304 the length says nothing, and clients have taken it for that of a body.
    fn declare(&mut self, length: Option<u64>) {
        if let Some(length) = length
            && !matches!(self.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        {
            self.fields.insert(header::CONTENT_LENGTH, length.into());
        }
    }

    fn add(&mut self, name: HeaderName, value: HeaderValue) {
        if name == header::CONTENT_LENGTH {
            self.declared = self.declared.and(value.as_bytes());
        } else if !HOP_BY_HOP.contains(&name) {
            self.fields.append(name, value);
        } else if name == header::CONNECTION && says_close(&value) {
            self.fields.insert(name, HeaderValue::from_static("close"));
        } else if name == header::TRAILER {
            self.announced = match self.announced.take() {
                None => Some(value),
                Some(earlier) => joined(&earlier, &value),
            };
        }
    }
}

/// Sends what is valid HTTP of an interim answer (1xx) to a client of this version, before the answer that is being made.
pub(crate) fn send_interim(client: &dyn Informational, version: Version, head: &ResponseHead) {
    let Ok(status) = StatusCode::from_u16(head.status) else { return };
    let mut fields = HeaderMap::new();
    let valid = head.fields().filter_map(|(name, value)| valid(name, value));
    for (name, value) in valid.filter(|(name, _)| !HOP_BY_HOP.contains(name)) {
        fields.append(name, value);
    }
    client.send(version, status, &fields);
}

fn joined(list: &HeaderValue, more: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::from_bytes(&[list.as_bytes(), b", ", more.as_bytes()].concat()).ok()
}

fn says_close(connection: &HeaderValue) -> bool {
    connection
        .as_bytes()
        .split(|byte| *byte == b',')
        .any(|own| own.trim_ascii().eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::trailers;
    use http_body::Body;

    fn request(te: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::TE, HeaderValue::from_static(te))])
    }

    fn header(fields: &[(&str, &str)]) -> ResponseHeader {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        ResponseHeader::new(200, b"", fields.len(), fields)
    }

    fn sum() -> Option<Box<HeaderMap>> {
        Some(trailers([(&b"x-sum"[..], &b"42"[..]), (b"x bad", b"1")].into_iter()))
    }

    fn response(
        status: u16,
        fields: &[(&str, &str)],
        body: &'static str,
        method: Method,
    ) -> Response<ResponseBody> {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let body = if body.is_empty() { VecDeque::new() } else { VecDeque::from([Bytes::from(body)]) };
        let asked = Asked { method: &method, headers: &HeaderMap::new() };
        ResponseHeader::new(status, b"", 1, fields).into_whole(body, None, asked)
    }

    fn length(response: &Response<ResponseBody>) -> Option<&str> {
        response.headers().get(header::CONTENT_LENGTH).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn a_whole_answer_has_its_true_length() {
        for declared in ["2", "400", "4", "abc", "-1", "3,3", "+5"] {
            let response = response(200, &[("Content-Length", declared)], "body", Method::GET);
            assert_eq!(length(&response), None, "hyper says it");
            assert_eq!(response.body().size_hint().exact(), Some(4));
        }
    }

    #[test]
    fn the_answer_to_head_has_the_length_that_a_script_knows() {
        let to_head = |fields: &[(&str, &str)]| {
            let response = response(200, fields, "", Method::HEAD);
            length(&response).map(str::to_owned)
        };
        assert_eq!(to_head(&[("Content-Length", "0010")]), Some("10".into()));
        assert_eq!(to_head(&[("Content-Length", "10"), ("Content-Length", "11")]), None);
        assert_eq!(to_head(&[("Content-Length", "abc")]), None);
        assert_eq!(to_head(&[]), None);
    }

    #[test]
    fn a_status_without_content_has_none() {
        for status in [204, 205, 304] {
            for method in [Method::GET, Method::HEAD] {
                let response = response(status, &[("Content-Length", "4")], "body", method);
                assert!(response.body().is_end_stream() && length(&response).is_none(), "{status}");
            }
        }
    }

    #[test]
    fn fields_of_the_connection_are_not_the_scripts() {
        let fields = [
            ("Transfer-Encoding", "chunked"),
            ("Connection", "Upgrade"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Connection", "keep-alive"),
            ("Upgrade", "websocket"),
            ("TE", "trailers"),
        ];
        assert!(header(&fields).fields.is_empty(), "{:?}", header(&fields).fields);
        let close = header(&[("Connection", "X-Own, Close"), ("Connection", "close")]).fields;
        assert_eq!(close.get_all(header::CONNECTION).iter().collect::<Vec<_>>(), ["close"]);
    }

    #[test]
    fn an_answer_with_trailers_has_no_length_and_names_them() {
        let fields = [("content-length", "4"), ("connection", "keep-alive")];
        let into_whole = |te| {
            let asked = Asked { method: &Method::GET, headers: &request(te) };
            header(&fields).into_whole(VecDeque::from([Bytes::from("body")]), sum(), asked)
        };
        let with = into_whole("trailers");
        assert_eq!(with.headers().get(header::TRAILER).unwrap(), "x-sum");
        assert!(!with.headers().contains_key(header::CONTENT_LENGTH));
        assert_eq!(with.body().size_hint().exact(), None);
        let without = into_whole("");
        assert!(without.headers().is_empty());
        assert_eq!(without.body().size_hint().exact(), Some(4));
    }

    #[test]
    fn announced_trailers_are_announced_only_to_those_who_get_them() {
        for (te, announced) in [("trailers", true), ("", false)] {
            let mut header = header(&[("Trailer", "x-sum"), ("trailer", "x-a, x-b")]);
            assert_eq!(header.announce_trailers(&request(te)), announced);
            let names = header.fields.get(header::TRAILER).map(HeaderValue::as_bytes);
            assert_eq!(names, announced.then_some(&b"x-sum, x-a, x-b"[..]));
        }
        assert!(!header(&[]).announce_trailers(&request("trailers")), "there are none");
    }
}
