//! Whether files could be served, without serving them: for the validation of a configuration.

use crate::Error;
use crate::certificate::{Certificate, facts, parse, parse_chain};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A chain and its key, each in PEM; both can be one file.
///
/// # Errors
/// If one cannot be read or used, or the key is not that of the certificate. One that has expired is no error, as at start.
pub fn check_certificate(chain: &Path, key: &Path) -> Result<(), Error> {
    let (chain_pem, key_pem) = (read(chain)?, read(key)?);
    Certificate::from_pem((chain, &chain_pem), (key, &key_pem)).map(drop)
}

/// Certificates of CAs, or of clients, in a PEM file.
///
/// # Errors
/// If the file cannot be read, has no certificate, or one that cannot be used.
pub fn check_authorities(file: &Path) -> Result<(), Error> {
    let bad = |reason| Error::BadCertificate { path: file.to_owned(), reason };
    let certificates = parse_chain(file, &read(file)?)?;
    certificates.iter().try_for_each(|der| parse(der).map(drop).map_err(bad))
}

/// When the first certificate of a PEM file expires.
///
/// # Errors
/// If the file cannot be read, or holds no certificate that can be understood.
pub fn certificate_expiry(chain: &Path) -> Result<SystemTime, Error> {
    let certificates = parse_chain(chain, &read(chain)?)?;
    let bad = |reason| Error::BadCertificate { path: chain.to_owned(), reason };
    let (validity, _) = facts(&certificates[0]).map_err(bad)?;
    // One of before 1970 has expired as well as one of 1970.
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(validity.until).unwrap_or(0)))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| Error::read(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_that_could_be_served_and_files_that_could_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let [one, other] = [1, 2].map(|_| rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap());
        fs::write(path("a.crt"), one.cert.pem()).unwrap();
        fs::write(path("a.key"), one.signing_key.serialize_pem()).unwrap();
        fs::write(path("b.key"), other.signing_key.serialize_pem()).unwrap();
        fs::write(path("a.pem"), one.cert.pem() + &one.signing_key.serialize_pem()).unwrap();
        fs::write(path("none"), "nonsense").unwrap();

        check_certificate(&path("a.crt"), &path("a.key")).unwrap();
        check_certificate(&path("a.pem"), &path("a.pem")).unwrap();
        check_authorities(&path("a.crt")).unwrap();
        let error =
            |chain: &str, key: &str| check_certificate(&path(chain), &path(key)).unwrap_err().to_string();
        assert!(error("a.crt", "b.key").contains("does not belong to"), "{}", error("a.crt", "b.key"));
        assert!(error("missing", "a.key").contains("cannot read"));
        assert!(error("a.crt", "none").contains("holds no private key"));
        // rcgen's default is the year 4096.
        assert!(certificate_expiry(&path("a.pem")).unwrap() > SystemTime::now());
        assert!(certificate_expiry(&path("none")).is_err());
        assert!(check_authorities(&path("none")).unwrap_err().to_string().contains("holds no certificate"));
    }
}
