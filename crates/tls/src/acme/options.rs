//! What the configuration says about a public CA.

use crate::KeyType;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How certificates are obtained from a CA that speaks ACME (RFC 8555).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// The CA's directory, an `https` URL. `None`: that of Let's Encrypt.
    pub directory: Option<String>,
    /// Where a failed order is tried first, so that the limits of the CA itself are not used up. `None`: Let's Encrypt's
    /// staging environment if the CA is Let's Encrypt, otherwise none.
    pub test_directory: Option<String>,
    /// Of the account.
    pub email: Option<String>,
    pub eab: Option<ExternalAccount>,
    /// Whose account at ZeroSSL is to have the certificates. `None`: that of the address.
    pub zerossl_key: Option<ZeroSslKey>,
    /// PEM files of the roots that the CA's own server is verified with; empty: those of the system.
    pub trusted_roots: Vec<PathBuf>,
    /// The certificate profile to ask for, such as `shortlived`.
    pub profile: Option<String>,
    pub key_type: KeyType,
    /// What may prove to the CA that a name is ours. With [`Self::dns`] that is used alone.
    pub challenges: Vec<ChallengeKind>,
    pub dns: Option<DnsChallenge>,
}

impl Default for Acme {
    fn default() -> Self {
        Self {
            directory: None,
            test_directory: None,
            email: None,
            eab: None,
            zerossl_key: None,
            trusted_roots: Vec::new(),
            profile: None,
            key_type: KeyType::P256,
            challenges: vec![ChallengeKind::Http, ChallengeKind::TlsAlpn],
            dns: None,
        }
    }
}

/// So many orders on demand at most in so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderLimit {
    pub orders: u32,
    pub interval: Duration,
}

/// An account at the CA that the ACME account is bound to (RFC 8555 §7.3.4).
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    pub key_id: String,
    /// In base64url, with or without padding.
    pub mac_key: String,
}

/// Without the key.
impl std::fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExternalAccount").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// What programs have access to an account at ZeroSSL by.
#[derive(Clone, PartialEq, Eq)]
pub struct ZeroSslKey(pub String);

/// Without the key.
impl std::fmt::Debug for ZeroSslKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ZeroSslKey").finish_non_exhaustive()
    }
}

/// A challenge that needs nothing but this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChallengeKind {
    /// A file at port 80 (RFC 8555 §8.3).
    Http,
    /// A certificate at port 443 (RFC 8737).
    TlsAlpn,
}

/// The challenge by a TXT record (RFC 8555 §8.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsChallenge {
    pub provider: DnsProvider,
    /// Between the record and the first look at it, for name servers that have it later.
    pub propagation_delay: Duration,
    /// How long records of a service may take until its name servers have them. `None`: that is not looked up.
    pub propagation_timeout: Option<Duration>,
    /// Who is asked for the zone and its servers. Empty: the system's.
    pub resolvers: Vec<SocketAddr>,
    /// The name of the record, where that of the challenge is an alias for it (CNAME). `None`: that of the challenge.
    pub override_domain: Option<String>,
    /// In seconds, of records that are set by updates or at services. `None`: 60, or what the service takes.
    pub ttl: Option<u32>,
}

/// Who sets and removes the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsProvider {
    Exec(DnsHook),
    Rfc2136(DnsUpdateServer),
    Hosted(DnsService),
}

/// A service that has zones for many, with an interface of its own.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DnsService {
    /// As Caddy's module for it is called.
    pub name: String,
    /// By the names of the module, without those that are left out.
    pub options: BTreeMap<String, String>,
}

/// Without the values, most of which are secrets.
impl std::fmt::Debug for DnsService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DnsService").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A name server that takes updates (RFC 2136) of the zones of the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsUpdateServer {
    /// A name or an address.
    pub host: String,
    pub port: u16,
    /// `None`: updates are not signed.
    pub key: Option<TsigKey>,
}

/// What updates are signed with (RFC 8945).
#[derive(Clone, PartialEq, Eq)]
pub struct TsigKey {
    pub name: String,
    pub algorithm: TsigAlgorithm,
    pub secret: Vec<u8>,
}

/// Without the secret.
impl std::fmt::Debug for TsigKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TsigKey")
            .field("name", &self.name)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// Of RFC 8945 §6, without HMAC-MD5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TsigAlgorithm {
    HmacSha1,
    HmacSha224,
    HmacSha256,
    HmacSha384,
    HmacSha512,
}

/// A program that sets and removes the records of the DNS challenge (RFC 8555 §8.4). It is called with
/// `present FQDN VALUE` and, afterwards, with `cleanup FQDN VALUE`; `FQDN` is such as `_acme-challenge.example.com.`.
/// With `present` it ends when the record can be seen at all servers of the zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsHook {
    pub program: PathBuf,
    /// Come before the others.
    pub arguments: Vec<String>,
}

const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

impl Acme {
    pub(crate) fn directory(&self) -> &str {
        self.directory.as_deref().unwrap_or(LETS_ENCRYPT)
    }

    pub(super) fn test_directory(&self) -> Option<&str> {
        let is_lets_encrypt = self.directory() == LETS_ENCRYPT;
        self.test_directory.as_deref().or(is_lets_encrypt.then_some(LETS_ENCRYPT_STAGING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lets_encrypt_has_a_staging_environment_by_itself() {
        assert_eq!(Acme::default().test_directory(), Some(LETS_ENCRYPT_STAGING));
        let other = Acme { directory: Some("https://ca.test/dir".into()), ..Acme::default() };
        assert_eq!(other.test_directory(), None);
        let named = Acme { test_directory: Some("https://ca.test/staging".into()), ..other };
        assert_eq!(named.test_directory(), Some("https://ca.test/staging"));
    }

    #[test]
    fn a_mac_key_is_not_printed() {
        let eab = ExternalAccount { key_id: "kid".into(), mac_key: "secret".into() };
        assert!(!format!("{eab:?} {:?}", ZeroSslKey("secret".into())).contains("secret"));
    }
}
