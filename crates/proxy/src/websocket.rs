//! The handshake of WebSocket that this server makes itself (RFC 6455 §4.1): a client that opens a stream for it (RFC 8441 §5) has
//! no key, and an upstream that speaks HTTP/1.1 wants one.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::hash::{BuildHasher, RandomState};

/// RFC 6455 §1.3.
const OF_ALL_SERVERS: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What an upstream has to answer, so that none is taken for WebSocket that speaks something else. It is no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    pub fn new() -> Self {
        let chance = RandomState::new();
        let bytes = [chance.hash_one(0_u8).to_ne_bytes(), chance.hash_one(1_u8).to_ne_bytes()].concat();
        Self(STANDARD.encode(bytes))
    }

    pub fn field(&self) -> (HeaderName, HeaderValue) {
        let value = HeaderValue::try_from(&self.0).expect("invariant: letters and digits make a value");
        (header::SEC_WEBSOCKET_KEY, value)
    }

    /// Whether this is the head of a response to it.
    pub fn is_answered_by(&self, head: &HeaderMap) -> bool {
        let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{}{OF_ALL_SERVERS}", self.0).as_bytes());
        head.get(header::SEC_WEBSOCKET_ACCEPT).is_some_and(|answer| *answer == STANDARD.encode(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That of RFC 6455 §1.3.
    #[test]
    fn an_answer_belongs_to_its_key() {
        let key = Key("dGhlIHNhbXBsZSBub25jZQ==".into());
        let answer =
            |value| HeaderMap::from_iter([(header::SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static(value))]);
        assert!(key.is_answered_by(&answer("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
        assert!(!key.is_answered_by(&answer("S3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
        assert!(!key.is_answered_by(&HeaderMap::new()));
    }

    #[test]
    fn each_handshake_has_a_key_of_its_own() {
        let (one, other) = (Key::new(), Key::new());
        assert_ne!(one, other);
        assert_eq!(STANDARD.decode(one.0).unwrap().len(), 16);
    }
}
