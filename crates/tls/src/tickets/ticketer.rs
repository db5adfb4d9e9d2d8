//! Encrypts the tickets of one class of client authentication.

use super::secrets::Secret;
use crate::client_auth::ClientAuthClass;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use rustls::server::ProducesTickets;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Says which key a ticket is of.
const NAME: usize = 16;

/// Tickets are the key's name, a nonce, and the sealed session (RFC 5077 §4, with AES-256-GCM).
pub(crate) struct Ticketer {
    class: ClientAuthClass,
    lifetime: u32,
    /// The newest first.
    keys: RwLock<Arc<Vec<Key>>>,
}

struct Key {
    name: [u8; NAME],
    key: RandomizedNonceKey,
}

impl Ticketer {
    /// `lifetime` in seconds.
    pub(super) fn new(class: ClientAuthClass, lifetime: u32, secrets: &[Secret]) -> Self {
        Self { class, lifetime, keys: RwLock::new(derive_all(class, secrets)) }
    }

    pub(super) fn replace(&self, secrets: &[Secret]) {
        let keys = derive_all(self.class, secrets);
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    fn keys(&self) -> Arc<Vec<Key>> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn derive_all(class: ClientAuthClass, secrets: &[Secret]) -> Arc<Vec<Key>> {
    Arc::new(secrets.iter().map(|secret| Key::derive(class, secret)).collect())
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl Key {
    /// Of the same secret, no class can compute the key of another.
    fn derive(class: ClientAuthClass, secret: &Secret) -> Self {
        let mut bytes = [0; NAME + 32];
        Salt::new(HKDF_SHA256, b"regent session ticket")
            .extract(&secret.bytes)
            .expand(&[class.as_bytes()], Length(bytes.len()))
            .and_then(|okm| okm.fill(&mut bytes))
            .expect("invariant: HKDF has more output than that");
        let (name, key) = bytes.split_at(NAME);
        Self {
            name: name.try_into().expect("invariant: split there"),
            key: RandomizedNonceKey::new(&AES_256_GCM, key).expect("invariant: 32 bytes are a key"),
        }
    }

    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = plain.to_vec();
        let nonce = self.key.seal_in_place_append_tag(Aad::from(self.name), &mut sealed).ok()?;
        Some([&self.name, &nonce.as_ref()[..], &sealed].concat())
    }

    fn open(&self, nonce: [u8; NONCE_LEN], sealed: &[u8]) -> Option<Vec<u8>> {
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let length = self.key.open_in_place(nonce, Aad::from(self.name), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.lifetime
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys().first()?.seal(plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        self.keys().iter().find(|key| key.name == *name)?.open(*nonce, sealed)
    }
}

/// Without the keys.
impl fmt::Debug for Ticketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticketer").field("class", &self.class).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ticketer(class: ClientAuthClass) -> Ticketer {
        Ticketer::new(class, 60, &[Secret { created: 0, bytes: [7; 32] }])
    }

    #[test]
    fn a_changed_ticket_is_refused_wherever_it_is_changed() {
        let ticketer = ticketer(ClientAuthClass::NONE);
        let ticket = ticketer.encrypt(b"session").unwrap();
        for index in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[index] ^= 1;
            assert!(ticketer.decrypt(&changed).is_none(), "byte {index}");
            assert!(ticketer.decrypt(&ticket[..index]).is_none(), "{index} bytes");
        }
    }

    #[test]
    fn classes_do_not_read_each_others_tickets() {
        let ticket = ticketer(ClientAuthClass::NONE).encrypt(b"session").unwrap();
        assert!(ticketer(ClientAuthClass::of(b"something else")).decrypt(&ticket).is_none());
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened(plain in prop::collection::vec(any::<u8>(), 0..2000)) {
            let ticketer = ticketer(ClientAuthClass::NONE);
            prop_assert_eq!(ticketer.decrypt(&ticketer.encrypt(&plain).unwrap()), Some(plain));
        }

        #[test]
        fn no_garbage_is_opened(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(ticketer(ClientAuthClass::NONE).decrypt(&garbage), None);
        }
    }
}
