//! Certificates that come about in the handshake that asks for them: what has to happen before it goes on.

use crate::acme::{OnDemandNames, Unready};
use crate::catalog::Certificates;
use crate::permission::Permission;
use rustls::SignatureScheme;
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// Of one site. Names are normal.
#[derive(Debug, Clone)]
pub(crate) enum OnDemandGate {
    /// A public CA is asked.
    Acme(Arc<OnDemandNames>),
    /// The local CA signs at once, if the name is allowed.
    Local(Arc<Permission>),
}

impl OnDemandGate {
    /// Whether the handshake can go on at once.
    pub fn is_open(&self, name: &str) -> bool {
        match self {
            Self::Acme(names) => names.is_ready(name),
            Self::Local(permission) => permission.is_allowed(name),
        }
    }

    /// Waits until it can.
    pub async fn open(&self, name: &str) -> Result<(), Unready> {
        match self {
            Self::Acme(names) => names.prepare(name).await,
            Self::Local(permission) => permission.allow(name).await.map_err(|_| Unready::Refused),
        }
    }
}

impl Certificates for OnDemandNames {
    fn choose(&self, name: Option<&str>, _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.certificate(name?)?.certified))
    }
}
