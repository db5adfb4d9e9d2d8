//! Host names: of a request, and patterns for them.

use http::uri::Authority;
use http::{HeaderMap, Uri, header};

/// The host and port that a request is for, as sent. A URI's own authority goes before the `Host` field
/// (RFC 9112 §3.2.2).
pub(crate) fn host_port<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> &'a [u8] {
    match uri.authority().map(Authority::as_str) {
        Some(authority) => authority.rsplit_once('@').map_or(authority, |(_, host)| host).as_bytes(),
        None => headers.get(header::HOST).map_or(&[], |value| value.as_bytes()),
    }
}

/// The host name in lower case, without port and brackets; `None` if it has characters that no host has.
pub(crate) fn host_name(host_port: &[u8]) -> Option<String> {
    let position = |text: &[u8], wanted| text.iter().position(|byte| *byte == wanted);
    let name = match host_port.strip_prefix(b"[") {
        Some(address) => &address[..position(address, b']')?],
        None => &host_port[..position(host_port, b':').unwrap_or(host_port.len())],
    };
    if !host_port.is_ascii() || !name.iter().all(|byte| is_host_byte(*byte)) {
        return None;
    }
    String::from_utf8(name.to_ascii_lowercase()).ok()
}

/// `reg-name` of RFC 3986 §3.2.2, and the colons of an IPv6 address.
fn is_host_byte(byte: u8) -> bool {
    // From `$` to `.`: $ % & ' ( ) * + , - .
    byte.is_ascii_alphanumeric() || matches!(byte, b'!' | b'$'..=b'.' | b':' | b';' | b'=' | b'_' | b'~')
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
        ] {
            assert_eq!(host_name(raw.as_bytes()).as_deref(), want, "{raw}");
        }
        assert_eq!(host_name(b"\xff"), None);
        assert_eq!(host_name(b"a:\xff"), None);
    }

    #[test]
    fn a_star_is_one_label() {
        assert!(matches("*.example.com", "A.example.com"));
        assert!(!matches("*.example.com", "a.b.example.com"));
        assert!(!matches("*.example.com", "example.com"));
        assert!(!matches("*.example.com", ".example.com"));
    }
}
