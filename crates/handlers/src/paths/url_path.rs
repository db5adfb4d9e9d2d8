//! URL paths: percent-decoding, dot segments and slashes, percent-encoding.
//!
//! Everything that looks at a path (matchers, files, PHP) looks at the one normalized form that [`normalize`] makes,
//! so that no spelling of a path can pass a matcher and reach another file.

/// Why a request cannot be routed at all; answered with 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadRequest {
    /// The request target is not a path (`CONNECT host:port`, `GET *`).
    NoPath,
    /// A `%` that two hexadecimal digits do not follow.
    Escape,
    /// A NUL byte: C code behind us would see a shorter path than the checks did.
    Nul,
    /// A host name with characters that none may have.
    Host,
}

/// Decodes and cleans a request's path; `None` if it is in normal form already (no allocation then).
///
/// The result begins with `/`, has no empty, `.` or `..` segments, and ends in `/` if the path names a directory
/// (RFC 3986 §5.2.4). A `%2F` counts as a slash, as in Caddy and nginx.
pub(crate) fn normalize(raw: &str) -> Result<Option<Vec<u8>>, BadRequest> {
    let raw = raw.as_bytes();
    if raw.first() != Some(&b'/') {
        return Err(BadRequest::NoPath);
    }
    if is_normal(raw) {
        return Ok(None);
    }
    let decoded = decode(raw).ok_or(BadRequest::Escape)?;
    if decoded.contains(&0) {
        return Err(BadRequest::Nul);
    }
    Ok(Some(clean(&decoded)))
}

/// Resolves dot segments and merges slashes. `..` stops at the top.
pub(crate) fn clean(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len() + 1);
    let mut ends_in_slash = true;
    for segment in path.split(|byte| *byte == b'/') {
        ends_in_slash = true;
        match segment {
            b"" | b"." => {}
            b".." => {
                let parent = out.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                out.truncate(parent);
            }
            name => {
                out.push(b'/');
                out.extend_from_slice(name);
                ends_in_slash = false;
            }
        }
    }
    if ends_in_slash {
        out.push(b'/');
    }
    out
}

/// The path without the slashes at its end; the top is empty.
pub(crate) fn trim_end_slashes(mut path: &[u8]) -> &[u8] {
    while let [rest @ .., b'/'] = path {
        path = rest;
    }
    path
}

/// What follows the last slash: the file name, empty for a directory.
pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(path, |slash| &path[slash + 1..])
}

/// Percent-decodes; `None` if an escape is malformed.
pub(crate) fn decode(raw: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            out.push(hex(*rest.first()?)? << 4 | hex(*rest.get(1)?)?);
            rest = &rest[2..];
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

/// Decodes a key or value of a query string, where `+` is a space; a malformed escape stays as it is.
pub(crate) fn decode_query(raw: &str) -> Vec<u8> {
    let spaced: Vec<u8> = raw.bytes().map(|byte| if byte == b'+' { b' ' } else { byte }).collect();
    decode(&spaced).unwrap_or(spaced)
}

/// Appends a decoded path so that decoding gives the same bytes again.
pub(crate) fn encode_path(path: &[u8], out: &mut Vec<u8>) {
    encode(path, out, |byte| byte == b'/' || is_path_char(byte));
}

/// Appends a value for a query string: everything but unreserved characters is encoded.
pub(crate) fn encode_query_value(value: &[u8], out: &mut Vec<u8>) {
    encode(value, out, is_unreserved);
}

/// Appends text that is meant as part of a URI already; encodes only what a URI may not contain.
pub(crate) fn encode_unsafe(text: &[u8], out: &mut Vec<u8>) {
    for (index, &byte) in text.iter().enumerate() {
        let allowed = match byte {
            b'%' => {
                text.get(index + 1).is_some_and(u8::is_ascii_hexdigit)
                    && text.get(index + 2).is_some_and(u8::is_ascii_hexdigit)
            }
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => false,
            byte => byte.is_ascii_graphic(),
        };
        push_encoded(byte, allowed, out);
    }
}

fn is_normal(path: &[u8]) -> bool {
    let mut previous = 0;
    for &byte in path {
        // A name that begins with a dot takes the slow way too, which leaves it as it is.
        if byte == b'%' || byte == 0 || (previous == b'/' && matches!(byte, b'/' | b'.')) {
            return false;
        }
        previous = byte;
    }
    true
}

fn encode(text: &[u8], out: &mut Vec<u8>, keep: impl Fn(u8) -> bool) {
    for &byte in text {
        push_encoded(byte, keep(byte), out);
    }
}

fn push_encoded(byte: u8, keep: bool, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if keep {
        out.push(byte);
    } else {
        out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// RFC 3986 §2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// `pchar` of RFC 3986 §3.3, without `%`.
fn is_path_char(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'@'
        )
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(raw: &str) -> String {
        let bytes = normalize(raw).unwrap().unwrap_or_else(|| raw.into());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn plain_paths_are_not_copied() {
        for path in ["/", "/hello.php", "/a/b/", "/a.b/c..d"] {
            assert_eq!(normalize(path), Ok(None), "{path}");
        }
    }

    #[test]
    fn dot_segments_and_slashes_are_resolved() {
        for (raw, want) in [
            ("//", "/"),
            ("/./a", "/a"),
            ("/a/.", "/a/"),
            ("/a/..", "/"),
            ("/a/../../../b", "/b"),
            ("/%2e%2e/%2e%2e/etc/passwd", "/etc/passwd"),
            ("/..%2f..%2fetc", "/etc"),
            ("//evil.example/../dir", "/dir"),
            ("/a%2Fb", "/a/b"),
            ("/.hidden", "/.hidden"),
            ("/%252e%252e/x", "/%2e%2e/x"),
            ("/...", "/..."),
        ] {
            assert_eq!(normal(raw), want, "{raw}");
        }
    }

    #[test]
    fn malformed_paths_are_refused() {
        for (raw, why) in [
            ("", BadRequest::NoPath),
            ("*", BadRequest::NoPath),
            ("/%", BadRequest::Escape),
            ("/%zz", BadRequest::Escape),
            ("/%2", BadRequest::Escape),
            ("/x.php%00.jpg", BadRequest::Nul),
        ] {
            assert_eq!(normalize(raw), Err(why), "{raw}");
        }
    }

    #[test]
    fn encoding_a_path_keeps_its_bytes() {
        let bytes: Vec<u8> = (1..=255).collect();
        let mut encoded = Vec::new();
        encode_path(&bytes, &mut encoded);
        assert_eq!(decode(&encoded).unwrap(), bytes);
        assert!(!encoded.contains(&b'?') && !encoded.contains(&b'#') && !encoded.contains(&b'\\'));
    }

    #[test]
    fn uri_text_keeps_its_escapes() {
        let mut out = Vec::new();
        encode_unsafe(b"/a%20b c%zz?x=1", &mut out);
        assert_eq!(out, b"/a%20b%20c%25zz?x=1");
    }
}
