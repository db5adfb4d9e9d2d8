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

    /// Nine of its bits' characters, none of which is taken for another, for errors (Caddy's caddyhttp/errors.go).
    pub(crate) fn short(self) -> String {
        const CHARACTERS: [char; 32] = [
            'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'm', 'n', 'p', 'q', 'r', 's', 't', 'u',
            'v', 'w', 'x', 'y', 'z', '2', '3', '4', '5', '6', '7', '8', '9',
        ];
        // The last bits, which are random, five a character.
        (0..9).map(|at| CHARACTERS[(self.0 >> (5 * at)) as usize % CHARACTERS.len()]).collect()
    }
}

impl std::fmt::Display for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}
