//! Certificates for `*.localhost` and other wildcards below a single label. Clients refuse these as if they were `*.com`
//! (OpenSSL's `valid_star`, webpki), so each subdomain gets a certificate of its own when it is first asked for.

use super::LocalCa;
use crate::certificate::Certificate;
use crate::clock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The names are the clients' choice: with more, all are forgotten and signed again when they are asked for.
const MOST: usize = 256;

/// Only in memory. A new one costs about what the handshake costs that it is for.
#[derive(Debug)]
pub(crate) struct Subdomains {
    local_ca: Arc<LocalCa>,
    signed: Mutex<HashMap<String, Certificate>>,
}

impl Subdomains {
    /// Whether clients refuse this wildcard.
    pub fn are_needed_for(name: &str) -> bool {
        name.strip_prefix("*.").is_some_and(|rest| !rest.contains('.'))
    }

    pub fn new(local_ca: Arc<LocalCa>) -> Self {
        Self { local_ca, signed: Mutex::default() }
    }

    fn certificate(&self, name: String) -> Option<Arc<CertifiedKey>> {
        let now = clock::unix_seconds(&*self.local_ca.clock);
        let mut signed = self.signed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = signed.get(&name).filter(|known| !known.validity.is_due(now)) {
            return Some(Arc::clone(&known.certified));
        }
        let new = self
            .local_ca
            .sign(&name)
            .inspect_err(|error| tracing::error!(name, %error, "cannot sign"))
            .ok()?;
        if signed.len() >= MOST {
            signed.clear();
        }
        let certified = Arc::clone(&new.certified);
        signed.insert(name, new);
        Some(certified)
    }
}

impl ResolvesServerCert for Subdomains {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certificate(hello.server_name()?.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::tests::ManualClock;
    use std::time::Duration;

    #[test]
    fn certificates_are_kept_until_they_are_due_and_not_without_bound() {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let local_ca = Arc::new(LocalCa::new(Store::new(directory.path()), Arc::clone(&clock) as _));
        let subdomains = Subdomains::new(local_ca);
        let of = |name: &str| subdomains.certificate(name.to_owned()).unwrap();
        let first = of("a.localhost");
        assert!(Arc::ptr_eq(&first, &of("a.localhost")));
        assert!(!Arc::ptr_eq(&first, &of("b.localhost")));
        clock.advance(Duration::from_secs(9 * 3600));
        assert!(!Arc::ptr_eq(&first, &of("a.localhost")));
        for number in 0..MOST {
            of(&format!("{number}.localhost"));
        }
        assert!(subdomains.signed.lock().unwrap().len() <= MOST);
    }

    #[test]
    fn only_wildcards_below_one_label_need_them() {
        assert!(Subdomains::are_needed_for("*.localhost"));
        assert!(!Subdomains::are_needed_for("*.example.com"));
        assert!(!Subdomains::are_needed_for("localhost"));
    }
}
