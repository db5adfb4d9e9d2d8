//! What the configuration says, as plain data.

use crate::acme::{Acme, OrderLimit};
use crate::key_type::KeyType;
use crate::{Policy, RedisStorage};
use std::path::PathBuf;
use std::time::Duration;

/// Of the whole server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The root of the storage in Caddy's layout, as `/var/lib/caddy/.local/share/caddy`. It is made if it is missing.
    pub storage: PathBuf,
    /// Where certificates, accounts and locks are instead, for several instances; the directory has copies then, for
    /// when it cannot be reached.
    pub redis: Option<RedisStorage>,
    /// The name whose certificate a client gets that names none (global option `default_sni`).
    pub default_sni: Option<String>,
    /// The name whose certificate a client gets that names one without a certificate (global option `fallback_sni`).
    pub fallback_sni: Option<String>,
    pub tickets: Tickets,
    /// How often certificates are looked at for renewal. Those with a short lifetime are looked at more often.
    pub renew_interval: Duration,
    pub on_demand: OnDemand,
    pub authority: AuthorityOptions,
}

/// What the local CA is like (global option `pki`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorityOptions {
    /// Common names of certificates that are made. `None`: Regent's.
    pub root_name: Option<String>,
    pub intermediate_name: Option<String>,
    /// Of the intermediate. `None`: 7 days. Never longer than the root.
    pub intermediate_lifetime: Option<Duration>,
    /// A root of somebody else's, which is not made nor renewed here. `None`: the one in the storage.
    pub root: Option<KeyPairFiles>,
}

/// Who bounds the names that get certificates on demand (global option `on_demand_tls`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OnDemand {
    /// The URL that is asked, with `domain=NAME` in its query, before a certificate is made or ordered; any status but
    /// 2xx is a no. `None`: all names that a site is for are allowed.
    pub ask: Option<String>,
    /// Of orders at public CAs. `None`: only [`Acme`]'s own of each account, 10 in 10 s.
    pub limit: Option<OrderLimit>,
}

impl Options {
    /// Of a storage for which nothing else is to be said.
    pub fn of_storage(storage: impl Into<PathBuf>) -> Self {
        Self {
            storage: storage.into(),
            redis: None,
            default_sni: None,
            fallback_sni: None,
            tickets: Tickets::default(),
            renew_interval: Duration::from_secs(600),
            on_demand: OnDemand::default(),
            authority: AuthorityOptions::default(),
        }
    }
}

/// Session tickets, with which a client comes back without a full handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tickets {
    /// With keys that are kept in the storage and replaced every 12 hours.
    #[default]
    Stored,
    /// No resumption at all.
    Disabled,
}

/// One site of a listening address. Several may have a name in common if they have the rest in common too.
#[derive(Debug, Clone)]
pub struct Site {
    /// Host names (`example.com`), wildcards (`*.example.com`) and IP addresses. Empty: every name that no other site
    /// has.
    pub names: Vec<String>,
    pub certificate: CertificateSource,
    pub policy: Policy,
    pub client_auth: Option<ClientAuth>,
}

/// Where the certificates of a site come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// Certificates that somebody else renews. They are loaded again when their files change.
    Files(CertificateFiles),
    /// Those of all other sites, also of other addresses, whichever fits the name in the handshake.
    Shared,
    /// Those of the local CA.
    Internal(Internal),
    /// One of a public CA for each name.
    Acme(Vec<Acme>, Issuance),
}

/// Several certificates for one name, as one with an ECDSA and one with an RSA key, are chosen by what the client can
/// verify.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateFiles {
    pub pairs: Vec<KeyPairFiles>,
    /// Each with `.pem` files, also in directories below it, that hold a chain and its key
    /// (caddytls/folderloader.go).
    pub directories: Vec<PathBuf>,
}

/// PEM files: the chain from the site's own certificate on, and its key. Both may be the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPairFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What certificates of the local CA are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Internal {
    /// Shorter if the intermediate certificate of the CA ends before.
    pub lifetime: Duration,
    pub key_type: KeyType,
    pub issuance: Issuance,
}

/// When certificates are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Issuance {
    /// With the site table, one for each name.
    #[default]
    AtStart,
    /// In the handshake that asks for a name. Those of the local CA are not stored.
    OnDemand,
}

/// 12 hours (Caddy's `defaultInternalCertLifetime`), at start.
impl Default for Internal {
    fn default() -> Self {
        let lifetime = Duration::from_secs(12 * 3600);
        Self { lifetime, key_type: KeyType::default(), issuance: Issuance::default() }
    }
}

/// What clients have to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAuth {
    pub mode: ClientAuthMode,
    /// PEM files of CAs. With any, a certificate that is verified must be of one of them.
    pub trusted_ca: Vec<PathBuf>,
    /// PEM files of certificates of clients. With any, no other is accepted.
    pub trusted_leaves: Vec<PathBuf>,
    /// CAs beside those of the files.
    pub other_ca: Vec<TrustSource>,
    /// Certificates of clients beside those of the files: DER in base64.
    pub inline_leaves: Vec<String>,
}

/// Where CAs come from that are in no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustSource {
    /// DER in base64.
    Inline(String),
    /// Those that this machine trusts.
    System,
    /// The root of the local CA, which is made if there is none.
    LocalRoot,
}

/// The modes of Caddy's `client_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuthMode {
    /// Asked for; any or none will do.
    Request,
    /// Any will do.
    Require,
    /// None will do, but what is given must be trusted.
    VerifyIfGiven,
    /// Must be given and be trusted.
    RequireAndVerify,
}

impl Site {
    /// Whether a client cannot tell which of the two it is connected to.
    pub(crate) fn is_served_like(&self, other: &Self) -> bool {
        self.certificate == other.certificate
            && self.policy == other.policy
            && self.client_auth == other.client_auth
    }
}
