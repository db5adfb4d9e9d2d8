//! Identifiers of requests.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Unique among all requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Uuid(u128);

impl Uuid {
    /// Version 4 (RFC 9562 §5.4). Unique, from the standard library's randomly keyed hashers; not meant as a secret.
    pub(crate) fn new() -> Self {
        let random = || u128::from(RandomState::new().build_hasher().finish());
        let bits = random() << 64 | random();
        Self(bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62)
    }
}

impl std::fmt::Display for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}
