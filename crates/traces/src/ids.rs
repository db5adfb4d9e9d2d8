//! Identifiers of traces and spans (Trace Context §3.2.2.3, §3.2.2.4).

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Of all that happens because of one request, in whatever process. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Of one step in it. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// A new one. Unique, from the standard library's randomly keyed hashers; not meant as a secret.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random());
        bytes[8..].copy_from_slice(&random());
        Self(bytes)
    }

    /// `None` for anything but 32 digits in lower case that are not all zero.
    pub(crate) fn parse(digits: &[u8]) -> Option<Self> {
        hex(digits).map(Self)
    }

    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// As implementations sample by it: so much that one trace is sampled everywhere or nowhere.
    pub(crate) fn low_half(&self) -> u64 {
        let [_, _, _, _, _, _, _, _, low @ ..] = self.0;
        u64::from_be_bytes(low)
    }
}

impl SpanId {
    /// As [`TraceId::random`].
    pub fn random() -> Self {
        Self(random())
    }

    pub(crate) fn parse(digits: &[u8]) -> Option<Self> {
        hex(digits).map(Self)
    }

    pub fn bytes(&self) -> [u8; 8] {
        self.0
    }
}

/// Not all zeros.
fn random() -> [u8; 8] {
    (RandomState::new().build_hasher().finish() | 1).to_be_bytes()
}

/// Bytes that are not all zero.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    bytes.iter().any(|byte| *byte != 0).then_some(bytes)
}

pub(crate) fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        // Capitals are invalid (Trace Context §3.2.2).
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

/// At once: most requests are not sampled, and this is much of what their trace costs.
fn write(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 2 * size_of::<TraceId>()];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
    }
    let text = std::str::from_utf8(&text[..2 * bytes.len()]);
    f.write_str(text.expect("invariant: digits are ASCII"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&self.0, f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&self.0, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_are_the_same_and_each_is_read_as_it_is_written() {
        let mut traces = HashSet::new();
        let mut spans = HashSet::new();
        for _ in 0..10_000 {
            let (trace, span) = (TraceId::random(), SpanId::random());
            assert_eq!(TraceId::parse(trace.to_string().as_bytes()), Some(trace));
            assert_eq!(SpanId::parse(span.to_string().as_bytes()), Some(span));
            assert!(traces.insert(trace) && spans.insert(span));
        }
    }

    #[test]
    fn nothing_but_digits_in_lower_case_is_one() {
        let bad = [
            "",
            "0000000000000000",
            "00000000000000A1",
            "00000000000000g1",
            "0000000000001",
            "0x00000000000001",
        ];
        for digits in bad {
            assert_eq!(SpanId::parse(digits.as_bytes()), None, "{digits}");
        }
        assert_eq!(
            SpanId::parse(b"00000000000000a1").map(|id| id.bytes()),
            Some([0, 0, 0, 0, 0, 0, 0, 0xa1])
        );
    }
}
