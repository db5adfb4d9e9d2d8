//! How the certificates stand, for those who watch the server.

use crate::certificate::{self, Certificate};
use rustls::sign::CertifiedKey;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One certificate, or a name that is still without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateState {
    /// The name that it is for; of a file, all of them, with commas.
    pub name: String,
    /// The common name of who has signed it, or all of the issuer's name; of a public CA without a certificate yet, the
    /// URL of its directory.
    pub issuer: String,
    /// `None`: there is none yet.
    pub not_after: Option<SystemTime>,
    pub source: CertificateOrigin,
    /// Why the last order failed; `None` after a success.
    pub last_error: Option<String>,
    /// When it is renewed or, after a failure, ordered again; in the past if that is under way. `None`: not by us.
    pub next_try: Option<SystemTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateOrigin {
    Files,
    /// The local CA.
    Internal,
    /// A public CA.
    Acme,
}

pub(crate) fn of_files(certificate: &Certificate) -> CertificateState {
    CertificateState {
        name: certificate.names.join(","),
        issuer: issuer(&certificate.certified).unwrap_or_default(),
        not_after: Some(at(certificate.validity.until)),
        source: CertificateOrigin::Files,
        last_error: None,
        next_try: None,
    }
}

pub(crate) fn of_internal(name: &str, certificate: &Certificate) -> CertificateState {
    let validity = certificate.validity;
    CertificateState {
        name: name.to_owned(),
        issuer: issuer(&certificate.certified).unwrap_or_default(),
        not_after: Some(at(validity.until)),
        source: CertificateOrigin::Internal,
        last_error: None,
        next_try: Some(at(validity.until - (validity.until - validity.from) / 3)),
    }
}

/// `directory`: of the CA. `next_try` is in seconds since 1970.
pub(crate) fn of_acme(
    name: String,
    directory: String,
    certificate: Option<&Certificate>,
    last_error: Option<String>,
    next_try: i64,
) -> CertificateState {
    CertificateState {
        name,
        issuer: certificate.and_then(|own| issuer(&own.certified)).unwrap_or(directory),
        not_after: certificate.map(|own| at(own.validity.until)),
        source: CertificateOrigin::Acme,
        last_error,
        next_try: Some(at(next_try)),
    }
}

fn issuer(certified: &CertifiedKey) -> Option<String> {
    let parsed = certificate::parse(certified.cert.first()?).ok()?;
    let name = parsed.issuer();
    let common = name.iter_common_name().next().and_then(|common| common.as_str().ok().map(str::to_owned));
    Some(common.unwrap_or_else(|| name.to_string()))
}

fn at(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds.max(0).unsigned_abs())
}
