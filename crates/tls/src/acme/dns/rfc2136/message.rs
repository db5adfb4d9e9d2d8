//! What goes over the wire: questions and updates of one record, and responses to them (RFC 1035 §4, RFC 2136 §2).

use super::tsig::{self, Signer};
use crate::crypto;
use std::fmt;

pub(super) const SOA: u16 = 6;
const TXT: u16 = 16;
pub(super) const TSIG: u16 = 250;

const IN: u16 = 1;
const NONE: u16 = 254;
pub(super) const ANY: u16 = 255;

/// Of opcode UPDATE.
const UPDATE: u16 = 5 << 11;
/// A response, and its opcode and code.
const RESPONSE: u16 = 0x8000;
const CODE: u16 = 0x000f;

pub(super) const HEADER: usize = 12;
/// The number of records in the last section.
pub(super) const ADDITIONAL: usize = 10;
/// Seconds that a record may be kept by others, unless the configuration says otherwise.
pub(super) const TTL: u32 = 60;
/// Compression pointers that are followed in one name; each has to point back (RFC 1035 §4.1.4).
const MOST_POINTERS: usize = 32;

const NXDOMAIN: u16 = 3;

/// In lower case; without labels it is the root.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Name(Vec<Vec<u8>>);

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// For so many seconds it may be kept by others.
    Add {
        ttl: u32,
    },
    Remove,
}

/// Without what signs it.
pub(super) struct Message {
    pub id: u16,
    flags: u16,
    /// Of the question, or the zone.
    name: Name,
    kind: u16,
    update: Option<Vec<u8>>,
}

impl Name {
    /// A name in text, with or without the dot at its end.
    pub fn parse(text: &str) -> Result<Self, String> {
        let labels: Vec<_> = text.trim_end_matches('.').split('.').collect();
        let is_fit = |label: &str| (1..=63).contains(&label.len()) && label.is_ascii();
        let length: usize = labels.iter().map(|label| label.len() + 1).sum();
        if !labels.iter().all(|label| is_fit(label)) || length > 254 {
            return Err(format!("cannot be told of {text:?}, which is no name of DNS"));
        }
        Ok(Self(labels.iter().map(|label| label.to_ascii_lowercase().into_bytes()).collect()))
    }

    /// Itself, and then each name above it but the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        (0..self.0.len()).map(|skipped| Self(self.0[skipped..].to_vec()))
    }

    pub fn is_below(&self, zone: &Self) -> bool {
        !zone.0.is_empty() && self.0.ends_with(&zone.0)
    }

    /// Without compression, in lower case: as it is signed (RFC 8945 §4.3.3), too.
    pub fn write(&self, to: &mut Vec<u8>) {
        for label in &self.0 {
            to.push(u8::try_from(label.len()).expect("invariant: 63 at most"));
            to.extend(label);
        }
        to.push(0);
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for label in &self.0 {
            write!(f, "{}.", label.escape_ascii())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(super) fn question(name: &Name, kind: u16) -> Message {
    Message { id: id(), flags: 0, name: name.clone(), kind, update: None }
}

/// RFC 2136 §2.5.1 and §2.5.4.
pub(super) fn update(zone: &Name, name: &Name, value: &str, change: Change) -> Message {
    let (class, ttl) = match change {
        Change::Add { ttl } => (IN, ttl),
        Change::Remove => (NONE, 0),
    };
    let value = value.as_bytes();
    let mut record = Vec::new();
    name.write(&mut record);
    record.extend([TXT, class].iter().flat_map(|number| number.to_be_bytes()));
    record.extend(ttl.to_be_bytes());
    // That of a challenge is 43 bytes long (RFC 8555 §8.4).
    let length = u8::try_from(value.len()).unwrap_or(u8::MAX);
    record.extend((u16::from(length) + 1).to_be_bytes());
    record.push(length);
    record.extend(&value[..usize::from(length)]);
    Message { id: id(), flags: UPDATE, name: zone.clone(), kind: SOA, update: Some(record) }
}

fn id() -> u16 {
    u16::from_be_bytes(crypto::random())
}

impl Message {
    pub fn bytes(&self) -> Vec<u8> {
        let updates = u16::from(self.update.is_some());
        let mut bytes = Vec::new();
        bytes.extend([self.id, self.flags, 1, 0, updates, 0].iter().flat_map(|number| number.to_be_bytes()));
        self.name.write(&mut bytes);
        bytes.extend([self.kind, IN].iter().flat_map(|number| number.to_be_bytes()));
        bytes.extend(self.update.iter().flatten());
        bytes
    }
}

/// A response.
pub(super) struct Reader {
    pub bytes: Vec<u8>,
    pub records: Vec<Record>,
}

/// A record of a response.
#[derive(Debug)]
pub(super) struct Record {
    pub name: Name,
    pub kind: u16,
    /// Where it begins, and where its data are.
    pub start: usize,
    pub data: std::ops::Range<usize>,
}

impl Reader {
    /// # Errors
    /// If it is none to the message with this id, or cannot be read.
    pub fn new(bytes: Vec<u8>, id: u16) -> Result<Self, String> {
        let records = read_records(&bytes).ok_or("sent a response that cannot be read")?;
        let reader = Self { bytes, records };
        if reader.number(0) != Some(id) || reader.flags() & RESPONSE == 0 {
            return Err("sent something else than the response".to_owned());
        }
        Ok(reader)
    }

    /// # Errors
    /// If the server refuses. That a name is not there is no error: its zone stands in the response.
    pub fn check(&self, signer: Option<&Signer>) -> Result<(), String> {
        let code = self.flags() & CODE;
        if matches!(code, 0 | NXDOMAIN) {
            return Ok(());
        }
        match self.tsig_error() {
            Some(error) if error != 0 && signer.is_some() => Err(tsig::reason(error)),
            _ => Err(reason(code, signer.is_some())),
        }
    }

    /// The zone that the server tells of.
    pub fn soa_owner(&self) -> Result<Option<Name>, String> {
        let soa = self.records.iter().find(|record| record.kind == SOA);
        Ok(soa.map(|record| record.name.clone()))
    }

    /// The last record, if it is a signature.
    pub fn tsig(&self) -> Option<&Record> {
        self.records.last().filter(|record| record.kind == TSIG)
    }

    fn tsig_error(&self) -> Option<u16> {
        tsig::Fields::read(&self.bytes, self.tsig()?).map(|fields| fields.error)
    }

    fn flags(&self) -> u16 {
        self.number(2).unwrap_or_default()
    }

    fn number(&self, at: usize) -> Option<u16> {
        number(&self.bytes, at)
    }
}

pub(super) fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Those of all sections but the first.
fn read_records(bytes: &[u8]) -> Option<Vec<Record>> {
    let counts = [6, 8, ADDITIONAL].map(|at| number(bytes, at).map(usize::from));
    let mut at = HEADER;
    for _ in 0..number(bytes, 4)? {
        at = read_name(bytes, at)?.1 + 4;
    }
    let mut records = Vec::new();
    for _ in 0..counts.into_iter().sum::<Option<usize>>()? {
        let start = at;
        let (name, end) = read_name(bytes, at)?;
        let kind = number(bytes, end)?;
        let length = usize::from(number(bytes, end + 8)?);
        let data = end + 10..end + 10 + length;
        bytes.get(data.clone())?;
        at = data.end;
        records.push(Record { name, kind, start, data });
    }
    Some(records)
}

/// A name, and where it ends.
pub(super) fn read_name(bytes: &[u8], mut at: usize) -> Option<(Name, usize)> {
    let (mut labels, mut end, mut pointers) = (Vec::new(), None, 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        match length {
            0 => return Some((Name(labels), end.unwrap_or(at + 1))),
            1..=63 => {
                labels.push(bytes.get(at + 1..at + 1 + length)?.to_ascii_lowercase());
                at += 1 + length;
            }
            0xc0.. => {
                end = end.or(Some(at + 2));
                let target = usize::from(number(bytes, at)? & 0x3fff);
                pointers += 1;
                if target >= at || pointers > MOST_POINTERS {
                    return None;
                }
                at = target;
            }
            _ => return None,
        }
    }
}

/// RFC 1035 §4.1.1, RFC 2136 §2.2.
fn reason(code: u16, is_signed: bool) -> String {
    let refused = if is_signed {
        "does not allow this with the key (REFUSED)"
    } else {
        "does not allow this without a key (REFUSED)"
    };
    match code {
        1 => "does not understand the message (FORMERR)".to_owned(),
        2 => "has failed (SERVFAIL); its log may say why".to_owned(),
        4 => "takes no updates (NOTIMP)".to_owned(),
        5 => refused.to_owned(),
        9 => "is not the primary server of the zone, or does not accept the key (NOTAUTH)".to_owned(),
        10 => "says that the name is not in the zone (NOTZONE)".to_owned(),
        code => format!("has refused with the code {code}"),
    }
}
