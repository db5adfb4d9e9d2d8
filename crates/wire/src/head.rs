//! A request's head as it lies in a slot: the variables of the request, CGI-style (RFC 3875), and nothing else.
//!
//! ```text
//! u32  body length, low half     the body's length in bytes; all bits set: not known (chunked)
//! u32  body length, high half
//! u32  number of variables       the first `environment` of them are the site's `env`
//! u32  environment
//! then for each variable:
//!   u16  key        index into `names::WELL_KNOWN`, or 0xFFFF: the name follows
//!   u16  name length (0 with a key)
//!   u32  value length
//!   name bytes, NUL, value bytes, NUL        the NUL of the name only if there is a name
//! ```

use crate::names::{OTHER, WELL_KNOWN, key};

/// Bytes before the first variable.
pub(crate) const PREFIX: usize = 16;
/// Bytes before a variable's name.
pub(crate) const VARIABLE: usize = 8;
/// Variables that are looked at for a request line; a head that was tampered with may announce any number.
const MOST_VARIABLES: usize = 10_000;
const METHOD: u16 = key("REQUEST_METHOD");
const URI: u16 = key("REQUEST_URI");
const SCRIPT: u16 = key("SCRIPT_FILENAME");

/// Builds an encoded head. Reusable: [`HeadBuilder::reset`].
#[derive(Debug)]
pub struct HeadBuilder {
    bytes: Vec<u8>,
    variables: u32,
}

/// Variables that were encoded once, to be part of many heads.
#[derive(Debug)]
pub struct HeadBlock {
    bytes: Vec<u8>,
    variables: u32,
}

/// One variable of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable<'a> {
    /// [`OTHER`], or an index into [`WELL_KNOWN`].
    pub key: u16,
    /// Empty unless the key is [`OTHER`].
    pub name: &'a [u8],
    /// Followed by a NUL byte in memory.
    pub value: &'a [u8],
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLine {
    pub method: Vec<u8>,
    /// As the client sent it.
    pub uri: Vec<u8>,
    /// SCRIPT_FILENAME; empty if none is run.
    pub script: Vec<u8>,
}

/// An encoded head, read.
#[derive(Debug, Clone)]
pub struct Head<'a> {
    /// Bytes; `None`: not known beforehand.
    pub body_length: Option<u64>,
    /// How many of the first variables are the site's `env`.
    pub environment: usize,
    remaining: u32,
    bytes: &'a [u8],
}

impl Default for HeadBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl HeadBuilder {
    pub fn new() -> Self {
        let mut builder = Self { bytes: Vec::with_capacity(2048), variables: 0 };
        builder.reset();
        builder
    }

    /// Starts the next head.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.bytes.resize(PREFIX, 0);
        self.variables = 0;
    }

    /// Marks all variables so far as the site's `env`.
    pub fn end_environment(&mut self) {
        self.bytes[12..16].copy_from_slice(&self.variables.to_le_bytes());
    }

    /// Adds a variable with a well-known name.
    pub fn known(&mut self, key: u16, value: &[u8]) {
        debug_assert!((key as usize) < WELL_KNOWN.len());
        self.start(key, 0, value.len());
        self.push_terminated(value);
    }

    /// Adds a variable by name; a well-known one may be given by name too. Names above 64 KiB are dropped.
    pub fn named(&mut self, name: &[u8], value: &[u8]) {
        let Ok(length) = u16::try_from(name.len()) else { return };
        self.start(OTHER, length, value.len());
        self.push_terminated(name);
        self.push_terminated(value);
    }

    /// Adds all variables of a block.
    pub fn block(&mut self, block: &HeadBlock) {
        self.variables += block.variables;
        self.bytes.extend_from_slice(&block.bytes);
    }

    /// All variables so far, as a block.
    pub fn into_block(self) -> HeadBlock {
        HeadBlock { bytes: self.bytes[PREFIX..].to_vec(), variables: self.variables }
    }

    /// The encoded head.
    pub fn build(&mut self, body_length: Option<u64>) -> &[u8] {
        self.bytes[0..8].copy_from_slice(&body_length.unwrap_or(u64::MAX).to_le_bytes());
        self.bytes[8..12].copy_from_slice(&self.variables.to_le_bytes());
        &self.bytes
    }

    fn start(&mut self, key: u16, name_length: u16, value_length: usize) {
        self.variables += 1;
        let fixed = u64::from(key) | u64::from(name_length) << 16 | (value_length as u64) << 32;
        self.bytes.extend_from_slice(&fixed.to_le_bytes());
    }

    fn push_terminated(&mut self, text: &[u8]) {
        // Once for both: this is done for every variable of every request.
        self.bytes.reserve(text.len() + 1);
        self.bytes.extend_from_slice(text);
        self.bytes.push(0);
    }
}

impl<'a> Head<'a> {
    /// A head without variables.
    pub(crate) const fn empty() -> Self {
        Self { body_length: Some(0), environment: 0, remaining: 0, bytes: &[] }
    }

    /// Reads the fixed part. `None` if the bytes are no head.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let prefix = bytes.get(..PREFIX)?;
        let body_length = u64::from_le_bytes(prefix[..8].try_into().ok()?);
        let word = |at: usize| prefix[at..at + 4].try_into().map(u32::from_le_bytes).ok();
        Some(Self {
            body_length: (body_length != u64::MAX).then_some(body_length),
            environment: word(12)? as usize,
            remaining: word(8)?,
            bytes: &bytes[PREFIX..],
        })
    }

    /// The value of a variable; one of the request goes before one of the site's `env`.
    pub fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        let mut of_environment = None;
        for (index, variable) in self.clone().enumerate() {
            if variable.full_name() == name {
                if index >= self.environment {
                    return Some(variable.value);
                }
                of_environment = Some(variable.value);
            }
        }
        of_environment
    }

    /// Name and value of the variables that are the request's, one after the other: `cursor` begins with 0. Any other
    /// number that was not left there reads nonsense, within the head.
    pub fn next_of_request(&self, cursor: &mut usize) -> Option<(&'a [u8], &'a [u8])> {
        let mut rest = self.clone();
        match *cursor {
            0 => rest.by_ref().take(self.environment).for_each(drop),
            read => rest.bytes = rest.bytes.get(read..)?,
        }
        let variable = rest.next()?;
        *cursor = self.bytes.len() - rest.bytes.len();
        Some((variable.full_name(), variable.value))
    }

    /// Makes a copy that [`Head::parse`] reads, in the place of what `copy` holds. The head must not have been read
    /// from.
    pub fn copy_to(&self, copy: &mut Vec<u8>) {
        copy.clear();
        copy.extend_from_slice(&self.body_length.unwrap_or(u64::MAX).to_le_bytes());
        copy.extend_from_slice(&self.remaining.to_le_bytes());
        copy.extend_from_slice(&(self.environment as u32).to_le_bytes());
        copy.extend_from_slice(self.bytes);
    }
}

impl<'a> Variable<'a> {
    /// The name, whether it has a key or not.
    pub fn full_name(&self) -> &'a [u8] {
        match WELL_KNOWN.get(usize::from(self.key)) {
            Some(name) => name.as_bytes(),
            None => self.name,
        }
    }
}

impl RequestLine {
    pub(crate) fn of(head: Head<'_>) -> Option<Self> {
        let mut line = Self { method: Vec::new(), uri: Vec::new(), script: Vec::new() };
        for variable in head.take(MOST_VARIABLES) {
            match variable.key {
                METHOD => line.method = variable.value.to_vec(),
                URI => line.uri = variable.value.to_vec(),
                SCRIPT => line.script = variable.value.to_vec(),
                _ => {}
            }
        }
        (!line.method.is_empty()).then_some(line)
    }
}

impl<'a> Iterator for Head<'a> {
    type Item = Variable<'a>;

    fn next(&mut self) -> Option<Variable<'a>> {
        if self.remaining == 0 {
            return None;
        }
        self.remaining -= 1;
        let (fixed, rest) = self.bytes.split_at_checked(VARIABLE)?;
        let key = u16::from_le_bytes([fixed[0], fixed[1]]);
        let name_length = u16::from_le_bytes([fixed[2], fixed[3]]) as usize;
        let value_length = u32::from_le_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]) as usize;
        let (name, rest) = rest.split_at_checked(name_length)?;
        let rest = if key == OTHER { rest.get(1..)? } else { rest };
        let (value, rest) = rest.split_at_checked(value_length)?;
        self.bytes = rest.get(1..)?;
        Some(Variable { key, name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_is_read_back() {
        let mut builder = HeadBuilder::new();
        builder.named(b"APP_ENV", b"prod");
        builder.end_environment();
        builder.known(key("REQUEST_METHOD"), b"GET");
        builder.named(b"HTTP_X_EMPTY", b"");
        let head = Head::parse(builder.build(Some(7))).unwrap();
        assert_eq!((head.body_length, head.environment), (Some(7), 1));
        let values: Vec<_> = head.map(|v| (v.key, v.name, v.value)).collect();
        assert_eq!(
            values,
            [
                (OTHER, &b"APP_ENV"[..], &b"prod"[..]),
                (key("REQUEST_METHOD"), b"", b"GET"),
                (OTHER, b"HTTP_X_EMPTY", b"")
            ]
        );
        builder.reset();
        assert_eq!(Head::parse(builder.build(None)).unwrap().body_length, None);
    }

    #[test]
    fn a_block_is_as_its_variables() {
        let mut block = HeadBuilder::new();
        block.known(key("SERVER_PORT"), b"80");
        let mut builder = HeadBuilder::new();
        builder.known(key("REQUEST_METHOD"), b"GET");
        builder.block(&block.into_block());
        let head = Head::parse(builder.build(None)).unwrap();
        assert_eq!(head.map(|v| v.value).collect::<Vec<_>>(), [b"GET", &b"80"[..]]);
    }

    #[test]
    fn a_request_goes_before_the_sites_environment() {
        let mut builder = HeadBuilder::new();
        builder.named(b"REMOTE_ADDR", b"spoofed");
        builder.named(b"APP_ENV", b"prod");
        builder.end_environment();
        builder.known(key("REMOTE_ADDR"), b"127.0.0.1");
        builder.named(b"HTTP_X_A", b"1");
        let mut copy = vec![1];
        Head::parse(builder.build(None)).unwrap().copy_to(&mut copy);
        let head = Head::parse(&copy).unwrap();
        let value = |name: &str| head.value(name.as_bytes());
        assert_eq!((value("REMOTE_ADDR"), value("APP_ENV")), (Some(&b"127.0.0.1"[..]), Some(&b"prod"[..])));
        assert_eq!((value("HTTP_X_A"), value("HTTP_X_B")), (Some(&b"1"[..]), None));
        let mut cursor = 0;
        let own: Vec<_> = std::iter::from_fn(|| head.next_of_request(&mut cursor)).collect();
        assert_eq!(own, [(&b"REMOTE_ADDR"[..], &b"127.0.0.1"[..]), (b"HTTP_X_A", b"1")]);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_and_cursors_never_panic(bytes: Vec<u8>, mut cursor: usize) {
            if let Some(head) = Head::parse(&bytes) {
                head.value(b"X");
                head.next_of_request(&mut cursor);
                cursor %= bytes.len() + 1;
                head.next_of_request(&mut cursor);
                head.take(1000).for_each(drop);
            }
        }
    }
}
