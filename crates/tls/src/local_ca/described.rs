//! What others may know of the local CA: its certificates.

use crate::options::KeyPairFiles;
use crate::store::{Store, local_authority};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;
use x509_parser::parse_x509_certificate;

/// The certificates of a local CA that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalAuthority {
    pub root: AuthorityCertificate,
    pub intermediate: AuthorityCertificate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityCertificate {
    /// The common name; empty if it has none.
    pub name: String,
    pub pem: String,
}

/// As it is stored, but for a root that is somebody else's; `None`: there is none.
pub(super) fn read(store: &Store, root: Option<&KeyPairFiles>) -> Option<LocalAuthority> {
    let stored = |file| store.path(&local_authority(file));
    let root = root.map_or_else(|| stored("root.crt"), |root| root.certificate.clone());
    Some(LocalAuthority {
        root: certificate(&root)?,
        intermediate: certificate(&stored("intermediate.crt"))?,
    })
}

fn certificate(path: &Path) -> Option<AuthorityCertificate> {
    let pem = std::fs::read_to_string(path).ok()?;
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    let (_, certificate) = parse_x509_certificate(&der).ok()?;
    let name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    Some(AuthorityCertificate { name: name.unwrap_or_default().to_owned(), pem })
}
