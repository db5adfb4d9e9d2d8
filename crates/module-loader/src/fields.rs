//! Header fields and trailers: checked when they are set, kept in buffers that are used again.

/// Bytes of all names and values: a head has to fit into half a response ring of 64 KiB.
const MOST_BYTES: usize = 24 * 1024;
/// Bytes beside name and value that each field takes in the ring.
const OVERHEAD: usize = 8;

/// Fields that are between client and server (RFC 9110 §7.6.1), which are the server's. `Trailer` it passes on.
const OF_THE_CONNECTION: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Fields that come too late behind the body (RFC 9110 §6.5.1).
const NOT_BEHIND_THE_BODY: [&str; 17] = [
    "age",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "expires",
    "host",
    "location",
    "retry-after",
    "set-cookie",
    "trailer",
    "vary",
    "warning",
    "www-authenticate",
];

/// Names and values of fields, in the order in which they were set. All are valid HTTP.
#[derive(Debug, Default)]
pub struct Fields {
    text: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: usize,
    name: usize,
    value: usize,
}

/// The field cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidField;

impl Fields {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| self.field(entry))
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
    }

    /// Beside earlier fields of that name.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), InvalidField> {
        if !is_name(name) || !is_value(value) || is_among(name, &OF_THE_CONNECTION) {
            return Err(InvalidField);
        }
        let value = value.trim_ascii();
        let taken = self.text.len() + self.entries.len() * OVERHEAD;
        if taken + name.len() + value.len() + OVERHEAD > MOST_BYTES {
            return Err(InvalidField);
        }
        self.entries.push(Entry { start: self.text.len(), name: name.len(), value: value.len() });
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        Ok(())
    }

    /// In the place of earlier fields of that name, which stay if this one is invalid.
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), InvalidField> {
        let earlier = self.entries.len();
        self.add(name, value)?;
        if earlier > 0 {
            let (entries, text) = (&mut self.entries, &self.text);
            let added = entries.len() - 1;
            let mut index = 0;
            entries.retain(|entry| {
                let is_other = !text[entry.start..entry.start + entry.name].eq_ignore_ascii_case(name);
                index += 1;
                index > added || is_other
            });
        }
        Ok(())
    }

    /// As [`Fields::add`], of a field that follows the body.
    pub(crate) fn add_trailer(&mut self, name: &[u8], value: &[u8]) -> Result<(), InvalidField> {
        if is_among(name, &NOT_BEHIND_THE_BODY) {
            return Err(InvalidField);
        }
        self.add(name, value)
    }

    /// Whether a field `Trailer` names this one (RFC 9110 §6.6.2).
    pub(crate) fn announces(&self, trailer: &[u8]) -> bool {
        let lists = self.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"trailer"));
        let mut names = lists.flat_map(|(_, list)| list.split(|byte| *byte == b','));
        names.any(|name| name.trim_ascii().eq_ignore_ascii_case(trailer))
    }

    fn field(&self, entry: &Entry) -> (&[u8], &[u8]) {
        self.text[entry.start..entry.start + entry.name + entry.value].split_at(entry.name)
    }
}

fn is_among(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()))
}

/// A token (RFC 9110 §5.6.2).
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| TOKEN[usize::from(*byte)])
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = matches!(
            byte as u8,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`'
                | b'|' | b'~'
        );
        byte += 1;
    }
    table
};

/// No line end, no NUL, no other control character (RFC 9110 §5.5).
fn is_value(value: &[u8]) -> bool {
    // Without an early exit, so that many bytes are looked at in one instruction.
    value.iter().fold(true, |valid, byte| valid & matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(fields: &Fields) -> Vec<(&str, &str)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        fields.iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn a_field_takes_the_place_of_earlier_ones_in_any_case_of_letters() {
        let mut fields = Fields::default();
        fields.add(b"X-A", b"1").unwrap();
        fields.add(b"x-a", b"2").unwrap();
        fields.add(b"X-B", b"3").unwrap();
        fields.set(b"X-a", b" 4 ").unwrap();
        assert_eq!(list(&fields), [("X-B", "3"), ("X-a", "4")]);
        assert_eq!(fields.set(b"X-B", b"a\nb"), Err(InvalidField));
        assert_eq!(list(&fields), [("X-B", "3"), ("X-a", "4")]);
    }

    #[test]
    fn what_would_end_a_line_or_a_name_never_passes() {
        let mut fields = Fields::default();
        for value in [&b"a\r\nSet-Cookie: b"[..], b"a\rb", b"a\nb", b"a\0b", b"\x7f", b"\x1b[0m"] {
            assert_eq!(fields.add(b"X", value), Err(InvalidField), "{value:?}");
        }
        for name in [&b""[..], b"a b", b"a:", b"a\r\nb", "ä".as_bytes(), b"a(b)"] {
            assert_eq!(fields.add(name, b"v"), Err(InvalidField), "{name:?}");
        }
        assert!(fields.is_empty());
        fields.add(b"X-Utf8", "ä\t€".as_bytes()).unwrap();
    }

    #[test]
    fn fields_of_the_connection_are_the_servers() {
        for name in OF_THE_CONNECTION {
            assert_eq!(
                Fields::default().add(name.to_uppercase().as_bytes(), b"x"),
                Err(InvalidField),
                "{name}"
            );
        }
        assert_eq!(Fields::default().add_trailer(b"Content-Length", b"1"), Err(InvalidField));
        assert_eq!(Fields::default().add_trailer(b"Trailer", b"X"), Err(InvalidField));
        assert_eq!(Fields::default().add_trailer(b"Digest", b"1"), Ok(()));
    }

    #[test]
    fn trailers_are_announced_by_name_in_lists() {
        let mut fields = Fields::default();
        fields.add(b"X-Trailer", b"c").unwrap();
        fields.add(b"Trailer", b"A , b").unwrap();
        fields.add(b"trailer", b"x-d").unwrap();
        for (name, announced) in [("a", true), ("B", true), ("X-D", true), ("c", false), ("", false)] {
            assert_eq!(fields.announces(name.as_bytes()), announced, "{name}");
        }
    }

    #[test]
    fn no_head_grows_beyond_its_bound() {
        let mut fields = Fields::default();
        assert_eq!(fields.add(b"X", &[b'v'; MOST_BYTES]), Err(InvalidField));
        let added = (0..).take_while(|_| fields.add(b"X", b"").is_ok()).count();
        assert_eq!(added, MOST_BYTES / (OVERHEAD + 1));
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_accepted_is_http(name: Vec<u8>, value: Vec<u8>) {
            if Fields::default().add(&name, &value).is_ok() {
                http::HeaderName::from_bytes(&name).unwrap();
                http::HeaderValue::from_bytes(value.trim_ascii()).unwrap();
            }
        }
    }
}
