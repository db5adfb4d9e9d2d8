//! What the keys of tickets are derived from, as it lies in the store.

use crate::store::Store;
use crate::{Error, crypto};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Ours; Caddy's own (`stek/`) is in a format of Go.
const FILE: &str = "session_tickets/keys.json";

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret {
    /// In seconds since 1970.
    pub created: i64,
    pub bytes: [u8; 32],
}

/// Without the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("created", &self.created).finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
struct Content {
    keys: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    created: i64,
    secret: String,
}

/// The newest first. Damaged content is no content.
pub(super) fn load(store: &Store) -> Result<Vec<Secret>, Error> {
    let Some(bytes) = store.read(FILE)? else { return Ok(Vec::new()) };
    let secrets = serde_json::from_slice::<Content>(&bytes).ok().and_then(|content| secrets_of(&content));
    Ok(secrets.unwrap_or_else(|| {
        tracing::warn!(file = %store.path(FILE).display(), "replaced damaged keys of session tickets");
        Vec::new()
    }))
}

fn secrets_of(content: &Content) -> Option<Vec<Secret>> {
    let mut secrets: Vec<_> = content
        .keys
        .iter()
        .map(|entry| {
            Some(Secret { created: entry.created, bytes: crypto::from_hex(&entry.secret)?.try_into().ok()? })
        })
        .collect::<Option<_>>()?;
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.created));
    Some(secrets)
}

pub(super) fn save(store: &Store, secrets: &[Secret]) -> Result<(), Error> {
    let entry = |secret: &Secret| Entry { created: secret.created, secret: crypto::hex(&secret.bytes) };
    let content = Content { keys: secrets.iter().map(entry).collect() };
    let json = serde_json::to_vec_pretty(&content).expect("invariant: numbers and strings are JSON");
    store.write(FILE, &json)
}
