//! The root and the intermediate of the local CA.

use super::{Chain, Issuer};
use crate::certificate::{self, Validity};
use crate::key_type::KeyType;
use crate::options::{AuthorityOptions, KeyPairFiles};
use crate::store::{Store, local_authority};
use crate::{Error, crypto};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose, SerialNumber};
use rustls::pki_types::CertificateDer;
use std::path::Path;
use time::{Duration, OffsetDateTime};

/// Caddy's 3600 days (`defaultRootLifetime`).
const ROOT_LIFETIME: Duration = Duration::days(3600);
/// `defaultIntermediateLifetime`.
const INTERMEDIATE_LIFETIME: Duration = Duration::days(7);
/// For clocks of clients that are a little late.
pub(super) const BACKDATE: Duration = Duration::minutes(1);

/// One certificate that signs others.
pub(super) struct Authority {
    /// Its files.
    files: KeyPairFiles,
    pub certificate: CertificateDer<'static>,
    /// Its file.
    pub pem: Vec<u8>,
    pub validity: Validity,
}

const ROOT: &str = "root";
const INTERMEDIATE: &str = "intermediate";

/// One that is valid now, though it may be due. `None` if something is missing. The root's key may be elsewhere as long as
/// no intermediate is to be signed.
pub(super) fn load_chain(
    store: &Store,
    options: &AuthorityOptions,
    now: i64,
) -> Result<Option<Chain>, Error> {
    let Some(root) = load_root(store, options, now)? else { return Ok(None) };
    let intermediate = load_intermediate(store, &root, now);
    Ok(intermediate.map(|(intermediate, issuer)| Chain { root, intermediate, issuer, is_unstored: false }))
}

/// `None` if there is none, which only a root of our own may be.
pub(super) fn load_root(
    store: &Store,
    options: &AuthorityOptions,
    now: i64,
) -> Result<Option<Authority>, Error> {
    let root = match &options.root {
        Some(files) => Some(Authority::read(files)?),
        None => Authority::load(store, ROOT)?,
    };
    let Some(root) = root else { return Ok(None) };
    if now > root.validity.until {
        return Err(Error::RootExpired { path: root.files.certificate });
    }
    Ok(Some(root))
}

/// An intermediate that cannot be used is replaced, and never an error: all that depends on it lives shorter.
fn load_intermediate(store: &Store, root: &Authority, now: i64) -> Option<(Authority, Issuer)> {
    let intermediate = match Authority::load(store, INTERMEDIATE) {
        Ok(intermediate) => intermediate?,
        Err(error) => {
            tracing::warn!(%error, "the intermediate certificate of the local CA is made anew");
            return None;
        }
    };
    let is_usable =
        intermediate.validity.contains(now) && is_signed_by(&intermediate.certificate, &root.certificate);
    let issuer = is_usable.then(|| intermediate.issuer().ok())??;
    Some((intermediate, issuer))
}

/// By key, and by name.
pub(super) fn is_signed_by(certificate: &[u8], issuer: &[u8]) -> bool {
    let (Ok(certificate), Ok(issuer)) = (certificate::parse(certificate), certificate::parse(issuer)) else {
        return false;
    };
    certificate.issuer() == issuer.subject()
        && certificate.verify_signature(Some(issuer.public_key())).is_ok()
}

impl Authority {
    /// `None` if there is no certificate of that name.
    fn load(store: &Store, name: &'static str) -> Result<Option<Self>, Error> {
        let file = local_authority(&format!("{name}.crt"));
        let Some(pem) = store.read(&file)? else { return Ok(None) };
        Self::parse(stored(store, name), pem).map(Some)
    }

    /// One that somebody else keeps.
    fn read(files: &KeyPairFiles) -> Result<Self, Error> {
        let path = &files.certificate;
        let pem = std::fs::read(path).map_err(|error| Error::read(path, error))?;
        let root = Self::parse(files.clone(), pem)?;
        let parsed = certificate::parse(&root.certificate);
        match parsed.is_ok_and(|root| root.is_ca()) {
            true => Ok(root),
            false => Err(Error::BadCertificate {
                path: path.clone(),
                reason: "it is no CA's: it may not sign others".to_owned(),
            }),
        }
    }

    fn parse(files: KeyPairFiles, pem: Vec<u8>) -> Result<Self, Error> {
        let certificate = certificate::parse_chain(&files.certificate, &pem)?.swap_remove(0);
        let (validity, _) = certificate::facts(&certificate)
            .map_err(|reason| Error::BadCertificate { path: files.certificate.clone(), reason })?;
        Ok(Self { files, certificate, pem, validity })
    }

    /// With its key, which must be the certificate's.
    pub fn issuer(&self) -> Result<Issuer, Error> {
        let path = self.files.key.clone();
        certificate::warn_if_readable_by_others(&path);
        let pem = std::fs::read(&path).map_err(|error| Error::read(&path, error))?;
        let key = read_key(&path, &pem)?;
        let bad = |reason: String| Error::BadCertificate { path: self.files.certificate.clone(), reason };
        let parsed = certificate::parse(&self.certificate).map_err(bad)?;
        if parsed.public_key().subject_public_key.as_ref() != rcgen::PublicKeyData::der_bytes(&key) {
            return Err(Error::KeyMismatch { certificate: self.files.certificate.clone(), key: path });
        }
        rcgen::Issuer::from_ca_cert_der(&self.certificate, key).map_err(|error| bad(error.to_string()))
    }
}

fn stored(store: &Store, name: &str) -> KeyPairFiles {
    let file = |extension| store.path(&local_authority(&format!("{name}.{extension}")));
    KeyPairFiles { certificate: file("crt"), key: file("key") }
}

fn read_key(path: &Path, pem: &[u8]) -> Result<KeyPair, Error> {
    let der = certificate::parse_key(path, pem)?;
    KeyPair::try_from(&der)
        .map_err(|error| Error::BadKey { path: path.to_owned(), reason: error.to_string() })
}

/// Under the lock. A root that is not stored would be of no use: it could not be trusted.
pub(super) fn make_root(store: &Store, options: &AuthorityOptions, now: i64) -> Result<Authority, Error> {
    let key = new_key(ROOT, KeyType::P256)?;
    let usual = || format!("Regent Local Authority - {} ECC Root", at(now).year());
    let name = options.root_name.clone().unwrap_or_else(usual);
    let params = parameters(&name, 1, now, ROOT_LIFETIME);
    let certificate = params.self_signed(&key).map_err(|error| sign_error(ROOT, &error))?;
    save(store, ROOT, certificate.pem().as_bytes(), &key)?;
    tracing::info!("made the root certificate of the local CA");
    Authority::load(store, ROOT)?.ok_or_else(|| vanished(store, ROOT))
}

/// It is nowhere but in memory.
pub(super) fn make_intermediate(
    store: &Store,
    options: &AuthorityOptions,
    root: Authority,
    now: i64,
) -> Result<Chain, Error> {
    let issuer = root.issuer()?;
    let key = new_key(INTERMEDIATE, KeyType::P256)?;
    let wanted = options.intermediate_lifetime.and_then(|lifetime| Duration::try_from(lifetime).ok());
    let lifetime = wanted.unwrap_or(INTERMEDIATE_LIFETIME).min(Duration::seconds(root.validity.until - now));
    let name = options.intermediate_name.as_deref().unwrap_or("Regent Local Authority - ECC Intermediate");
    let params = parameters(name, 0, now, lifetime);
    let certificate = params.signed_by(&key, &issuer).map_err(|error| sign_error(INTERMEDIATE, &error))?;
    let bad = |reason: String| Error::Sign { subject: INTERMEDIATE.to_owned(), reason };
    let (validity, _) = certificate::facts(certificate.der()).map_err(bad)?;
    let pem = certificate.pem().into_bytes();
    let certificate = CertificateDer::from(certificate);
    let issuer =
        rcgen::Issuer::from_ca_cert_der(&certificate, key).map_err(|error| bad(error.to_string()))?;
    let files = stored(store, INTERMEDIATE);
    let intermediate = Authority { files, certificate, pem, validity };
    Ok(Chain { root, intermediate, issuer, is_unstored: true })
}

/// Under the lock.
pub(super) fn save_intermediate(store: &Store, chain: &Chain) -> Result<(), Error> {
    save(store, INTERMEDIATE, &chain.intermediate.pem, chain.issuer.key())
}

/// The key first: a certificate without its key would have to be explained, a key without its certificate is nothing.
fn save(store: &Store, name: &str, certificate: &[u8], key: &KeyPair) -> Result<(), Error> {
    store.write_all(&[
        (&local_authority(&format!("{name}.key")), key.serialize_pem().as_bytes()),
        (&local_authority(&format!("{name}.crt")), certificate),
    ])
}

fn vanished(store: &Store, name: &str) -> Error {
    let path = store.path(&local_authority(&format!("{name}.crt")));
    Error::read(path, std::io::ErrorKind::NotFound.into())
}

fn parameters(name: &str, path_length: u8, now: i64, lifetime: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(path_length));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    limit(&mut params, now, lifetime);
    params
}

/// Serial number and dates.
pub(super) fn limit(params: &mut CertificateParams, now: i64, lifetime: Duration) {
    params.serial_number = Some(new_serial());
    params.not_before = at(now) - BACKDATE;
    params.not_after = at(now) + lifetime;
}

/// Positive and of 16 bytes (RFC 5280 §4.1.2.2).
fn new_serial() -> SerialNumber {
    let mut bytes = crypto::random::<16>();
    bytes[0] = bytes[0] & 0x7f | 0x40;
    SerialNumber::from_slice(&bytes)
}

pub(super) fn new_key(subject: &str, key_type: KeyType) -> Result<KeyPair, Error> {
    key_type.generate().map_err(|error| sign_error(subject, &error))
}

pub(super) fn sign_error(subject: &str, error: &rcgen::Error) -> Error {
    Error::Sign { subject: subject.to_owned(), reason: error.to_string() }
}

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
