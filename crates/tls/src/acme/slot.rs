//! A place for a certificate that may not be there yet.

use crate::certificate::Certificate;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::{Arc, PoisonError, RwLock};

/// Read once for each full handshake, for as long as it takes to clone an `Arc`.
#[derive(Debug, Default)]
pub(crate) struct AcmeSlot(RwLock<Option<Arc<Certificate>>>);

impl AcmeSlot {
    pub fn current(&self) -> Option<Arc<Certificate>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn replace(&self, certificate: Arc<Certificate>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(certificate);
    }
}

impl ResolvesServerCert for AcmeSlot {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current()?.certified))
    }
}
