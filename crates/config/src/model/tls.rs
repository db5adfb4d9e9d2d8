//! TLS: how the certificates of a site come about, and what it agrees on with clients.

mod authority;
mod global;

pub use authority::LocalCa;
pub use global::GlobalTls;

use super::{Secret, as_text};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What TLS is like on all sites of a [`Server`](super::Server).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerTls {
    pub sni_host: SniHost,
}

/// Whether the `Host` of a request has to be the name that the client gave in the handshake (SNI).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SniHost {
    /// Any site of the server may be asked for on a connection.
    Free,
    /// Another `Host` is an error 421. The default where a site of the server asks for client certificates, as a
    /// client could otherwise shake hands for a site without and ask for one with (modules/caddyhttp/app.go).
    Strict,
}

/// TLS of one site.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteTls {
    pub source: CertificateSource,
    /// Of certificates that are made or asked for.
    pub key_type: KeyType,
    pub versions: TlsVersions,
    /// Cipher suites of TLS 1.2, in order of preference; empty: the default ones. TLS 1.3 has all of its own.
    pub ciphers: Vec<CipherSuite>,
    /// Key exchanges, in order of preference; empty: the default ones.
    pub curves: Vec<Curve>,
    /// Application protocols in order of preference, as ALPN names them; empty: those of [`Server::protocols`](super::Server::protocols).
    pub alpn: Vec<String>,
    /// `None`: no client is asked for a certificate.
    pub client_auth: Option<ClientAuth>,
}

/// Where a site's certificates come from. Those that are made or asked for are for [`Site::hosts`](super::Site::hosts).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum CertificateSource {
    /// `tls CERT KEY` and `load`. At least one of both lists has an element.
    Files {
        pairs: Vec<CertificateFiles>,
        /// Directories of `.pem` files, with those below, each with certificates and their key (caddytls/folderloader.go).
        #[serde(serialize_with = "as_texts")]
        directories: Vec<PathBuf>,
    },
    /// None of its own: those of all other sites serve, whichever fits the name in the handshake.
    Shared,
    /// Signed by the local CA.
    Internal {
        /// Of a certificate. Default: 12 h.
        lifetime: Duration,
        issuance: Issuance,
    },
    /// Of a public CA: the first of these that issues one, of which there is one at least.
    Acme { cas: Vec<Acme>, issuance: Issuance },
}

/// A certificate chain and its key, in PEM, with absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CertificateFiles {
    #[serde(serialize_with = "as_text")]
    pub certificate: PathBuf,
    #[serde(serialize_with = "as_text")]
    pub key: PathBuf,
}

/// When a certificate is issued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Issuance {
    /// At start, for every name of the site.
    #[default]
    AtStart,
    /// In the handshake that asks for a name (`on_demand`). For sites without a host that is any name.
    OnDemand,
}

/// How certificates are obtained from a public CA (RFC 8555).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Acme {
    /// The CA's directory. `None`: the default CA.
    pub directory: Option<String>,
    /// The directory to try after a failure (`test_dir`).
    pub test_directory: Option<String>,
    pub email: Option<String>,
    /// External account binding (RFC 8555 section 7.3.4).
    pub eab: Option<Eab>,
    /// Whose account at ZeroSSL is to have the certificates (`issuer zerossl`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zerossl_key: Option<Secret>,
    /// PEM files of the roots that the CA's own server is verified with; empty: the system's.
    #[serde(serialize_with = "as_texts")]
    pub trusted_roots: Vec<PathBuf>,
    /// The certificate profile to ask for.
    pub profile: Option<String>,
    /// `None`: no DNS challenge.
    pub dns: Option<DnsProvider>,
    /// Between the record of the DNS challenge and the first look at it (`propagation_delay`). Default: 0.
    pub propagation_delay: Duration,
    /// How long a record at a service may take until it is seen (`propagation_timeout`). `None`: 2 minutes; zero: that is
    /// not looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagation_timeout: Option<Duration>,
    /// Who is asked for the zone and the record (`resolvers`). Empty: the system's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resolvers: Vec<SocketAddr>,
    /// The name of the record, where that of the challenge is an alias for it (`dns_challenge_override_domain`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_override_domain: Option<String>,
    /// In seconds, of records that are set by updates. `None`: 60.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_ttl: Option<u32>,
    pub http_challenge: Challenge,
    pub tls_alpn_challenge: Challenge,
}

/// An external account at a CA.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Eab {
    pub key_id: String,
    /// In base64url. Printed as dots.
    #[serde(serialize_with = "as_secret")]
    pub mac_key: String,
}

/// Who sets the records of the DNS challenge.
#[derive(Clone, PartialEq, Serialize)]
pub enum DnsProvider {
    /// A program, called with `present FQDN VALUE` and `cleanup FQDN VALUE` after its own arguments.
    Exec {
        /// Absolute, or a name to be looked up in `$PATH`.
        #[serde(serialize_with = "as_text")]
        program: PathBuf,
        /// Such as a token. Printed as dots.
        #[serde(serialize_with = "as_secrets")]
        arguments: Vec<String>,
    },
    /// A name server that takes updates (RFC 2136).
    Rfc2136 {
        /// A name or an address, without brackets.
        host: String,
        port: u16,
        /// `None`: updates are not signed.
        key: Option<TsigKey>,
    },
    /// A service that has zones for many.
    Hosted {
        /// As Caddy's module for it is called.
        service: String,
        /// By the names of Caddy's JSON. The values, most of which are secrets, are printed as dots.
        #[serde(serialize_with = "as_secret_values")]
        options: BTreeMap<String, String>,
    },
}

/// As it is serialized: without secrets.
impl fmt::Debug for DnsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exec { program, arguments } => {
                f.debug_struct("Exec").field("program", program).field("arguments", &arguments.len()).finish()
            }
            Self::Rfc2136 { host, port, key } => {
                let key = key.as_ref().map(|key| &key.name);
                f.debug_struct("Rfc2136").field("host", host).field("port", port).field("key", &key).finish()
            }
            Self::Hosted { service, options } => {
                let options: Vec<_> = options.keys().collect();
                f.debug_struct("Hosted").field("service", service).field("options", &options).finish()
            }
        }
    }
}

/// What updates are signed with (RFC 8945).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TsigKey {
    pub name: String,
    pub algorithm: TsigAlgorithm,
    /// Printed as dots.
    #[serde(serialize_with = "as_secret_bytes")]
    pub secret: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TsigAlgorithm {
    HmacSha1,
    HmacSha224,
    HmacSha256,
    HmacSha384,
    HmacSha512,
}

/// A challenge that the CA may choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Challenge {
    #[default]
    Enabled,
    Disabled,
}

/// Both ends are in the range. Default: both versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TlsVersions {
    pub min: TlsVersion,
    pub max: TlsVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

/// Cipher suites of TLS 1.2 with forward secrecy and authenticated encryption, by their IANA names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum CipherSuite {
    EcdheEcdsaAes128GcmSha256,
    EcdheEcdsaAes256GcmSha384,
    EcdheEcdsaChacha20Poly1305Sha256,
    EcdheRsaAes128GcmSha256,
    EcdheRsaAes256GcmSha384,
    EcdheRsaChacha20Poly1305Sha256,
}

/// A key exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Curve {
    /// With the post-quantum ML-KEM-768.
    X25519MlKem768,
    X25519,
    Secp256r1,
    Secp384r1,
}

impl Curve {
    pub const ALL: [Self; 4] = [Self::X25519MlKem768, Self::X25519, Self::Secp256r1, Self::Secp384r1];

    /// As Caddy calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::X25519MlKem768 => "x25519mlkem768",
            Self::X25519 => "x25519",
            Self::Secp256r1 => "secp256r1",
            Self::Secp384r1 => "secp384r1",
        }
    }
}

/// The key of a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum KeyType {
    Ed25519,
    #[default]
    P256,
    P384,
    Rsa2048,
    Rsa4096,
}

/// Certificates of clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClientAuth {
    pub mode: ClientAuthMode,
    /// PEM files of CAs. With any, a certificate that is verified has to be issued by one of them.
    #[serde(serialize_with = "as_texts")]
    pub trusted_cas: Vec<PathBuf>,
    /// PEM files of client certificates. With any, no other is accepted.
    #[serde(serialize_with = "as_texts")]
    pub trusted_leaves: Vec<PathBuf>,
    /// CAs beside those of the files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_cas: Vec<TrustSource>,
    /// Client certificates beside those of the files: DER in base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inline_leaves: Vec<String>,
}

/// Where CAs come from that are in no file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum TrustSource {
    /// DER in base64.
    Inline(String),
    /// Those that this machine trusts.
    System,
    /// The root of the local CA.
    LocalRoot,
}

/// What becomes of a client by its certificate. The modes that verify have a trusted CA or leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ClientAuthMode {
    /// Asked for, neither required nor verified.
    Request,
    /// Required, not verified.
    Require,
    /// Verified if there is one.
    VerifyIfGiven,
    /// The default if any certificate is trusted; otherwise `Require`.
    RequireAndVerify,
}

/// A protocol that a server speaks with clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum HttpProtocol {
    /// HTTP/1.0 and HTTP/1.1.
    H1,
    /// HTTP/2 over TLS.
    H2,
    /// HTTP/2 without TLS.
    H2c,
    /// HTTP/3, over TLS always.
    H3,
}

/// So many orders (`burst`) at most in so much time (`interval`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OrderLimit {
    pub orders: u32,
    pub interval: Duration,
}

/// Whether the root of the local CA is put among those that the system trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum InstallTrust {
    /// Where the process may do so.
    AtStart,
    /// `skip_install_trust`
    Never,
}

/// Whether answers of a CA's OCSP responder go along with certificates from files that name one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum OcspStapling {
    On,
    Off,
}

/// How long a certificate of the local CA is valid, as in Caddy (caddytls/internalissuer.go).
pub const INTERNAL_LIFETIME: Duration = Duration::from_secs(12 * 3600);

impl Default for TlsVersions {
    fn default() -> Self {
        Self { min: TlsVersion::Tls12, max: TlsVersion::Tls13 }
    }
}

impl CipherSuite {
    pub const ALL: [Self; 6] = [
        Self::EcdheEcdsaAes128GcmSha256,
        Self::EcdheEcdsaAes256GcmSha384,
        Self::EcdheEcdsaChacha20Poly1305Sha256,
        Self::EcdheRsaAes128GcmSha256,
        Self::EcdheRsaAes256GcmSha384,
        Self::EcdheRsaChacha20Poly1305Sha256,
    ];

    /// The name in IANA's registry of TLS cipher suites.
    pub fn name(self) -> &'static str {
        match self {
            Self::EcdheEcdsaAes128GcmSha256 => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            Self::EcdheEcdsaAes256GcmSha384 => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheEcdsaChacha20Poly1305Sha256 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            Self::EcdheRsaAes128GcmSha256 => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            Self::EcdheRsaAes256GcmSha384 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheRsaChacha20Poly1305Sha256 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        }
    }
}

fn as_texts<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.display().to_string()))
}

fn as_secret<S: Serializer>(_: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("…")
}

fn as_secret_bytes<S: Serializer>(_: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("…")
}

fn as_secret_values<S: Serializer>(
    secrets: &BTreeMap<String, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(secrets.keys().map(|name| (name, "…")))
}

fn as_secrets<S: Serializer>(secrets: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(secrets.iter().map(|_| "…"))
}
