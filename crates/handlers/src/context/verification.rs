//! A password that has to be checked before a request goes on.

use argon2::Argon2;
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// Passwords that are remembered for each directive.
const MOST: usize = 1024;

/// A password and the hash that it has to have. Checking takes CPU for as long as the hash says, up to seconds.
pub struct Verification {
    pub(crate) credentials: Credentials,
    pub(crate) password: Vec<u8>,
    pub(crate) hash: String,
    /// Who would be let in; `None`: nobody has the name, which is not to be told by the time that the answer takes.
    pub(crate) user: Option<String>,
    pub(crate) accepted: Arc<Accepted>,
}

/// Stands for a user, a hash and a password. It is of no use to anybody else: its keys never leave this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credentials(u64, u64);

/// What checking came to.
#[derive(Debug, Clone)]
pub struct Verified {
    pub(crate) credentials: Credentials,
    pub(crate) is_right: bool,
}

/// Credentials that were right.
pub(crate) struct Accepted {
    keys: [RandomState; 2],
    known: Mutex<Vec<Credentials>>,
}

impl Verification {
    /// Blocks for as long as that takes.
    pub fn run(self) -> Verified {
        let is_right = is_of(&self.hash, &self.password) && self.user.is_some();
        if is_right {
            self.accepted.add(self.credentials);
        }
        Verified { credentials: self.credentials, is_right }
    }
}

/// The configuration has seen that it is a hash of one of these.
fn is_of(hash: &str, password: &[u8]) -> bool {
    match hash.starts_with("$argon2id$") {
        true => PasswordHash::new(hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
        false => bcrypt::verify(password, hash).unwrap_or(false),
    }
}

/// Without the password.
impl fmt::Debug for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Default for Accepted {
    fn default() -> Self {
        Self { keys: [RandomState::new(), RandomState::new()], known: Mutex::default() }
    }
}

impl Accepted {
    pub(crate) fn credentials(&self, user: &[u8], hash: &str, password: &[u8]) -> Credentials {
        let [one, other] = self.keys.each_ref().map(|key| key.hash_one((user, hash, password)));
        Credentials(one, other)
    }

    pub(crate) fn has(&self, credentials: Credentials) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(&credentials)
    }

    fn add(&self, credentials: Credentials) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == MOST {
            known.remove(0);
        }
        known.push(credentials);
    }
}
