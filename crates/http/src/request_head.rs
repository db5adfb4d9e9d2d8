//! What HTTP/2 and HTTP/3 forbid in a request and what reads it lets through, and the request as a service gets it: as HTTP/1.1
//! has it, with its target in origin form, a `Host` field, and one `Cookie` field.

use crate::websocket;
use http::header::{CONTENT_LENGTH, COOKIE, HOST};
use http::request::Parts;
use http::uri::{self, Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};

/// Fields that a request may have; 431 beyond. Compressed, a field may cost its client one byte (CVE-2026-49975).
const MOST_FIELDS: usize = 200;

/// Why a request is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Malformed in a way that has no response: a stream error (RFC 9113 §8.1.1).
    Malformed,
    Status(StatusCode),
}

const BAD_REQUEST: Refusal = Refusal::Status(StatusCode::BAD_REQUEST);

/// Makes the request one that a service may have. `uri` and `protocol`: of its pseudo-header fields.
pub(crate) fn admit(head: &mut Parts, uri: uri::Parts, protocol: Option<&[u8]>) -> Result<(), Refusal> {
    check_values(&head.headers)?;
    if head.method == Method::CONNECT {
        // RFC 9220 §3: what is not spoken. Without a protocol it is for a proxy, and there is no `:path`.
        if !protocol.is_some_and(websocket::is_spoken) {
            return Err(Refusal::Status(StatusCode::NOT_IMPLEMENTED));
        }
        if head.headers.contains_key(CONTENT_LENGTH) {
            return Err(BAD_REQUEST);
        }
        websocket::stand_in(head);
    }
    join_cookies(&mut head.headers);
    if head.headers.len() > MOST_FIELDS {
        return Err(Refusal::Status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    }
    if uri.scheme.as_ref().is_some_and(|scheme| *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS) {
        return Err(BAD_REQUEST);
    }
    let host = host(&head.headers, uri.authority.as_ref(), uri.scheme.as_ref())?;
    head.headers.insert(HOST, host);
    head.uri = target(&head.method, uri.path_and_query)?;
    Ok(())
}

/// RFC 9113 §8.2.1: a value neither begins nor ends with whitespace. (NUL, CR and LF in it, and an upper-case letter or
/// anything else in a name that is no token, are errors to the h2 crate.)
fn check_values(fields: &HeaderMap) -> Result<(), Refusal> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_padded = |value: &HeaderValue| {
        let value = value.as_bytes();
        is_blank(value.first()) || is_blank(value.last())
    };
    if fields.values().any(is_padded) { Err(Refusal::Malformed) } else { Ok(()) }
}

/// RFC 9113 §8.2.3: the crumbs of a cookie are one field to everybody else.
fn join_cookies(fields: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> = fields.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1 {
        let joined = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]));
        fields.insert(COOKIE, joined.expect("invariant: parts of values make a value"));
    }
}

/// The value of `Host`: `:authority`, which it must not contradict, or what it is itself without that (RFC 9113 §8.3.1).
fn host(
    fields: &HeaderMap,
    authority: Option<&Authority>,
    scheme: Option<&Scheme>,
) -> Result<HeaderValue, Refusal> {
    let mut hosts = fields.get_all(HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(BAD_REQUEST);
    }
    let Some(authority) = authority else { return host.cloned().ok_or(BAD_REQUEST) };
    let agrees = |host: &HeaderValue| {
        let (host, authority) = (host.as_bytes(), authority.as_str().as_bytes());
        without_port(host, scheme).eq_ignore_ascii_case(without_port(authority, scheme))
    };
    // Information about a user has no place in it.
    if authority.as_str().contains('@') || host.is_some_and(|host| !agrees(host)) {
        return Err(BAD_REQUEST);
    }
    HeaderValue::from_str(authority.as_str()).map_err(|_| BAD_REQUEST)
}

/// The scheme's own port says nothing (RFC 9110 §4.2.3).
fn without_port<'a>(host: &'a [u8], scheme: Option<&Scheme>) -> &'a [u8] {
    let port: &[u8] = if scheme == Some(&Scheme::HTTP) { b":80" } else { b":443" };
    host.strip_suffix(port).unwrap_or(host)
}

/// RFC 9113 §8.3.1: an absolute path, or `*` of `OPTIONS`.
fn target(method: &Method, path: Option<PathAndQuery>) -> Result<Uri, Refusal> {
    let path = path.ok_or(BAD_REQUEST)?;
    let is_target = path.as_str().starts_with('/') || (path == "*" && *method == Method::OPTIONS);
    if is_target { Ok(path.into()) } else { Err(BAD_REQUEST) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    /// What a service gets: the target, and the values of a field.
    fn admitted(uri: &str, fields: &[(&str, &str)]) -> Result<(String, Vec<String>), Refusal> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut head = request.body(()).unwrap().into_parts().0;
        let uri = std::mem::take(&mut head.uri).into_parts();
        admit(&mut head, uri, None)?;
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        let fields = [HOST, COOKIE].iter().flat_map(|name| head.headers.get_all(name)).map(text).collect();
        Ok((head.uri.to_string(), fields))
    }

    fn status(uri: &str, fields: &[(&str, &str)]) -> u16 {
        match admitted(uri, fields) {
            Err(Refusal::Status(status)) => status.as_u16(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_authority_is_the_host() {
        let host = |uri, fields: &[_]| admitted(uri, fields).unwrap().1;
        assert_eq!(host("https://a.example/", &[]), ["a.example"]);
        assert_eq!(host("https://a.example:8443/", &[("host", "A.example:8443")]), ["a.example:8443"]);
        assert_eq!(host("https://a.example:443/", &[("host", "a.example")]), ["a.example:443"]);
        assert_eq!(host("/", &[("host", "a.example")]), ["a.example"]);
    }

    #[test]
    fn a_host_that_is_missing_or_contradicts_the_authority_is_refused() {
        assert_eq!(status("/", &[]), 400);
        assert_eq!(status("https://a.example/", &[("host", "b.example")]), 400);
        assert_eq!(status("https://a.example:80/", &[("host", "a.example")]), 400);
        assert_eq!(status("https://a.example/", &[("host", "")]), 400);
        assert_eq!(status("/", &[("host", "a"), ("host", "a")]), 400);
        assert_eq!(status("https://user@a.example/", &[]), 400);
        assert_eq!(status("ftp://a.example/", &[]), 400);
    }

    #[test]
    fn a_target_has_its_origin_form() {
        assert_eq!(admitted("https://a/b/c?d=e", &[]).unwrap().0, "/b/c?d=e");
        assert_eq!(status("*", &[("host", "a")]), 400);
    }

    #[test]
    fn crumbs_make_a_cookie() {
        let crumbs = [("cookie", "a=b"), ("cookie", "c=d; e=f"), ("cookie", "g=\u{e9}")];
        let mut head = Request::builder().uri("http://a/");
        for (name, value) in crumbs {
            head = head.header(name, value);
        }
        let mut head = head.body(()).unwrap().into_parts().0;
        let uri = std::mem::take(&mut head.uri).into_parts();
        admit(&mut head, uri, None).unwrap();
        let joined: Vec<_> = head.headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(joined, ["a=b; c=d; e=f; g=\u{e9}".as_bytes()]);
    }

    #[test]
    fn fields_have_a_bound_but_crumbs_are_not_fields() {
        let names: Vec<String> = (0..=MOST_FIELDS).map(|number| format!("x-{number}")).collect();
        let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert!(admitted("https://a/", &fields[1..]).is_ok());
        assert_eq!(status("https://a/", &fields), 431);
        assert!(admitted("https://a/", &[("cookie", "a=b"); MOST_FIELDS + 1]).is_ok());
    }

    #[test]
    fn a_value_with_whitespace_around_it_is_malformed() {
        for value in [" a", "a ", "\ta", "a\t", " "] {
            assert_eq!(admitted("https://a/", &[("x", value)]), Err(Refusal::Malformed), "{value:?}");
        }
        assert!(admitted("https://a/", &[("x", "a b"), ("y", "")]).is_ok());
    }

    /// What becomes of a `CONNECT` for this protocol.
    fn connected(protocol: Option<&str>, fields: &[(&str, &str)]) -> Result<Method, Refusal> {
        let mut request = Request::builder().method("CONNECT").uri("https://a/b");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut head = request.body(()).unwrap().into_parts().0;
        let uri = std::mem::take(&mut head.uri).into_parts();
        admit(&mut head, uri, protocol.map(str::as_bytes)).map(|()| head.method)
    }

    #[test]
    fn of_connect_there_is_only_websocket() {
        assert_eq!(connected(Some("WebSocket"), &[]), Ok(Method::GET));
        for protocol in [None, Some("connect-udp"), Some(""), Some("websocket2")] {
            let refused = Refusal::Status(StatusCode::NOT_IMPLEMENTED);
            assert_eq!(connected(protocol, &[]), Err(refused), "{protocol:?}");
        }
        assert_eq!(connected(Some("websocket"), &[("content-length", "3")]), Err(BAD_REQUEST));
    }
}
