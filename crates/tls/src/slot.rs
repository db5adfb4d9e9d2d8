//! A place for a certificate that can be exchanged while it is served.

use crate::certificate::Certificate;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::{Arc, PoisonError, RwLock};

/// Read once for each full handshake, for as long as it takes to clone an `Arc`.
#[derive(Debug)]
pub(crate) struct Slot(RwLock<Arc<Certificate>>);

impl Slot {
    pub fn new(certificate: Arc<Certificate>) -> Arc<Self> {
        Arc::new(Self(RwLock::new(certificate)))
    }

    pub fn current(&self) -> Arc<Certificate> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Handshakes that have begun end with the old one.
    pub fn replace(&self, certificate: Arc<Certificate>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = certificate;
    }
}

/// Which slot a client gets was decided from its hello before (see [`SiteTable`](crate::SiteTable)).
impl ResolvesServerCert for Slot {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current().certified))
    }
}
