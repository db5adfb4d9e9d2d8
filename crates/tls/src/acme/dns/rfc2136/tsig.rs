//! Signatures with a key that both ends know (RFC 8945).

use super::message::{ADDITIONAL, ANY, HEADER, Name, Reader, Record, TSIG, number, read_name};
use crate::acme::options::{TsigAlgorithm, TsigKey};
use aws_lc_rs::hmac;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds by which the clocks of both ends may differ (§10).
const FUDGE: u16 = 300;

pub(super) struct Signer {
    name: Name,
    algorithm: Name,
    key: hmac::Key,
}

/// What a signature says of itself.
pub(super) struct Fields<'a> {
    algorithm: Name,
    original_id: &'a [u8],
    time: u64,
    fudge: u16,
    mac: &'a [u8],
    pub error: u16,
    other: &'a [u8],
}

impl Signer {
    pub fn new(key: &TsigKey) -> Result<Self, String> {
        let (algorithm, name) = match key.algorithm {
            TsigAlgorithm::HmacSha1 => (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, "hmac-sha1"),
            TsigAlgorithm::HmacSha224 => (hmac::HMAC_SHA224, "hmac-sha224"),
            TsigAlgorithm::HmacSha256 => (hmac::HMAC_SHA256, "hmac-sha256"),
            TsigAlgorithm::HmacSha384 => (hmac::HMAC_SHA384, "hmac-sha384"),
            TsigAlgorithm::HmacSha512 => (hmac::HMAC_SHA512, "hmac-sha512"),
        };
        let key_name = Name::parse(&key.name)?;
        let key = hmac::Key::new(algorithm, &key.secret);
        Ok(Self { name: key_name, algorithm: Name::parse(name)?, key })
    }

    /// Appends the signature, which is returned too.
    pub fn sign(&self, message: &mut Vec<u8>) -> Vec<u8> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.sign_at(message, now)
    }

    pub fn sign_at(&self, message: &mut Vec<u8>, time: u64) -> Vec<u8> {
        let id = [message[0], message[1]];
        let algorithm = self.algorithm.clone();
        let fields =
            Fields { algorithm, original_id: &id, time, fudge: FUDGE, mac: &[], error: 0, other: &[] };
        let mac = hmac::sign(&self.key, &[&message[..], &self.variables(&fields)].concat()).as_ref().to_vec();
        self.name.write(message);
        message.extend([TSIG, ANY].iter().flat_map(|number| number.to_be_bytes()));
        message.extend(0_u32.to_be_bytes());
        let mut data = Vec::new();
        self.algorithm.write(&mut data);
        data.extend(&time.to_be_bytes()[2..]);
        data.extend(FUDGE.to_be_bytes());
        data.extend(length(&mac).to_be_bytes());
        data.extend(&mac);
        data.extend(id);
        data.extend([0; 4]);
        message.extend(length(&data).to_be_bytes());
        message.extend(data);
        let additional = number(message, ADDITIONAL).unwrap_or_default() + 1;
        message[ADDITIONAL..ADDITIONAL + 2].copy_from_slice(&additional.to_be_bytes());
        mac
    }

    /// # Errors
    /// If the response is not of somebody who has the key, or not to the request with this signature.
    pub fn verify(&self, response: &Reader, request_mac: &[u8]) -> Result<(), String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.verify_at(response, request_mac, now)
    }

    pub fn verify_at(&self, response: &Reader, request_mac: &[u8], now: u64) -> Result<(), String> {
        let unsigned = || "sent a response without a signature".to_owned();
        let record = response.tsig().filter(|record| record.name == self.name).ok_or_else(unsigned)?;
        let fields = Fields::read(&response.bytes, record).ok_or_else(unsigned)?;
        // Neither is signed with the rest.
        let is_plain = response.bytes[record.data.start - 8..record.data.start - 2] == [0, 255, 0, 0, 0, 0];
        if fields.algorithm != self.algorithm || !is_plain {
            return Err(unsigned());
        }
        let mut signed = response.bytes[..record.start].to_vec();
        signed[..2].copy_from_slice(fields.original_id);
        let additional = number(&signed, ADDITIONAL).unwrap_or_default().saturating_sub(1);
        signed[ADDITIONAL..HEADER].copy_from_slice(&additional.to_be_bytes());
        let all =
            [&length(request_mac).to_be_bytes(), request_mac, &signed, &self.variables(&fields)].concat();
        hmac::verify(&self.key, &all, fields.mac)
            .map_err(|_| "sent a response with a false signature".to_owned())?;
        match now.abs_diff(fields.time) <= u64::from(fields.fudge) {
            true => Ok(()),
            false => Err("has another time than this machine; set the clocks".to_owned()),
        }
    }

    /// §4.3.3.
    fn variables(&self, fields: &Fields<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.name.write(&mut bytes);
        bytes.extend(ANY.to_be_bytes());
        bytes.extend(0_u32.to_be_bytes());
        self.algorithm.write(&mut bytes);
        bytes.extend(&fields.time.to_be_bytes()[2..]);
        bytes.extend(fields.fudge.to_be_bytes());
        bytes.extend(fields.error.to_be_bytes());
        bytes.extend(length(fields.other).to_be_bytes());
        bytes.extend(fields.other);
        bytes
    }
}

impl<'a> Fields<'a> {
    /// §4.2.
    pub fn read(bytes: &'a [u8], record: &Record) -> Option<Self> {
        let all = bytes.get(..record.data.end)?;
        let (algorithm, at) = read_name(all, record.data.start)?;
        let high = u64::from(number(all, at)?) << 32;
        let low = u64::from(number(all, at + 2)?) << 16 | u64::from(number(all, at + 4)?);
        let mac_end = at + 10 + usize::from(number(all, at + 8)?);
        let mac = all.get(at + 10..mac_end)?;
        let other_start = mac_end + 6;
        let other_length = usize::from(number(all, mac_end + 4)?);
        let other = all.get(other_start..other_start + other_length)?;
        Some(Self {
            algorithm,
            original_id: all.get(mac_end..mac_end + 2)?,
            time: high | low,
            fudge: number(all, at + 6)?,
            mac,
            error: number(all, mac_end + 2)?,
            other,
        })
    }
}

/// §3 and §5.2.
pub(super) fn reason(error: u16) -> String {
    match error {
        16 => "does not accept the signature: the key is another one there (BADSIG)".to_owned(),
        17 => "does not know the key, or not with this algorithm (BADKEY)".to_owned(),
        18 => "has another time than this machine; set the clocks (BADTIME)".to_owned(),
        error => format!("does not accept the signature (code {error})"),
    }
}

fn length(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).expect("invariant: within a message of 64 KiB")
}
