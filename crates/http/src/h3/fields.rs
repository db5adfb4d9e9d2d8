//! Fields of requests and responses (RFC 9114 §4.2, §4.3).

use crate::h3::frames;
use crate::h3::qpack::{self, Field, FieldSection, Line, Malformed};
use bytes::Bytes;
use http::request::Parts;
use http::uri::{self, Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version, header};

/// Fields that are about an HTTP/1.1 connection (RFC 9114 §4.2).
const OF_A_CONNECTION: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Why there is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The section cannot be decoded, which ends the connection.
    Compression,
    /// It has more fields than it may.
    TooLarge,
    /// It is no request (RFC 9114 §4.1.2).
    Malformed,
}

impl From<Malformed> for Refused {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Wrong => Self::Compression,
            Malformed::TooLarge => Self::TooLarge,
        }
    }
}

/// The pseudo-header fields of a request.
#[derive(Default)]
struct Pseudo {
    method: Option<Method>,
    uri: uri::Parts,
    protocol: Option<Bytes>,
}

/// A request as it came: its head without its URI, and what that is made of.
pub(super) struct Asked {
    pub head: Parts,
    pub uri: uri::Parts,
    /// What the stream is to carry instead of a message (RFC 9220).
    pub protocol: Option<Bytes>,
}

/// A request. `most`: bytes that its fields may have.
pub(super) fn request(section: &[u8], most: usize) -> Result<Asked, Refused> {
    let mut fields = qpack::decode(section, most)?.into_iter().peekable();
    let mut pseudo = Pseudo::default();
    while let Some(field) = fields.next_if(|field| field.name.starts_with(b":")) {
        pseudo.set(field).ok_or(Refused::Malformed)?;
    }
    let method = pseudo.method.ok_or(Refused::Malformed)?;
    let has_target = pseudo.uri.scheme.is_some() && pseudo.uri.path_and_query.is_some();
    let is_connect = method == Method::CONNECT;
    // `CONNECT` has neither, unless it says for what; it is refused elsewhere.
    let needs_target = !is_connect || pseudo.protocol.is_some();
    if needs_target && !has_target || pseudo.protocol.is_some() && !is_connect {
        return Err(Refused::Malformed);
    }
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.version_mut() = Version::HTTP_3;
    *request.headers_mut() = regular(fields)?;
    if has_wrong_length(request.headers()) {
        return Err(Refused::Malformed);
    }
    Ok(Asked { head: request.into_parts().0, uri: pseudo.uri, protocol: pseudo.protocol })
}

/// Whether `Content-Length` is anything but one plain number (RFC 9110 §8.6).
fn has_wrong_length(fields: &HeaderMap) -> bool {
    let mut values = fields.get_all(header::CONTENT_LENGTH).iter();
    let is_number = |value: &HeaderValue| {
        let digits = value.as_bytes();
        digits.iter().all(u8::is_ascii_digit) && length(value).is_some()
    };
    values.next().is_some_and(|value| !is_number(value) || values.next().is_some())
}

/// What a client has declared of its request's body.
pub(super) fn content_length(fields: &HeaderMap) -> Option<u64> {
    fields.get(header::CONTENT_LENGTH).and_then(length)
}

fn length(value: &HeaderValue) -> Option<u64> {
    value.to_str().ok()?.parse().ok()
}

/// The trailers of a request.
pub(super) fn trailers(section: &[u8], most: usize) -> Result<HeaderMap, Refused> {
    regular(qpack::decode(section, most)?.into_iter())
}

impl Pseudo {
    /// `None`: it is not one, or there twice.
    fn set(&mut self, Field { name, value }: Field) -> Option<()> {
        let is_new = match &name[..] {
            b":method" => self.method.replace(Method::from_bytes(&value).ok()?).is_none(),
            b":scheme" => self.uri.scheme.replace(Scheme::try_from(&value[..]).ok()?).is_none(),
            b":authority" => self.uri.authority.replace(Authority::from_maybe_shared(value).ok()?).is_none(),
            b":path" => {
                self.uri.path_and_query.replace(PathAndQuery::from_maybe_shared(value).ok()?).is_none()
            }
            b":protocol" => self.protocol.replace(value).is_none(),
            _ => false,
        };
        is_new.then_some(())
    }
}

fn regular(fields: impl Iterator<Item = Field>) -> Result<HeaderMap, Refused> {
    let mut map = HeaderMap::with_capacity(fields.size_hint().0);
    for Field { name, value } in fields {
        // Neither upper-case letters nor another pseudo-header field is one.
        let name = HeaderName::from_lowercase(&name).map_err(|_| Refused::Malformed)?;
        let value = HeaderValue::from_maybe_shared(value).map_err(|_| Refused::Malformed)?;
        let is_allowed = match name {
            header::TE => value == "trailers",
            _ => !OF_A_CONNECTION.contains(&name),
        };
        if !is_allowed || map.try_append(name, value).is_err() {
            return Err(Refused::Malformed);
        }
    }
    Ok(map)
}

/// The frame of a response's head.
pub(super) fn response(status: StatusCode, fields: &HeaderMap) -> Vec<u8> {
    let mut section = FieldSection::default();
    section.push(Line { name: b":status", value: status.as_str().as_bytes() });
    push_all(&mut section, fields);
    frame(section)
}

/// The frame of a response's trailers.
pub(super) fn response_trailers(fields: &HeaderMap) -> Vec<u8> {
    let mut section = FieldSection::default();
    push_all(&mut section, fields);
    frame(section)
}

fn push_all(section: &mut FieldSection, fields: &HeaderMap) {
    for (name, value) in fields {
        section.push(Line { name: name.as_str().as_bytes(), value: value.as_bytes() });
    }
}

fn frame(section: FieldSection) -> Vec<u8> {
    let section = section.into_bytes();
    let mut frame = Vec::with_capacity(section.len() + 9);
    frames::write_head(frames::HEADERS, section.len(), &mut frame);
    frame.extend(section);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/b?c")];

    fn parsed(lines: &[(&str, &str)]) -> Result<Asked, Refused> {
        let mut section = FieldSection::default();
        for (name, value) in lines {
            section.push(Line { name: name.as_bytes(), value: value.as_bytes() });
        }
        request(&section.into_bytes(), 1000)
    }

    fn with(lines: &[(&'static str, &'static str)]) -> Result<Asked, Refused> {
        parsed(&[&GET[..], lines].concat())
    }

    fn refused(lines: &[(&str, &str)]) -> Refused {
        parsed(lines).err().expect("no request")
    }

    #[test]
    fn a_request_has_its_fields() {
        let Asked { head, uri, protocol } = with(&[("x", "1"), ("x", "2"), ("te", "trailers")]).unwrap();
        assert_eq!((&head.method, head.version), (&Method::GET, Version::HTTP_3));
        assert_eq!(protocol, None);
        assert_eq!(uri.scheme, Some(Scheme::HTTPS));
        assert_eq!(uri.authority.unwrap(), "a");
        assert_eq!(uri.path_and_query.unwrap(), "/b?c");
        assert_eq!(head.headers.get_all("x").iter().collect::<Vec<_>>(), ["1", "2"]);
    }

    #[test]
    fn what_is_no_request_is_malformed() {
        for missing in [0, 1, 3] {
            let mut lines = GET.to_vec();
            lines.remove(missing);
            assert_eq!(refused(&lines), Refused::Malformed, "without {:?}", GET[missing]);
        }
        for line in [
            (":method", "GET"),
            (":status", "200"),
            (":protocol", "websocket"),
            ("X", "upper"),
            ("a b", "c"),
            ("", "c"),
            ("a", "b\nc"),
            ("a", "b\0"),
            ("connection", "close"),
            ("keep-alive", "1"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "gzip"),
            ("content-length", "+1"),
            ("content-length", ""),
            ("content-length", "99999999999999999999"),
        ] {
            assert_eq!(refused(&[&GET[..], &[line]].concat()), Refused::Malformed, "{line:?}");
        }
        let twice = [("content-length", "1"), ("content-length", "1")];
        assert_eq!(refused(&[&GET[..], &twice].concat()), Refused::Malformed);
        let late = [&[("a", "b")], &GET[..]].concat();
        assert_eq!(refused(&late), Refused::Malformed);
    }

    #[test]
    fn a_connect_says_for_what_and_where_or_neither() {
        let connect = [(":method", "CONNECT"), (":authority", "a")];
        let target = [(":scheme", "https"), (":path", "/b")];
        let websocket = [(":protocol", "websocket")];
        assert_eq!(parsed(&connect).unwrap().protocol, None);
        let whole = parsed(&[&connect[..], &target, &websocket].concat()).unwrap();
        assert_eq!(
            (whole.protocol.as_deref(), whole.uri.path_and_query.unwrap().as_str()),
            (Some(&b"websocket"[..]), "/b")
        );
        assert_eq!(refused(&[&connect[..], &websocket].concat()), Refused::Malformed);
        assert_eq!(refused(&[&connect[..], &target, &websocket, &websocket].concat()), Refused::Malformed);
    }

    #[test]
    fn the_target_of_options_can_be_a_star() {
        let lines = [(":method", "OPTIONS"), (":scheme", "https"), (":authority", "a"), (":path", "*")];
        assert_eq!(parsed(&lines).unwrap().uri.path_and_query.unwrap(), "*");
    }

    #[test]
    fn a_response_is_its_status_and_fields() {
        let mut fields = HeaderMap::new();
        fields.insert("x", HeaderValue::from_static("y"));
        assert_eq!(response(StatusCode::OK, &fields), [1, 7, 0, 0, 0xc0 | 25, 0x21, b'x', 1, b'y']);
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(bytes: Vec<u8>) {
            let _ = request(&[&[0, 0], &bytes[..]].concat(), 1000);
        }
    }
}
