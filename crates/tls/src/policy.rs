//! Which protocols, ciphers and curves a site speaks, by the names of Caddy's `tls` directive.

use rustls::crypto::{SupportedKxGroup, aws_lc_rs};
use rustls::{NamedGroup, SupportedCipherSuite};
use std::fmt;
use std::str::FromStr;

/// An empty list of ciphers or curves stands for rustls' default.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    pub min_version: ProtocolVersion,
    pub max_version: ProtocolVersion,
    /// In descending preference. For TLS 1.3 all are on unless one of TLS 1.3 is listed.
    pub ciphers: Vec<CipherSuite>,
    /// In descending preference.
    pub curves: Vec<Curve>,
    /// What follows on the stream (RFC 7301), in descending preference: `h2`, `http/1.1`. Empty:
    /// nothing is negotiated.
    pub alpn: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            min_version: ProtocolVersion::Tls12,
            max_version: ProtocolVersion::Tls13,
            ciphers: Vec::new(),
            curves: Vec::new(),
            alpn: Vec::new(),
        }
    }
}

/// A name that is not known, with those that are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} {:?}; known are {}", self.what, self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolVersion {
    Tls12,
    Tls13,
}

impl FromStr for ProtocolVersion {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "tls1.2" => Ok(Self::Tls12),
            "tls1.3" => Ok(Self::Tls13),
            _ => Err(unknown("TLS version", name, vec!["tls1.2", "tls1.3"])),
        }
    }
}

/// A row of the table of cipher suites.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CipherSuite(usize);

struct Suite {
    /// Of IANA and Go, so of Caddy.
    name: &'static str,
    /// Of OpenSSL, so of Apache's `SSL_CIPHER`.
    openssl: &'static str,
    id: rustls::CipherSuite,
}

const fn suite(name: &'static str, openssl: &'static str, id: rustls::CipherSuite) -> Suite {
    Suite { name, openssl, id }
}

/// All that rustls has: those with forward secrecy and authenticated encryption.
const SUITES: [Suite; 9] = {
    use rustls::CipherSuite as Id;
    [
        suite("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", Id::TLS13_AES_128_GCM_SHA256),
        suite("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", Id::TLS13_AES_256_GCM_SHA384),
        suite(
            "TLS_CHACHA20_POLY1305_SHA256",
            "TLS_CHACHA20_POLY1305_SHA256",
            Id::TLS13_CHACHA20_POLY1305_SHA256,
        ),
        suite(
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            Id::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ),
        suite(
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            Id::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        ),
        suite(
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
            Id::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
        suite(
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "ECDHE-RSA-AES128-GCM-SHA256",
            Id::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ),
        suite(
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "ECDHE-RSA-AES256-GCM-SHA384",
            Id::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        ),
        suite(
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-RSA-CHACHA20-POLY1305",
            Id::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
    ]
};

impl CipherSuite {
    fn supported(self) -> Option<SupportedCipherSuite> {
        let id = SUITES[self.0].id;
        aws_lc_rs::ALL_CIPHER_SUITES.iter().copied().find(|suite| suite.suite() == id)
    }
}

impl FromStr for CipherSuite {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let index = SUITES.iter().position(|suite| suite.name == name).map(Self);
        index.ok_or_else(|| unknown("cipher suite", name, SUITES.iter().map(|suite| suite.name).collect()))
    }
}

impl fmt::Debug for CipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SUITES[self.0].name)
    }
}

/// A row of the table of key exchange groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Curve(usize);

const CURVES: [(&str, NamedGroup); 5] = [
    ("x25519mlkem768", NamedGroup::X25519MLKEM768),
    ("secp256r1mlkem768", NamedGroup::secp256r1MLKEM768),
    ("x25519", NamedGroup::X25519),
    ("secp256r1", NamedGroup::secp256r1),
    ("secp384r1", NamedGroup::secp384r1),
];

impl Curve {
    fn supported(self) -> Option<&'static dyn SupportedKxGroup> {
        let group = CURVES[self.0].1;
        aws_lc_rs::ALL_KX_GROUPS.iter().copied().find(|supported| supported.name() == group)
    }
}

impl FromStr for Curve {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let index = CURVES.iter().position(|(own, _)| *own == name).map(Self);
        index.ok_or_else(|| unknown("curve", name, CURVES.iter().map(|(name, _)| *name).collect()))
    }
}

impl fmt::Debug for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CURVES[self.0].0)
    }
}

fn unknown(what: &'static str, name: &str, known: Vec<&'static str>) -> UnknownName {
    UnknownName { what, name: name.to_owned(), known }
}

impl Policy {
    pub(crate) fn versions(&self) -> Vec<&'static rustls::SupportedProtocolVersion> {
        let all = [
            (ProtocolVersion::Tls12, &rustls::version::TLS12),
            (ProtocolVersion::Tls13, &rustls::version::TLS13),
        ];
        let range = self.min_version..=self.max_version;
        all.iter().filter(|(version, _)| range.contains(version)).map(|(_, version)| *version).collect()
    }

    pub(crate) fn cipher_suites(&self) -> Vec<SupportedCipherSuite> {
        let mut suites: Vec<_> = self.ciphers.iter().filter_map(|cipher| cipher.supported()).collect();
        let defaults = aws_lc_rs::DEFAULT_CIPHER_SUITES;
        if suites.is_empty() {
            return defaults.to_vec();
        }
        if !suites.iter().any(is_tls13) {
            suites.extend(defaults.iter().filter(|suite| is_tls13(suite)));
        }
        suites
    }

    pub(crate) fn key_exchange_groups(&self) -> Vec<&'static dyn SupportedKxGroup> {
        key_exchange_groups(&self.curves)
    }
}

/// Those of rustls where there are no others.
pub(crate) fn key_exchange_groups(curves: &[Curve]) -> Vec<&'static dyn SupportedKxGroup> {
    match curves {
        [] => aws_lc_rs::DEFAULT_KX_GROUPS.to_vec(),
        curves => curves.iter().filter_map(|curve| curve.supported()).collect(),
    }
}

fn is_tls13(suite: &SupportedCipherSuite) -> bool {
    suite.tls13().is_some()
}

/// As Apache's `SSL_PROTOCOL` has it.
pub(crate) fn protocol_name(version: rustls::ProtocolVersion) -> &'static str {
    match version {
        rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2",
        _ => "TLSv1.3",
    }
}

/// By IANA's name.
pub(crate) fn cipher_suite(id: rustls::CipherSuite) -> &'static str {
    SUITES.iter().find(|suite| suite.id == id).map_or("", |suite| suite.name)
}

/// As Apache's `SSL_CIPHER` has it.
pub(crate) fn cipher_name(id: rustls::CipherSuite) -> &'static str {
    SUITES.iter().find(|suite| suite.id == id).map_or("", |suite| suite.openssl)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_one_of_rustls() {
        for (index, suite) in SUITES.iter().enumerate() {
            assert!(CipherSuite(index).supported().is_some(), "{}", suite.name);
        }
        for (index, (name, _)) in CURVES.iter().enumerate() {
            assert!(Curve(index).supported().is_some(), "{name}");
        }
        assert_eq!(SUITES.len(), aws_lc_rs::ALL_CIPHER_SUITES.len());
    }

    #[test]
    fn an_unknown_name_lists_the_known() {
        let error = "ssl3".parse::<ProtocolVersion>().unwrap_err().to_string();
        assert_eq!(error, r#"unknown TLS version "ssl3"; known are tls1.2, tls1.3"#);
        let error = "p256".parse::<Curve>().unwrap_err().to_string();
        assert!(error.starts_with(r#"unknown curve "p256"; known are x25519mlkem768, "#), "{error}");
        let error = "TLS_RSA_WITH_AES_128_CBC_SHA".parse::<CipherSuite>().unwrap_err().to_string();
        assert!(error.contains("known are TLS_AES_128_GCM_SHA256, "), "{error}");
    }

    #[test]
    fn a_list_without_tls13_leaves_all_of_tls13() {
        let ciphers = vec!["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384".parse().unwrap()];
        let suites = Policy { ciphers, ..Policy::default() }.cipher_suites();
        assert_eq!(suites.len(), 4);
    }

    #[test]
    fn post_quantum_comes_first() {
        assert_eq!(Policy::default().key_exchange_groups()[0].name(), NamedGroup::X25519MLKEM768);
    }
}
