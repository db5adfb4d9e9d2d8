//! TLS of the whole server.

use super::{InstallTrust, LocalCa, OcspStapling, OrderLimit};
use crate::model::{RedisStorage, as_text};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// What the global options say about TLS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GlobalTls {
    /// The port of HTTPS addresses that name none. Default: 443.
    pub https_port: u16,
    /// The name to take for that of a handshake without one.
    pub default_sni: Option<String>,
    /// The name whose certificate serves a handshake for a name that has none.
    pub fallback_sni: Option<String>,
    /// Where certificates, accounts and the local CA are kept, in Caddy's layout; absolute. Default: `caddy` in
    /// `$XDG_DATA_HOME`, in `$HOME/.local/share` or in the working directory (Caddy's storage.go, AppDataDir).
    #[serde(serialize_with = "as_text")]
    pub storage: PathBuf,
    /// No option has named it, so that for another user it is another one.
    #[serde(skip)]
    pub is_storage_default: bool,
    /// Where they are kept instead, for several instances; the directory has copies then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisStorage>,
    pub install_trust: InstallTrust,
    pub ocsp_stapling: OcspStapling,
    /// How often certificates are looked at for renewal. Default: 10 min.
    pub renew_interval: Duration,
    /// The URL that is asked whether a name may have a certificate on demand.
    pub on_demand_ask: Option<String>,
    /// Of orders on demand; `None`: only what a CA's account may ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_demand_limit: Option<OrderLimit>,
    #[serde(skip_serializing_if = "LocalCa::is_usual")]
    pub local_ca: LocalCa,
}

impl Default for GlobalTls {
    fn default() -> Self {
        Self {
            https_port: 443,
            default_sni: None,
            fallback_sni: None,
            storage: PathBuf::from("caddy"),
            is_storage_default: true,
            redis: None,
            install_trust: InstallTrust::AtStart,
            ocsp_stapling: OcspStapling::On,
            renew_interval: Duration::from_secs(600),
            on_demand_ask: None,
            on_demand_limit: None,
            local_ca: LocalCa::default(),
        }
    }
}
