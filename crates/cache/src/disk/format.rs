//! A stored response as a file: a heading of fixed length, the body, and what is known of it.
//!
//! | bytes | |
//! |---|---|
//! | 8 | what the file is, and the version of its format |
//! | 8 | length of the body |
//! | 4 | CRC-32 of the body |
//! | 4 | length of what is known of it |
//! | 4 | CRC-32 of that |
//! | 4 | CRC-32 of the heading until here |
//!
//! Numbers are little-endian. The sums tell a file that was torn by a crash or a bad disk; nobody but the server can write one.

use crate::key::{self, Key};
use crate::policy::Terms;
use crate::selection::Selection;
use crate::stored::{Stored, StoredBody};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// Changed whenever what follows is read otherwise: files of another version are as torn ones.
const KIND: [u8; 8] = *b"RegentC\x01";
const HEADING: usize = 32;
/// Where the body begins.
pub(super) const BODY: u64 = HEADING as u64;
/// Heads of responses are bounded far below.
const MOST_KNOWN: u32 = 4 << 20;

/// What a file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) body: u64,
    pub(super) body_sum: u32,
    known: u32,
    known_sum: u32,
}

/// What is known of a response but its body.
#[derive(Serialize, Deserialize)]
pub(super) struct Known {
    url: String,
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    base: Vec<u8>,
    varied: Vec<(String, Vec<u8>)>,
    terms: Terms,
}

/// [`Known`] as it stands in a file.
pub(super) struct Encoded(Vec<u8>);

impl Heading {
    /// The length of the whole file.
    fn length(&self) -> u64 {
        BODY + self.body + u64::from(self.known)
    }

    fn bytes(&self) -> [u8; HEADING] {
        let mut bytes = [0; HEADING];
        bytes[..8].copy_from_slice(&KIND);
        bytes[8..16].copy_from_slice(&self.body.to_le_bytes());
        for (at, part) in [(16, self.body_sum), (20, self.known), (24, self.known_sum)] {
            bytes[at..at + 4].copy_from_slice(&part.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8; HEADING]) -> Option<Self> {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..8] != KIND || number(28) != crc32fast::hash(&bytes[..28]) {
            return None;
        }
        let body = u64::from(number(8)) | u64::from(number(12)) << 32;
        Some(Self { body, body_sum: number(16), known: number(20), known_sum: number(24) })
    }
}

impl Known {
    pub(super) fn new(key: &Key, stored: &Stored) -> Self {
        let text = |name: &HeaderName| name.as_str().to_owned();
        let (base, varied) = stored.selection.parts();
        Self {
            url: key.url().to_owned(),
            status: stored.status.as_u16(),
            headers: stored
                .headers
                .iter()
                .map(|(name, value)| (text(name), value.as_bytes().to_vec()))
                .collect(),
            base: base.to_vec(),
            varied: varied.iter().map(|(name, value)| (text(name), value.to_vec())).collect(),
            terms: stored.terms.clone(),
        }
    }

    pub(super) fn encoded(&self) -> io::Result<Encoded> {
        let known = postcard::to_allocvec(self).map_err(io::Error::other)?;
        match known.len() <= MOST_KNOWN as usize {
            true => Ok(Encoded(known)),
            false => Err(io::Error::other("the head of the response is too large")),
        }
    }

    /// The response, with a body that is found elsewhere. `None`: it is no response.
    pub(super) fn with(self, body: StoredBody) -> Option<(Key, Stored)> {
        let name = |name: &str| HeaderName::try_from(name).ok();
        let key = Key::of_url(&self.url).filter(|_| self.url.len() <= 2 * key::LONGEST)?;
        let mut headers = HeaderMap::with_capacity(self.headers.len().min(1024));
        for (field, value) in &self.headers {
            headers.try_append(name(field)?, HeaderValue::from_bytes(value).ok()?).ok()?;
        }
        let varied = self.varied.iter().map(|(field, value)| Some((name(field)?, value.as_slice().into())));
        let selection = Selection::of_parts(self.base.into(), varied.collect::<Option<_>>()?);
        let terms = self.terms.is_sound().then_some(self.terms)?;
        let stored = Stored::again(StatusCode::from_u16(self.status).ok()?, headers, body, terms, selection)?;
        Some((key, stored))
    }
}

/// The length of a whole file.
pub(super) fn length(body: u64, known: &Encoded) -> u64 {
    BODY + body + known.0.len() as u64
}

/// Completes a file whose body has been written.
pub(super) fn finish(file: &File, body: u64, body_sum: u32, Encoded(known): &Encoded) -> io::Result<()> {
    let heading = Heading { body, body_sum, known: known.len() as u32, known_sum: crc32fast::hash(known) };
    file.write_all_at(known, BODY + body)?;
    file.write_all_at(&heading.bytes(), 0)
}

/// What a file says of itself and of its response, if both are whole, and the file as long as it should be.
pub(super) fn read(file: &File) -> io::Result<(Heading, Known)> {
    let mut heading = [0; HEADING];
    file.read_exact_at(&mut heading, 0)?;
    let heading = Heading::of(&heading).ok_or_else(torn)?;
    if heading.known > MOST_KNOWN || file.metadata()?.len() != heading.length() {
        return Err(torn());
    }
    let mut known = vec![0; heading.known as usize];
    file.read_exact_at(&mut known, BODY + heading.body)?;
    if crc32fast::hash(&known) != heading.known_sum {
        return Err(torn());
    }
    Ok((heading, postcard::from_bytes(&known).map_err(|_| torn())?))
}

/// The error of a file that is not whole.
pub(super) fn torn() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the file is not whole")
}
