//! The local CA, as Caddy shows it (caddypki/adminapi.go).

use serde::{Deserialize, Serialize};

/// Its certificates, in PEM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateAuthority {
    /// `local`: there is no other.
    pub id: String,
    pub name: String,
    pub root_common_name: String,
    pub intermediate_common_name: String,
    pub root_certificate: String,
    pub intermediate_certificate: String,
}

impl CertificateAuthority {
    /// The intermediate certificate, and behind it the root.
    pub(crate) fn chain(&self) -> String {
        let ended = |pem: &str| format!("{}\n", pem.trim_end());
        ended(&self.intermediate_certificate) + &ended(&self.root_certificate)
    }
}
