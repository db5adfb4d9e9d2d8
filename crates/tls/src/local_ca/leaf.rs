//! Certificates that the local CA has signed for names.

use super::Chain;
use super::authority::{is_signed_by, limit, new_key, sign_error};
use crate::Error;
use crate::certificate::Certificate;
use crate::store::{Store, local_leaf};
use rcgen::{CertificateParams, DistinguishedName, ExtendedKeyUsagePurpose, KeyUsagePurpose};
use rustls::pki_types::CertificateDer;
use time::Duration;

/// Caddy's `defaultInternalCertLifetime`.
const LIFETIME: Duration = Duration::hours(12);

/// The stored one, unless it is due, damaged, or not of this CA: it is then replaced.
pub(super) fn load(store: &Store, name: &str, chain: &Chain, now: i64) -> Option<Certificate> {
    let stored = read(store, name).unwrap_or_else(|error| {
        tracing::warn!(%error, "a certificate of the local CA is made anew");
        None
    })?;
    let is_usable = stored.validity.contains(now)
        && !stored.validity.is_due(now)
        && stored.names.iter().any(|own| own == name)
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

/// Under the lock of the name.
pub(super) fn issue(store: &Store, name: &str, chain: &Chain, now: i64) -> Result<Certificate, Error> {
    let signed = sign(store, name, chain, now)?;
    store.write(&local_leaf(name, "key"), signed.key.as_bytes())?;
    store.write(&local_leaf(name, "crt"), signed.chain.as_bytes())?;
    let about = serde_json::json!({ "sans": [name], "issuer_data": null });
    store.write(&local_leaf(name, "json"), format!("{about:#}").as_bytes())?;
    signed.certificate(store, name)
}

/// Both as PEM.
pub(super) struct Signed {
    chain: String,
    key: String,
}

impl Signed {
    pub fn certificate(&self, store: &Store, name: &str) -> Result<Certificate, Error> {
        let (crt, key) = (store.path(&local_leaf(name, "crt")), store.path(&local_leaf(name, "key")));
        Certificate::from_pem((&crt, self.chain.as_bytes()), (&key, self.key.as_bytes()))
    }
}

pub(super) fn sign(store: &Store, name: &str, chain: &Chain, now: i64) -> Result<Signed, Error> {
    let issuer = chain.intermediate.issuer(store)?;
    let key = new_key(name)?;
    let leaf =
        parameters(name, chain, now)?.signed_by(&key, &issuer).map_err(|error| sign_error(name, &error))?;
    let chain = format!("{}{}", leaf.pem(), String::from_utf8_lossy(&chain.intermediate.pem));
    Ok(Signed { chain, key: key.serialize_pem() })
}

/// The subject is empty, so the names are critical (RFC 5280 §4.2.1.6).
fn parameters(name: &str, chain: &Chain, now: i64) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new([name.to_owned()]).map_err(|error| sign_error(name, &error))?;
    params.distinguished_name = DistinguishedName::new();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    limit(&mut params, now, LIFETIME.min(Duration::seconds(chain.intermediate.validity.until - now)));
    Ok(params)
}
