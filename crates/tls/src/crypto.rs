//! The one crypto provider.

use crate::policy::{Curve, key_exchange_groups};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::sync::Arc;

/// Post-quantum key exchange first (feature `prefer-post-quantum` of rustls).
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// The same with these key exchanges alone, unless there are none.
pub(crate) fn provider_with(curves: &[Curve]) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { kx_groups: key_exchange_groups(curves), ..aws_lc_rs::default_provider() })
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    aws_lc_rs_random(&mut bytes);
    bytes
}

fn aws_lc_rs_random(bytes: &mut [u8]) {
    ::aws_lc_rs::rand::fill(bytes).expect("invariant: the kernel has random bytes");
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = ::aws_lc_rs::digest::digest(&::aws_lc_rs::digest::SHA256, bytes);
    digest.as_ref().try_into().expect("invariant: SHA-256 has 32 bytes")
}

/// HMAC-SHA-256 in hexadecimal: nobody without the key can make it.
pub fn keyed_digest(key: &[u8], bytes: &[u8]) -> String {
    let key = ::aws_lc_rs::hmac::Key::new(::aws_lc_rs::hmac::HMAC_SHA256, key);
    hex(::aws_lc_rs::hmac::sign(&key, bytes).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `None` of what [`hex`] does not write.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
