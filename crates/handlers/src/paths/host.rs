//! Host names: of a request, and patterns for them.

use http::{HeaderMap, HeaderValue, Uri, header};
use std::borrow::Cow;
use std::net::Ipv6Addr;

/// The host and port that a request is for, as sent. A URI's own authority goes before the `Host` field
/// (RFC 9112 §3.2.2).
pub(crate) fn host_port<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> &'a [u8] {
    match uri.authority() {
        Some(authority) => authority.as_str().as_bytes(),
        None => headers.get(header::HOST).map_or(&[], |value| value.as_bytes()),
    }
}

/// The host name of a request in lower case, without port and brackets; `None` if what names it is not
/// `uri-host [ ":" port ]` (RFC 9110 §7.2), be it the field or the target, of which the latter counts: then the field is
/// made to say the same.
///
/// User information is not part of it; in a target, it is there to deceive (RFC 9110 §4.2.4).
pub(crate) fn of_request(uri: &Uri, headers: &mut HeaderMap) -> Option<String> {
    if let Some(authority) = uri.authority() {
        // Without a scheme it is for CONNECT, which is refused for its own sake.
        let is_http = matches!(uri.scheme_str(), None | Some("http" | "https"));
        let field = headers.get(header::HOST).map_or(&[][..], |value| value.as_bytes());
        if !is_http || host_name(field).is_none() {
            return None;
        }
        headers.insert(header::HOST, HeaderValue::from_str(authority.as_str()).ok()?);
    }
    host_name(host_port(uri, headers))
}

/// The host name in lower case, without port and brackets; `None` if it is not `uri-host [ ":" port ]`.
pub(crate) fn host_name(host_port: &[u8]) -> Option<String> {
    let position = |text: &[u8], wanted| text.iter().position(|byte| *byte == wanted);
    let (name, rest) = match host_port.strip_prefix(b"[") {
        Some(address) => {
            let end = position(address, b']')?;
            (ipv6(&address[..end])?, &address[end + 1..])
        }
        None => host_port.split_at(position(host_port, b':').unwrap_or(host_port.len())),
    };
    let has_host = !name.is_empty() || host_port.is_empty();
    if !has_host || !is_port(rest) || !name.iter().all(|byte| is_host_byte(*byte)) {
        return None;
    }
    String::from_utf8(name.to_ascii_lowercase()).ok()
}

fn ipv6(address: &[u8]) -> Option<&[u8]> {
    let text = std::str::from_utf8(address).ok()?;
    text.parse::<Ipv6Addr>().is_ok().then_some(address)
}

/// Nothing, or a colon and a port, which may be empty (RFC 3986 §3.2.3).
fn is_port(rest: &[u8]) -> bool {
    let Some((colon, digits)) = rest.split_first() else { return true };
    let number = digits.iter().try_fold(0_u16, |number, digit| {
        number.checked_mul(10)?.checked_add(u16::from(digit.is_ascii_digit().then(|| digit - b'0')?))
    });
    *colon == b':' && number.is_some()
}

/// `reg-name` of RFC 3986 §3.2.2, and the colons of an IPv6 address.
fn is_host_byte(byte: u8) -> bool {
    // From `$` to `.`: $ % & ' ( ) * + , - .
    byte.is_ascii_alphanumeric() || matches!(byte, b'!' | b'$'..=b'.' | b':' | b';' | b'=' | b'_' | b'~')
}

/// A host as it stands in a URL (RFC 3986 §3.2.2) and in CGI's `SERVER_NAME` (RFC 3875 §4.1.14).
pub fn in_url(host: &str) -> Cow<'_, str> {
    if host.contains(':') { Cow::Owned(format!("[{host}]")) } else { Cow::Borrowed(host) }
}

/// Whether a host fits a pattern in which `*` stands for any one label.
pub(crate) fn matches(pattern: &str, host: &str) -> bool {
    if !pattern.contains('*') {
        return pattern.eq_ignore_ascii_case(host);
    }
    let (mut patterns, mut labels) = (pattern.split('.'), host.split('.'));
    loop {
        match (patterns.next(), labels.next()) {
            (None, None) => return true,
            (Some("*"), Some(label)) if !label.is_empty() => {}
            (Some(pattern), Some(label)) if pattern.eq_ignore_ascii_case(label) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_ports_brackets_and_case() {
        for (raw, want) in [
            ("Example.COM:8080", Some("example.com")),
            ("[::1]:80", Some("::1")),
            ("", Some("")),
            ("a/../b", None),
            ("a b", None),
            ("[::1", None),
            ("[::1]x", None),
            ("[::1]:", Some("::1")),
            ("[a.b]", None),
            ("a:", Some("a")),
            ("a:65535", Some("a")),
            ("a:65536", None),
            ("a:99999999999999999999", None),
            ("a:+80", None),
            ("a:8080x", None),
            ("a:80:80", None),
            (":80", None),
            ("user@a", None),
            ("user:secret@a", None),
            ("user:80@a:80", None),
        ] {
            assert_eq!(host_name(raw.as_bytes()).as_deref(), want, "{raw}");
        }
        assert_eq!(host_name(b"\xff"), None);
        assert_eq!(host_name(b"a:\xff"), None);
    }

    #[test]
    fn a_target_with_a_host_counts_more_than_the_field() {
        let of = |target: &str, field: &'static str| {
            let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(field))]);
            let name = of_request(&target.parse().unwrap(), &mut headers);
            name.map(|name| (name, headers[header::HOST].to_str().unwrap().to_owned()))
        };
        let found = |name: &str, field: &str| Some((name.to_owned(), field.to_owned()));
        assert_eq!(of("/", "A:80"), found("a", "A:80"));
        assert_eq!(of("http://B:8080/", "a"), found("b", "B:8080"));
        assert_eq!(of("http://b/", "user@a"), None, "the field must be in order even so");
        assert_eq!(of("http://user@b/", "b"), None);
        assert_eq!(of("http://b:x/", "b"), None);
        assert_eq!(of("ftp://b/", "b"), None);
    }

    #[test]
    fn a_star_is_one_label() {
        assert!(matches("*.example.com", "A.example.com"));
        assert!(!matches("*.example.com", "a.b.example.com"));
        assert!(!matches("*.example.com", "example.com"));
        assert!(!matches("*.example.com", ".example.com"));
    }
}
