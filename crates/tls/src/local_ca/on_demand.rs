//! Certificates that are made in the handshake that asks for a name.
//!
//! Also those of `*.localhost` and other wildcards below a single label: clients refuse these as if they were `*.com`
//! (OpenSSL's `valid_star`, webpki), so each subdomain gets a certificate of its own.

use super::LocalCa;
use super::leaf::Profile;
use crate::Error;
use crate::catalog::Certificates;
use crate::certificate::{self, Certificate};
use crate::recent::Recent;
use crate::sites::normal_name;
use crate::{clock, crypto};
use rcgen::KeyPair;
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::{CertifiedKey, SigningKey};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The names are the clients' choice. Of so many certificates those that were asked for last are kept; others are signed
/// again.
const MOST: usize = 1024;

/// In errors.
const SUBJECT: &str = "names on demand";

/// Only in memory: clients could fill a disk, and an I/O thread does not wait for one. A signature costs about what the
/// handshake costs that it is for.
#[derive(Debug)]
pub(crate) struct OnDemand {
    local_ca: Arc<LocalCa>,
    profile: Profile,
    /// Of all its certificates: a key of RSA takes up to seconds to make.
    key: KeyPair,
    /// The same for rustls.
    signing_key: Arc<dyn SigningKey>,
    /// Locked for no longer than a look or an insertion.
    made: Mutex<Recent<Certificate>>,
}

impl OnDemand {
    /// Whether clients refuse a certificate for this wildcard.
    pub fn is_needed_for(name: &str) -> bool {
        name.strip_prefix("*.").is_some_and(|rest| !rest.contains('.'))
    }

    /// Blocks: the CA is read or made.
    ///
    /// # Errors
    /// What is wrong with the CA: it is to be known before the first handshake.
    pub fn new(local_ca: Arc<LocalCa>, profile: Profile) -> Result<Self, Error> {
        local_ca.root_path()?;
        let key = super::authority::new_key(SUBJECT, profile.key_type)?;
        let der = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let bad =
            |error: rustls::Error| Error::Sign { subject: SUBJECT.to_owned(), reason: error.to_string() };
        let signing_key = crypto::provider().key_provider.load_private_key(der).map_err(bad)?;
        Ok(Self { local_ca, profile, key, signing_key, made: Mutex::new(Recent::new(MOST)) })
    }

    /// `None` if it cannot be made.
    fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let now = clock::unix_seconds(&*self.local_ca.clock);
        let is_fit = |certificate: &&Certificate| {
            certificate.validity.contains(now) && !certificate.validity.is_due(now)
        };
        if let Some(known) = self.made().get(name).filter(is_fit) {
            return Some(Arc::clone(&known.certified));
        }
        match self.sign(name) {
            Ok(new) => {
                let certified = Arc::clone(&new.certified);
                self.made().insert(name, new);
                Some(certified)
            }
            // The name is the client's choice, and the other is told by who renews the CA.
            Err(Error::BadName { .. } | Error::Outlived) => None,
            Err(error) => {
                tracing::error!(name, %error, "cannot make a certificate on demand");
                None
            }
        }
    }

    fn sign(&self, name: &str) -> Result<Certificate, Error> {
        let name = normal_name(name)?;
        let chain = self.local_ca.sign(&name, self.profile, &self.key)?;
        let bad = |reason: String| Error::Sign { subject: name.clone(), reason };
        let (validity, names) = certificate::facts(&chain[0]).map_err(bad)?;
        let certified = Arc::new(CertifiedKey::new(chain, Arc::clone(&self.signing_key)));
        Ok(Certificate { certified, validity, names })
    }

    fn made(&self) -> MutexGuard<'_, Recent<Certificate>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Certificates for OnDemand {
    fn choose(&self, name: Option<&str>, _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.certificate(name?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{AuthorityOptions, Internal};
    use crate::store::Store;
    use crate::tests::ManualClock;
    use std::time::Duration;

    fn on_demand(directory: &tempfile::TempDir, clock: &Arc<ManualClock>) -> OnDemand {
        let local_ca =
            LocalCa::new(Store::new(directory.path()), AuthorityOptions::default(), Arc::clone(clock) as _);
        OnDemand::new(Arc::new(local_ca), Profile::from(&Internal::default())).unwrap()
    }

    #[test]
    fn certificates_are_kept_until_they_are_due_and_not_without_bound() {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let on_demand = on_demand(&directory, &clock);
        let of = |name: &str| on_demand.certificate(name).unwrap();
        let first = of("a.localhost");
        assert!(Arc::ptr_eq(&first, &of("a.localhost")));
        assert!(!Arc::ptr_eq(&first, &of("b.localhost")));
        clock.advance(Duration::from_secs(9 * 3600));
        let second = of("a.localhost");
        assert!(!Arc::ptr_eq(&first, &second));
        for number in 0..MOST {
            of(&format!("{number}.localhost"));
            assert!(Arc::ptr_eq(&second, &of("a.localhost")), "what is used stays");
        }
        let mut made = on_demand.made.lock().unwrap();
        assert!(made.iter().count() <= MOST);
        assert!(made.get("0.localhost").is_none());
    }

    /// An I/O thread would wait for them, and all others with it.
    #[test]
    fn a_handshake_needs_neither_files_nor_locks() {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let on_demand = on_demand(&directory, &clock);
        std::fs::remove_dir_all(directory.path()).unwrap();
        assert!(on_demand.certificate("a.test").is_some());
        assert!(on_demand.certificate("a_b c").is_none());
        assert!(!directory.path().exists());
    }

    #[tokio::test]
    async fn a_ca_that_has_run_out_is_renewed_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let on_demand = on_demand(&directory, &clock);
        clock.advance(Duration::from_secs(8 * 24 * 3600));
        assert!(on_demand.certificate("a.test").is_none());
        on_demand.local_ca.is_outlived().await;
        on_demand.local_ca.refresh();
        assert!(on_demand.certificate("a.test").is_some());
    }

    #[test]
    fn only_wildcards_below_one_label_need_them() {
        assert!(OnDemand::is_needed_for("*.localhost"));
        assert!(!OnDemand::is_needed_for("*.example.com"));
        assert!(!OnDemand::is_needed_for("localhost"));
    }
}
