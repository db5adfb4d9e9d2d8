//! Certificates and keys from PEM, with errors that say what is wrong with which file.

use crate::{Error, crypto};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// A chain with its key, ready to be served.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    pub certified: Arc<CertifiedKey>,
    pub validity: Validity,
    /// The DNS names and IP addresses that it is for.
    pub names: Vec<String>,
}

/// In seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub from: i64,
    pub until: i64,
}

impl Validity {
    pub fn contains(self, now: i64) -> bool {
        (self.from..=self.until).contains(&now)
    }

    /// Only a third of the lifetime is left (certmagic's `DefaultRenewalWindowRatio`).
    pub fn is_due(self, now: i64) -> bool {
        self.until - now <= (self.until - self.from) / 3
    }
}

impl Certificate {
    /// From the content of two files; the paths are for the errors.
    pub fn from_pem(chain: (&Path, &[u8]), key: (&Path, &[u8])) -> Result<Self, Error> {
        let ((chain_path, chain_pem), (key_path, key_pem)) = (chain, key);
        let chain = parse_chain(chain_path, chain_pem)?;
        let (validity, names) = facts(&chain[0]).map_err(|reason| bad_certificate(chain_path, reason))?;
        let signing_key = crypto::provider()
            .key_provider
            .load_private_key(parse_key(key_path, key_pem)?)
            .map_err(|error| Error::BadKey { path: key_path.to_owned(), reason: error.to_string() })?;
        let certified = CertifiedKey::new(chain, signing_key);
        if !has_key(&certified).map_err(|reason| bad_certificate(chain_path, reason))? {
            return Err(Error::KeyMismatch { certificate: chain_path.to_owned(), key: key_path.to_owned() });
        }
        if is_version_1(&certified.cert[0]) {
            tracing::warn!(certificate = %chain_path.display(), "this certificate is served, but {VERSION_1}");
        }
        Ok(Self { certified: Arc::new(certified), validity, names })
    }

    /// Whether it is for this name, literally or by a wildcard for its first label.
    pub fn covers(&self, name: &str) -> bool {
        let wildcard = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        self.names.iter().any(|own| own == name || Some(own) == wildcard.as_ref())
    }

    /// Whether a client that verifies these schemes can use it.
    pub fn suits(&self, schemes: &[rustls::SignatureScheme]) -> bool {
        self.certified.key.choose_scheme(schemes).is_some()
    }

    /// Whether it is for exactly this name, which may be a wildcard.
    pub fn is_for(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    pub fn is_rsa(&self) -> bool {
        self.certified.key.algorithm() == rustls::SignatureAlgorithm::RSA
    }
}

/// Whether the key is that of the certificate, as far as the key tells. By rustls' own comparison no certificate of version 1 had
/// any.
fn has_key(certified: &CertifiedKey) -> Result<bool, String> {
    let certificate = parse(&certified.cert[0])?;
    let own = certified.key.public_key();
    Ok(own.is_none_or(|own| own.as_ref() == certificate.public_key().raw))
}

/// What is wrong with a certificate of X.509 version 1, and what to do.
pub(crate) const VERSION_1: &str = "it is of X.509 version 1, which names no hosts and which many programs refuse: make it anew \
     with the names that it is for, as by `openssl x509 -req … -extfile FILE`, where FILE says `subjectAltName=DNS:example.com`";

pub(crate) fn is_version_1(der: &[u8]) -> bool {
    parse(der).is_ok_and(|certificate| certificate.version() == X509Version::V1)
}

fn bad_certificate(path: &Path, reason: impl Into<String>) -> Error {
    Error::BadCertificate { path: path.to_owned(), reason: reason.into() }
}

/// Never empty.
pub(crate) fn parse_chain(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Pem { path: path.to_owned(), reason: error.to_string() })?;
    if chain.is_empty() { Err(Error::NoCertificate { path: path.to_owned() }) } else { Ok(chain) }
}

/// The first private key; sections of other kinds, as the parameters that OpenSSL writes before it, do not matter.
pub(crate) fn parse_key(path: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    let path = path.to_owned();
    match PrivateKeyDer::from_pem_slice(pem) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) if is_encrypted(pem) => Err(Error::EncryptedKey { path }),
        Err(pem::Error::NoItemsFound) => Err(Error::NoKey { path }),
        Err(error) => Err(Error::Pem { path, reason: error.to_string() }),
    }
}

fn is_encrypted(pem: &[u8]) -> bool {
    String::from_utf8_lossy(pem).contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
}

/// Validity and names of a certificate.
pub(crate) fn facts(der: &[u8]) -> Result<(Validity, Vec<String>), String> {
    let certificate = parse(der)?;
    let validity = certificate.validity();
    let validity = Validity { from: validity.not_before.timestamp(), until: validity.not_after.timestamp() };
    let alternatives = certificate.subject_alternative_name().map_err(|error| error.to_string())?;
    let names = match alternatives {
        Some(extension) => extension.value.general_names.iter().filter_map(name_of).collect(),
        None => common_name(&certificate).into_iter().collect(),
    };
    Ok((validity, names))
}

/// Once the name of the host, and still that of certificates without a list of names (certmagic's `fillCertFromLeaf`).
fn common_name(certificate: &X509Certificate<'_>) -> Option<String> {
    let name = certificate.subject().iter_common_name().next()?.as_str().ok()?;
    (!name.is_empty() && !name.contains(' ')).then(|| name.to_ascii_lowercase())
}

pub(crate) fn parse(der: &[u8]) -> Result<X509Certificate<'_>, String> {
    X509Certificate::from_der(der).map(|(_, certificate)| certificate).map_err(|error| error.to_string())
}

fn name_of(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let v6 = <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            v4.or(v6).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

/// Warns of a key that others than its owner can read. A file that cannot be looked at is an error where it is read.
pub(crate) fn warn_if_readable_by_others(key: &Path) {
    let Ok(metadata) = std::fs::metadata(key) else { return };
    if is_readable_by_others(metadata.permissions().mode()) {
        tracing::warn!(key = %key.display(), "a private key can be read by others than its owner; chmod it to 0600");
    }
}

fn is_readable_by_others(mode: u32) -> bool {
    mode & 0o044 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load(chain: &str, key: &str) -> Result<Certificate, Error> {
        Certificate::from_pem((Path::new("a.crt"), chain.as_bytes()), (Path::new("a.key"), key.as_bytes()))
    }

    fn message(chain: &str, key: &str) -> String {
        load(chain, key).unwrap_err().to_string()
    }

    fn pair(name: &str) -> (String, String) {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn a_pair_is_loaded_with_its_names() {
        let (chain, key) = pair("*.example.com");
        let certificate = load(&chain, &key).unwrap();
        assert_eq!(certificate.names, ["*.example.com"]);
        assert!(certificate.covers("a.example.com"));
        assert!(!certificate.covers("example.com"));
        assert!(!certificate.covers("a.b.example.com"));
        assert!(!certificate.is_rsa());
    }

    #[test]
    fn an_rsa_key_is_known_as_one() {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
        let made = rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap().self_signed(&key).unwrap();
        assert!(load(&made.pem(), &key.serialize_pem()).unwrap().is_rsa());
    }

    /// Made by `openssl x509 -req -signkey`, until 2126.
    const OLD: (&str, &str) = (
        "-----BEGIN CERTIFICATE-----
MIIBKDCBzwIUUAIprPc+OLm+xCIrIIrp0oQLd0YwCgYIKoZIzj0EAwIwFjEUMBIG
A1UEAwwLT2xkLmV4YW1wbGUwIBcNMjYxMTI3MTc0OTMyWhgPMjEyNjExMDMxNzQ5
MzJaMBYxFDASBgNVBAMMC09sZC5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAE8kRb7vqSTwkZWLYGMuQy+QC6RXVJOJJH4Rs+uQ1464hSDeYbY/OaEKoT
OYGWLz/W8oJKm9owvC61HNajzXgC8TAKBggqhkjOPQQDAgNIADBFAiAsTOpI6FCL
tISqwPAQ3BU+xhikzBnATwxupiHJmrsjOwIhAJ0ZUHsUdYrA/DIN4p5Jlgx2wzab
f6aQKfoKwISVIJPQ
-----END CERTIFICATE-----
",
        "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHv8DX7PT2QdB3r4v
NBr9hLLnbFg2zYD9XJXRMg3KvMmhRANCAATyRFvu+pJPCRlYtgYy5DL5ALpFdUk4
kkfhGz65DXjriFIN5htj85oQqhM5gZYvP9bygkqb2jC8LrUc1qPNeALx
-----END PRIVATE KEY-----
",
    );

    #[test]
    fn a_certificate_of_version_1_was_an_invalid_peer() {
        let (chain, key) = OLD;
        let certificate = load(chain, key).unwrap();
        assert!(is_version_1(&certificate.certified.cert[0]));
        assert_eq!(certificate.names, ["old.example"]);
        let (new_chain, other) = pair("example.com");
        assert!(!is_version_1(&load(&new_chain, &other).unwrap().certified.cert[0]));
        assert!(message(chain, &other).contains("does not belong"));
    }

    #[tokio::test]
    async fn an_upstream_of_version_1_is_talked_to_unverified_and_else_told_of_in_words() {
        let (chain, key) = OLD;
        let directory = tempfile::tempdir().unwrap();
        let roots = directory.path().join("roots.pem");
        std::fs::write(&roots, chain).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(crypto::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        let served = load(chain, key).unwrap().certified;
        let config = config.with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(served)));
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        for (verification, refusal) in [
            (crate::Verification::None, None),
            (crate::Verification::Roots(vec![roots]), Some("X.509 version 1")),
        ] {
            let options = crate::ClientOptions {
                verification,
                certificate: None,
                alpn: crate::Alpn::Http1,
                curves: Vec::new(),
            };
            let client = crate::Client::new(&options).unwrap();
            let (near, far) = tokio::io::duplex(1 << 16);
            let (connected, _) = tokio::join!(client.connect("old.example", near), acceptor.accept(far));
            let error = connected.err().map(|error| error.to_string());
            match refusal {
                None => assert_eq!(error, None),
                Some(words) => {
                    assert!(error.as_ref().is_some_and(|error| error.contains(words)), "{error:?}")
                }
            }
        }
    }

    #[test]
    fn one_file_may_hold_both() {
        let (chain, key) = pair("example.com");
        let both = format!("{key}{chain}");
        load(&both, &both).unwrap();
    }

    #[test]
    fn each_mistake_is_named_with_its_file() {
        let (chain, key) = pair("example.com");
        let (_, other) = pair("example.com");
        assert_eq!(message("", &key), "a.crt holds no certificate (no section BEGIN CERTIFICATE)");
        assert_eq!(message(&key, &key), "a.crt holds no certificate (no section BEGIN CERTIFICATE)");
        assert_eq!(message(&chain, &chain), "a.key holds no private key (no section BEGIN … PRIVATE KEY)");
        assert_eq!(
            message(&chain, &other),
            "the private key in a.key does not belong to the certificate in a.crt"
        );
        assert!(message(&chain[..200], &key).starts_with("a.crt is not valid PEM: "));
        assert!(message(&chain, &key[..60]).starts_with("a.key is not valid PEM: "));
        let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        assert!(message(&chain, &encrypted).contains("a.key is encrypted"));
        let not_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(message(not_der, &key).starts_with("a.crt holds a certificate that cannot be used: "));
        let not_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert!(message(&chain, not_key).starts_with("the private key in a.key cannot be used: "));
    }

    #[test]
    fn only_modes_without_others_are_quiet() {
        assert!(!is_readable_by_others(0o100600));
        assert!(!is_readable_by_others(0o100400));
        assert!(is_readable_by_others(0o100640));
        assert!(is_readable_by_others(0o100604));
    }

    #[test]
    fn a_third_of_the_lifetime_is_due() {
        let validity = Validity { from: 0, until: 300 };
        assert!(!validity.is_due(199));
        assert!(validity.is_due(200));
        assert!(validity.is_due(1000));
    }

    proptest! {
        #[test]
        fn no_content_panics(chain in prop::collection::vec(any::<u8>(), 0..300), key in ".*") {
            let (good_chain, good_key) = pair("example.com");
            let _ = Certificate::from_pem((Path::new("a"), &chain), (Path::new("b"), good_key.as_bytes()));
            let _ = load(&good_chain, &key);
            let _ = facts(&chain);
        }
    }
}
