//! What proves to a CA that a name is ours, while an order is under way: in memory for this process, and in the storage
//! for others that the CA may reach instead (certmagic's `distributedSolver`).

use super::error::{OrderError, challenge_name};
use super::layout;
use super::options::ChallengeKind;
use crate::clock::RustlsClock;
use crate::store::Store;
use crate::{Clock, Error, crypto};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The application protocol of a CA that looks for a challenge (RFC 8737 §4).
pub(crate) const ALPN: &[u8] = b"acme-tls/1";

/// Of all names.
#[derive(Debug)]
pub(crate) struct Challenges {
    store: Store,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    presented: HashMap<String, Presented>,
    /// Names that other processes may have an order for, with the issuer keys of their CAs. For others no file is read,
    /// so that what clients ask for costs nothing.
    names: HashMap<String, BTreeSet<String>>,
    /// Issuer keys of CAs that may certify any name, on demand.
    any: BTreeSet<String>,
}

/// As certmagic writes it (`acme.Challenge` of acmez).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Presented {
    r#type: String,
    url: String,
    status: String,
    token: String,
    key_authorization: String,
    identifier: Identifier,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Identifier {
    r#type: String,
    value: String,
}

/// One that is to be met.
#[derive(Debug, Clone)]
pub(super) struct Challenge {
    pub kind: ChallengeKind,
    pub name: String,
    pub url: String,
    pub token: String,
    pub key_authorization: String,
}

/// Withdraws it when it is dropped.
#[derive(Debug)]
pub(super) struct Presentation {
    challenges: Arc<Challenges>,
    name: String,
    file: String,
}

impl Challenges {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { store, clock, known: Mutex::default() })
    }

    /// From now on challenges of other processes are met for this name.
    pub(super) fn expect(&self, name: &str, issuer_key: String) {
        self.known().names.entry(name.to_owned()).or_default().insert(issuer_key);
    }

    /// From now on challenges of other processes are met for all names.
    pub(super) fn expect_any(&self, issuer_key: String) {
        self.known().any.insert(issuer_key);
    }

    /// Blocks: it writes a file. Without it the CA finds the challenge at this process all the same.
    pub(super) fn present(self: &Arc<Self>, issuer_key: &str, challenge: Challenge) -> Presentation {
        let name = challenge.name.clone();
        let file = layout::challenge(issuer_key, &name);
        let presented = Presented::from(challenge);
        let json = serde_json::to_vec(&presented).expect("invariant: strings are JSON");
        // Even if the file cannot be written, it is to be withdrawn.
        let presentation = Presentation { challenges: Arc::clone(self), name: name.clone(), file };
        self.known().presented.insert(name, presented);
        if let Err(error) = self.store.write(&presentation.file, &json) {
            tracing::warn!(name = presentation.name, %error, "a challenge is met by this process only: it was not stored for others");
        }
        presentation
    }

    /// The response to `GET /.well-known/acme-challenge/TOKEN` (RFC 8555 §8.3).
    pub fn http_response(&self, name: &str, token: &str) -> Option<String> {
        let presented = self.find(name, ChallengeKind::Http)?;
        (presented.token == token).then_some(presented.key_authorization)
    }

    /// What a handshake gets whose only protocol is [`ALPN`] (RFC 8737 §3).
    pub fn tls_response(&self, name: &str) -> Option<Arc<ServerConfig>> {
        let presented = self.find(name, ChallengeKind::TlsAlpn)?;
        self.config(name, &presented.key_authorization)
            .inspect_err(|error| tracing::error!(name, %error, "cannot make the certificate of a challenge"))
            .ok()
    }

    fn find(&self, name: &str, kind: ChallengeKind) -> Option<Presented> {
        let known = self.known();
        let is_of_kind = |presented: &Presented| presented.r#type == challenge_name(kind);
        if let Some(own) = known.presented.get(name).filter(|own| is_of_kind(own)) {
            return Some(own.clone());
        }
        let issuers: BTreeSet<_> =
            known.names.get(name).into_iter().flatten().chain(&known.any).cloned().collect();
        drop(known);
        let stored = issuers.iter().filter_map(|issuer| self.read(issuer, name));
        stored.filter(|stored| stored.identifier.value == name).find(is_of_kind)
    }

    fn read(&self, issuer_key: &str, name: &str) -> Option<Presented> {
        let bytes = self.store.read(&layout::challenge(issuer_key, name)).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    fn config(&self, name: &str, key_authorization: &str) -> Result<Arc<ServerConfig>, OrderError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new([name.to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        let digest = crypto::sha256(key_authorization.as_bytes());
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(&digest)];
        let certificate = params.self_signed(&key)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let policy = |error: rustls::Error| Error::Policy { reason: error.to_string() };
        let key = crypto::provider().key_provider.load_private_key(key).map_err(policy)?;
        // Unchecked, as rustls knows no certificate with this critical extension (RFC 8737 §3).
        let certified = CertifiedKey::new(vec![certificate.into()], key);
        let time = Arc::new(RustlsClock(Arc::clone(&self.clock)));
        let mut config = ServerConfig::builder_with_details(crypto::provider(), time)
            .with_safe_default_protocol_versions()
            .expect("invariant: the provider has ciphers for TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(config))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Presentation {
    fn drop(&mut self) {
        self.challenges.known().presented.remove(&self.name);
        // A file that stays says nothing that the CA would ask for again.
        let _ = self.challenges.store.remove(&self.file);
    }
}

impl From<Challenge> for Presented {
    fn from(challenge: Challenge) -> Self {
        let is_address = challenge.name.parse::<std::net::IpAddr>().is_ok();
        Self {
            r#type: challenge_name(challenge.kind).to_owned(),
            url: challenge.url,
            status: "pending".to_owned(),
            token: challenge.token,
            key_authorization: challenge.key_authorization,
            identifier: Identifier {
                r#type: if is_address { "ip" } else { "dns" }.to_owned(),
                value: challenge.name,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemClock;
    use std::path::Path;

    fn challenges(directory: &Path) -> Arc<Challenges> {
        Challenges::new(Store::new(directory), Arc::new(SystemClock))
    }

    fn challenge(kind: ChallengeKind) -> Challenge {
        Challenge {
            kind,
            name: "a.test".into(),
            url: "https://ca.test/challenge/1".into(),
            token: "token".into(),
            key_authorization: "token.thumbprint".into(),
        }
    }

    #[test]
    fn one_is_met_by_all_processes_of_the_storage_until_it_is_withdrawn() {
        let directory = tempfile::tempdir().unwrap();
        let (own, other) = (challenges(directory.path()), challenges(directory.path()));
        other.expect("a.test", "ca".into());
        let stranger = challenges(directory.path());
        let presentation = own.present("ca", challenge(ChallengeKind::Http));
        for process in [&own, &other] {
            assert_eq!(process.http_response("a.test", "token").as_deref(), Some("token.thumbprint"));
            assert_eq!(process.http_response("a.test", "other"), None);
            assert_eq!(process.http_response("b.test", "token"), None);
            assert!(process.tls_response("a.test").is_none());
        }
        assert_eq!(stranger.http_response("a.test", "token"), None);
        drop(presentation);
        for process in [&own, &other] {
            assert_eq!(process.http_response("a.test", "token"), None);
        }
    }

    #[test]
    fn one_that_cannot_be_stored_is_met_by_its_own_process() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("acme"), b"a file where a directory should be").unwrap();
        let own = challenges(directory.path());
        let presentation = own.present("ca", challenge(ChallengeKind::Http));
        assert_eq!(own.http_response("a.test", "token").as_deref(), Some("token.thumbprint"));
        drop(presentation);
        assert_eq!(own.http_response("a.test", "token"), None);
    }

    #[test]
    fn a_handshake_gets_the_digest_in_a_certificate() {
        let directory = tempfile::tempdir().unwrap();
        let own = challenges(directory.path());
        let _presentation = own.present("ca", challenge(ChallengeKind::TlsAlpn));
        assert!(own.tls_response("a.test").is_some());
        assert!(own.tls_response("b.test").is_none());
        assert_eq!(own.http_response("a.test", "token"), None);
    }

    /// Written by certmagic 0.25.
    #[test]
    fn a_challenge_of_caddy_is_met() {
        let directory = tempfile::tempdir().unwrap();
        let own = challenges(directory.path());
        own.expect("a.test", "ca".into());
        let json = r#"{"type":"http-01","url":"https://ca.test/1","status":"pending","token":"t",
            "keyAuthorization":"t.k","identifier":{"type":"dns","value":"a.test"}}"#;
        own.store.write("acme/ca/challenge_tokens/a.test.json", json.as_bytes()).unwrap();
        assert_eq!(own.http_response("a.test", "t").as_deref(), Some("t.k"));
        own.store.write("acme/ca/challenge_tokens/a.test.json", b"{").unwrap();
        assert_eq!(own.http_response("a.test", "t"), None);
    }
}
