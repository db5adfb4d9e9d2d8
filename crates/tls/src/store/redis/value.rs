//! How a value is written: JSON about the bytes, which may be compressed and encrypted (`StorageData` of
//! caddy-storage-redis).

use crate::{Compression, RedisStorage, crypto};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::{DeflateDecoder, ZlibDecoder};
use flate2::write::{DeflateEncoder, ZlibEncoder};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read, Write};
use time::OffsetDateTime;

/// Of what comes out of compressed bytes, as there.
const MOST_BYTES: u64 = 4 << 20;

/// The numbers of `compression`.
const PLAIN: u8 = 0;
const FLATE: u8 = 1;
const ZLIB: u8 = 2;

pub(super) struct Codec {
    compression: Compression,
    /// AES-256-GCM.
    key: Option<LessSafeKey>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    /// In base64, as Go writes bytes.
    value: String,
    #[serde(with = "time::serde::rfc3339")]
    modified: OffsetDateTime,
    size: usize,
    #[serde(default)]
    compression: u8,
    #[serde(default)]
    encryption: u8,
}

impl Codec {
    pub fn of(options: &RedisStorage) -> Self {
        let key = options.encryption_key.map(|key| {
            LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("invariant: AES-256 takes 32 bytes"))
        });
        Self { compression: options.compression, key }
    }

    pub fn encode(&self, bytes: &[u8], modified: OffsetDateTime) -> Vec<u8> {
        let (compression, shorter) = self.compressed(bytes);
        let value = shorter.unwrap_or_else(|| bytes.to_vec());
        let (encryption, value) = match &self.key {
            Some(key) => (1, sealed(key, value)),
            None => (0, value),
        };
        let value = STANDARD.encode(value);
        serde_json::to_vec(&Stored { value, modified, size: bytes.len(), compression, encryption })
            .expect("invariant: numbers and ASCII are JSON")
    }

    pub fn decode(&self, stored: &[u8]) -> Result<Vec<u8>, String> {
        let stored: Stored = serde_json::from_slice(stored).map_err(|error| error.to_string())?;
        let mut value = STANDARD.decode(&stored.value).map_err(|error| error.to_string())?;
        if stored.encryption != 0 {
            let key = self.key.as_ref().ok_or("it is encrypted, and `encryption_key` is not set")?;
            value = opened(key, value).ok_or("it was encrypted with another `encryption_key`")?;
        }
        let decompressed = match stored.compression {
            PLAIN => Ok(value),
            FLATE => read_bounded(DeflateDecoder::new(&*value)),
            ZLIB => read_bounded(ZlibDecoder::new(&*value)),
            other => return Err(format!("its compression {other} is unknown")),
        };
        decompressed.map_err(|error| format!("it cannot be decompressed: {error}"))
    }

    /// `None` where that would be no shorter.
    fn compressed(&self, bytes: &[u8]) -> (u8, Option<Vec<u8>>) {
        let level = flate2::Compression::default;
        let (number, compressed) = match self.compression {
            Compression::None => return (PLAIN, None),
            Compression::Flate => {
                let mut encoder = DeflateEncoder::new(Vec::new(), level());
                (FLATE, encoder.write_all(bytes).and_then(|()| encoder.finish()))
            }
            Compression::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), level());
                (ZLIB, encoder.write_all(bytes).and_then(|()| encoder.finish()))
            }
        };
        match compressed {
            Ok(compressed) if compressed.len() < bytes.len() => (number, Some(compressed)),
            _ => (PLAIN, None),
        }
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").field("compression", &self.compression).finish_non_exhaustive()
    }
}

/// The nonce, the encrypted bytes, the tag.
fn sealed(key: &LessSafeKey, mut bytes: Vec<u8>) -> Vec<u8> {
    let nonce = crypto::random::<NONCE_LEN>();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut bytes)
        .expect("invariant: what is stored is far shorter than the 64 GiB that a nonce is good for");
    [&nonce[..], &bytes].concat()
}

fn opened(key: &LessSafeKey, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let nonce: [u8; NONCE_LEN] = bytes.get(..NONCE_LEN)?.try_into().ok()?;
    let sealed = bytes.split_off(NONCE_LEN);
    let mut sealed = sealed;
    let length =
        key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed).ok()?.len();
    sealed.truncate(length);
    Some(sealed)
}

fn read_bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it is larger than 4 MiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_redis::RedisServer;

    fn codec(compression: Compression, key: Option<[u8; 32]>) -> Codec {
        Codec::of(&RedisStorage {
            compression,
            encryption_key: key,
            ..RedisStorage::on(RedisServer::at("127.0.0.1", 1))
        })
    }

    #[test]
    fn what_is_written_is_read_in_every_form() {
        let bytes = "-----BEGIN CERTIFICATE-----\n".repeat(40);
        for compression in [Compression::None, Compression::Flate, Compression::Zlib] {
            for key in [None, Some([7; 32])] {
                let codec = codec(compression, key);
                let stored = codec.encode(bytes.as_bytes(), OffsetDateTime::now_utc());
                assert_eq!(codec.decode(&stored).unwrap(), bytes.as_bytes(), "{compression:?} {key:?}");
            }
        }
    }

    #[test]
    fn what_was_compressed_is_read_whatever_is_written_now() {
        let stored = codec(Compression::Zlib, None).encode(&[b'a'; 1000], OffsetDateTime::now_utc());
        assert!(stored.len() < 200);
        assert_eq!(codec(Compression::None, None).decode(&stored).unwrap(), [b'a'; 1000]);
    }

    #[test]
    fn a_value_as_go_writes_it_is_read() {
        let text = br#"{"value":"aGVsbG8=","modified":"2026-07-21T11:57:45.123456789+10:00","size":5,"compression":0,"encryption":0}"#;
        assert_eq!(codec(Compression::None, None).decode(text).unwrap(), b"hello");
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let secret = codec(Compression::None, Some([7; 32])).encode(b"key", OffsetDateTime::now_utc());
        let without = codec(Compression::None, None).decode(&secret).unwrap_err();
        assert!(without.contains("`encryption_key` is not set"), "{without}");
        let other = codec(Compression::None, Some([8; 32])).decode(&secret).unwrap_err();
        assert!(other.contains("another `encryption_key`"), "{other}");
        for hostile in [&b"{"[..], b"[]", br#"{"value":"!","modified":"2026-07-21T11:57:45Z","size":1}"#] {
            codec(Compression::None, None).decode(hostile).unwrap_err();
        }
    }

    #[test]
    fn a_small_value_that_would_fill_the_memory_is_refused() {
        let bomb = codec(Compression::Flate, None)
            .encode(&vec![0; MOST_BYTES as usize + 1], OffsetDateTime::now_utc());
        assert!(bomb.len() < 100_000);
        assert!(codec(Compression::None, None).decode(&bomb).unwrap_err().contains("4 MiB"));
    }
}
