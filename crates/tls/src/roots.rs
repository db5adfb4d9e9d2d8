//! The certificates that servers are verified with.

use crate::Error;
use crate::certificate::parse_chain;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use std::path::{Path, PathBuf};

/// Those that the system trusts. Blocks: it reads their files.
pub(crate) fn system() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system_certificates()?);
    if roots.is_empty() { Err(Error::NoRoots(String::new())) } else { Ok(roots) }
}

/// The same as they are stored; never empty.
pub(crate) fn system_certificates() -> Result<Vec<CertificateDer<'static>>, Error> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(Error::NoRoots(errors.join(", ")));
    }
    Ok(found.certs)
}

/// Those of PEM files. Blocks: it reads them.
pub(crate) fn of_files(files: &[PathBuf]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for path in files {
        add(&mut roots, path)?;
    }
    Ok(roots)
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), Error> {
    let pem = std::fs::read(path).map_err(|error| Error::read(path, error))?;
    for certificate in parse_chain(path, &pem)? {
        let bad =
            |error: rustls::Error| Error::BadCertificate { path: path.to_owned(), reason: error.to_string() };
        roots.add(certificate).map_err(bad)?;
    }
    Ok(())
}
