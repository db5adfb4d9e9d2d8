//! What the configuration says, as plain data.

use crate::Policy;
use std::path::PathBuf;

/// Of the whole server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The root of the storage in Caddy's layout, as `/var/lib/caddy/.local/share/caddy`. It is made if it is missing.
    pub storage: PathBuf,
    /// The name whose certificate a client gets that names none (global option `default_sni`).
    pub default_sni: Option<String>,
    pub tickets: Tickets,
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
    /// PEM files, the chain from the site's own certificate on. They are loaded again when they change.
    Files { certificate: PathBuf, key: PathBuf },
    /// One of the local CA for each name.
    Internal,
}

/// What clients have to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAuth {
    pub mode: ClientAuthMode,
    /// PEM files of the CAs that client certificates must be of.
    pub trusted_ca: Vec<PathBuf>,
}

/// The modes of Caddy's `client_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuthMode {
    /// Asked for; any or none will do.
    Request,
    /// Any will do.
    Require,
    /// None will do, but what is given must be of a trusted CA.
    VerifyIfGiven,
    /// Must be given and be of a trusted CA.
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
