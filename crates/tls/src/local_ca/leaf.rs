//! Certificates that the local CA has signed for names.

use super::Chain;
use super::authority::{is_signed_by, limit, new_key, sign_error};
use crate::Error;
use crate::certificate::Certificate;
use crate::key_type::KeyType;
use crate::options::Internal;
use crate::store::{Store, local_leaf};
use rcgen::{CertificateParams, DistinguishedName, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::pki_types::CertificateDer;
use time::Duration;

/// What a certificate is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile {
    /// At most.
    pub lifetime: Duration,
    pub key_type: KeyType,
}

impl From<&Internal> for Profile {
    fn from(internal: &Internal) -> Self {
        let lifetime = Duration::try_from(internal.lifetime).unwrap_or(Duration::MAX);
        Self { lifetime, key_type: internal.key_type }
    }
}

/// The stored one, unless it is due, damaged, not of this CA, or has another type of key: it is then replaced.
pub(super) fn load(
    store: &Store,
    name: &str,
    profile: Profile,
    chain: &Chain,
    now: i64,
) -> Option<Certificate> {
    let stored = read(store, name).unwrap_or_else(|error| {
        tracing::warn!(%error, "a certificate of the local CA is made anew");
        None
    })?;
    let is_usable = stored.validity.contains(now)
        && !stored.validity.is_due(now)
        && stored.names.iter().any(|own| own == name)
        && profile.key_type.is_that_of(&stored)
        && is_of(&stored.certified.cert, chain);
    is_usable.then_some(stored)
}

fn read(store: &Store, name: &str) -> Result<Option<Certificate>, Error> {
    let (crt, key) = (local_leaf(name, "crt"), local_leaf(name, "key"));
    let (Some(chain_pem), Some(key_pem)) = (store.read(&crt)?, store.read(&key)?) else { return Ok(None) };
    let key_path = store.path(&key);
    crate::certificate::warn_if_readable_by_others(&key_path);
    Certificate::from_pem((&store.path(&crt), &chain_pem), (&key_path, &key_pem)).map(Some)
}

/// Signed by the intermediate that comes with it, which may be the one before the current, and that by the root.
fn is_of(served: &[CertificateDer<'_>], chain: &Chain) -> bool {
    let [leaf, intermediate, ..] = served else { return false };
    is_signed_by(leaf, intermediate) && is_signed_by(intermediate, &chain.root.certificate)
}

/// A new key and certificate, which are nowhere but in memory.
pub(super) fn issue(name: &str, profile: Profile, chain: &Chain, now: i64) -> Result<Issued, Error> {
    let key = new_key(name, profile.key_type)?;
    let leaf = sign(name, profile.lifetime, &key, chain, now)?;
    let chain = format!("{}{}", leaf.pem(), String::from_utf8_lossy(&chain.intermediate.pem));
    Ok(Issued { chain, key: key.serialize_pem() })
}

/// Both as PEM.
pub(super) struct Issued {
    chain: String,
    key: String,
}

impl Issued {
    pub fn certificate(&self, store: &Store, name: &str) -> Result<Certificate, Error> {
        let (crt, key) = (store.path(&local_leaf(name, "crt")), store.path(&local_leaf(name, "key")));
        Certificate::from_pem((&crt, self.chain.as_bytes()), (&key, self.key.as_bytes()))
    }

    /// Under the lock of the name.
    pub fn save(&self, store: &Store, name: &str) -> Result<(), Error> {
        let about = serde_json::json!({ "sans": [name], "issuer_data": null });
        store.write_all(&[
            (&local_leaf(name, "key"), self.key.as_bytes()),
            (&local_leaf(name, "crt"), self.chain.as_bytes()),
            (&local_leaf(name, "json"), format!("{about:#}").as_bytes()),
        ])
    }
}

/// Without any file.
pub(super) fn sign(
    name: &str,
    lifetime: Duration,
    key: &KeyPair,
    chain: &Chain,
    now: i64,
) -> Result<rcgen::Certificate, Error> {
    let parameters = parameters(name, lifetime, chain, now)?;
    parameters.signed_by(key, &chain.issuer).map_err(|error| sign_error(name, &error))
}

/// The subject is empty, so the names are critical (RFC 5280 §4.2.1.6).
fn parameters(name: &str, lifetime: Duration, chain: &Chain, now: i64) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new([name.to_owned()]).map_err(|error| sign_error(name, &error))?;
    params.distinguished_name = DistinguishedName::new();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    limit(&mut params, now, lifetime.min(Duration::seconds(chain.intermediate.validity.until - now)));
    Ok(params)
}
