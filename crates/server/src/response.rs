//! What an engine answers, made fit for HTTP.

use crate::answer::Answer;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Version, header};
use hyper::ext::ReasonPhrase;
use regent_http::Interim;
use regent_wire::{End, ResponseHead};
use std::collections::VecDeque;

/// Fields that are between the client and us, not the script's (RFC 9110 §7.6.1). `Connection: close` is honoured, and
/// `Trailer` where trailers can be sent.
const HOP_BY_HOP: [HeaderName; 5] =
    [header::TRANSFER_ENCODING, header::UPGRADE, header::TE, header::TRAILER, header::PROXY_AUTHENTICATE];

/// Fields that room is made for beforehand: an engine can announce any number.
const MOST_RESERVED: usize = 64;

/// What has come of an answer so far.
#[derive(Default)]
pub(crate) struct Collected {
    pub head: Option<ResponseHeader>,
    pub body: VecDeque<Bytes>,
    /// Boxed, since few answers have any.
    pub trailers: Option<Box<HeaderMap>>,
    pub end: Option<End>,
}

/// Status and fields of an answer.
pub(crate) struct ResponseHeader {
    status: StatusCode,
    reason: Option<ReasonPhrase>,
    fields: HeaderMap,
    /// `Trailer`: names of fields that are to follow the body.
    announced: Option<HeaderValue>,
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

    /// The answer with all that follows its head. Trailers are for clients that asked for them.
    pub fn into_whole(
        mut self,
        body: VecDeque<Bytes>,
        trailers: Option<Box<HeaderMap>>,
        request: &HeaderMap,
    ) -> Response<Answer> {
        match trailers.filter(|trailers| !trailers.is_empty() && accepts_trailers(request)) {
            None => self.into_response(Answer::whole(body)),
            Some(trailers) => {
                self.announced = names(&trailers);
                self.announce_trailers(request);
                self.into_response(Answer::trailed(body, *trailers))
            }
        }
    }

    /// Says which trailers will follow, if the engine has announced any and the client takes them. Returns whether it does.
    pub fn announce_trailers(&mut self, request: &HeaderMap) -> bool {
        let Some(names) = self.announced.take().filter(|_| accepts_trailers(request)) else { return false };
        self.fields.insert(header::TRAILER, names);
        // They follow chunks.
        self.fields.remove(header::CONTENT_LENGTH);
        true
    }

    fn add(&mut self, name: HeaderName, value: HeaderValue) {
        if !is_hop_by_hop(&name, &value) {
            self.fields.append(name, value);
        } else if name == header::TRAILER {
            self.announced = match self.announced.take() {
                None => Some(value),
                Some(earlier) => joined(&earlier, &value),
            };
        }
    }
}

/// The fields of a trailer section, as far as they are valid HTTP.
pub(crate) fn trailers<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Box<HeaderMap> {
    let mut trailers = Box::<HeaderMap>::default();
    for (name, value) in fields.filter_map(|(name, value)| valid(name, value)) {
        trailers.append(name, value);
    }
    trailers
}

/// Sends what is valid HTTP of an interim answer (1xx) to a client of this version, before the answer that is being made.
pub(crate) fn send_interim(interim: &Interim, version: Version, head: &ResponseHead) {
    let Ok(status) = StatusCode::from_u16(head.status) else { return };
    let mut fields = HeaderMap::new();
    let valid = head.fields().filter_map(|(name, value)| valid(name, value));
    for (name, value) in valid.filter(|(name, _)| !HOP_BY_HOP.contains(name)) {
        fields.append(name, value);
    }
    interim.send(version, status, &fields);
}

fn valid(name: &[u8], value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    match (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
        (Ok(name), Ok(value)) => Some((name, value)),
        _ => {
            tracing::debug!(name = %String::from_utf8_lossy(name), "an invalid header field was dropped");
            None
        }
    }
}

/// RFC 9110 §10.1.4.
fn accepts_trailers(request: &HeaderMap) -> bool {
    let values = request.get_all(header::TE).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

fn names(trailers: &HeaderMap) -> Option<HeaderValue> {
    let names: Vec<&str> = trailers.keys().map(HeaderName::as_str).collect();
    HeaderValue::try_from(names.join(", ")).ok()
}

fn joined(list: &HeaderValue, more: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::from_bytes(&[list.as_bytes(), b", ", more.as_bytes()].concat()).ok()
}

fn is_hop_by_hop(name: &HeaderName, value: &HeaderValue) -> bool {
    HOP_BY_HOP.contains(name)
        || *name == "keep-alive"
        || (*name == header::CONNECTION && !value.as_bytes().eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn trailers_are_for_clients_that_say_so() {
        for (te, expected) in
            [("trailers", true), ("gzip;q=0.5, Trailers", true), ("", false), ("trailersx", false)]
        {
            assert_eq!(accepts_trailers(&request(te)), expected, "{te}");
        }
    }

    #[test]
    fn an_answer_with_trailers_has_no_length_and_names_them() {
        let fields = [("content-length", "4"), ("connection", "keep-alive")];
        let body = || VecDeque::from([Bytes::from("body")]);
        let with = header(&fields).into_whole(body(), sum(), &request("trailers"));
        assert_eq!(with.headers().get(header::TRAILER).unwrap(), "x-sum");
        assert!(!with.headers().contains_key(header::CONTENT_LENGTH));
        assert_eq!(with.body().size_hint().exact(), None);
        let without = header(&fields).into_whole(body(), sum(), &request(""));
        assert_eq!(without.headers().len(), 1);
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
