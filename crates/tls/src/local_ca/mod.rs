//! A certificate authority for names that no public one certifies: `localhost`, its subdomains, IP addresses, and all
//! names under `local_certs`. Lifetimes and files are those of Caddy's `caddypki`; one that Caddy has made is used.

mod authority;
mod described;
mod leaf;
mod on_demand;

use crate::Error;
use crate::certificate::Certificate;
use crate::clock::{self, Clock};
use crate::options::AuthorityOptions;
use crate::store::{Lock, Store, local_authority};
use authority::Authority;
pub use described::{AuthorityCertificate, LocalAuthority};
pub(crate) use leaf::Profile;
pub(crate) use on_demand::OnDemand;
use rcgen::KeyPair;
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Handshakes find in memory what they need ([`Self::sign`]); all else blocks. What cannot be stored is used all the same,
/// as long as this lives.
#[derive(Debug)]
pub(crate) struct LocalCa {
    store: Store,
    options: AuthorityOptions,
    clock: Arc<dyn Clock>,
    /// What was loaded or made last. Locked for no longer than it takes to clone an `Arc`.
    known: Mutex<Option<Arc<Chain>>>,
    /// A handshake found that it cannot be used any more.
    is_outlived: Notify,
}

/// What signs leaves, and what they are verified against.
struct Chain {
    root: Authority,
    intermediate: Authority,
    /// With the key of the intermediate.
    issuer: Issuer,
    /// The intermediate is in memory only.
    is_unstored: bool,
}

type Issuer = rcgen::Issuer<'static, KeyPair>;

impl LocalCa {
    pub fn new(store: Store, options: AuthorityOptions, clock: Arc<dyn Clock>) -> Self {
        Self { store, options, clock, known: Mutex::default(), is_outlived: Notify::new() }
    }

    /// A file with the root certificate, which is made if there is none.
    pub fn root_path(&self) -> Result<PathBuf, Error> {
        self.chain()?;
        if let Some(root) = &self.options.root {
            return Ok(root.certificate.clone());
        }
        let key = local_authority("root.crt");
        Ok(self.store.file(&key)?.unwrap_or_else(|| self.store.path(&key)))
    }

    /// A file with the root certificate, if there is one.
    pub fn stored_root_path(&self) -> Result<Option<PathBuf>, Error> {
        match &self.options.root {
            Some(root) => Ok(Some(root.certificate.clone()).filter(|path| path.exists())),
            None => self.store.file(&local_authority("root.crt")),
        }
    }

    /// Its certificates, if it is there. Nothing is made or renewed.
    pub fn stored(&self) -> Option<LocalAuthority> {
        described::read(&self.store, self.options.root.as_ref())
    }

    /// A certificate for one name, of which at least a third of the lifetime is left: the stored one or a new one.
    pub fn certificate(&self, name: &str, profile: Profile) -> Result<Certificate, Error> {
        let chain = self.chain()?;
        let now = self.now();
        let load = || leaf::load(&self.store, name, profile, &chain, now);
        if let Some(stored) = load() {
            return Ok(stored);
        }
        let lock = self.store.lock(&format!("issue_cert_{name}"));
        // Another process may have been faster.
        if lock.is_ok()
            && let Some(stored) = load()
        {
            return Ok(stored);
        }
        let issued = leaf::issue(name, profile, &chain, now)?;
        if let Err(error) = lock.and_then(|_lock| issued.save(&self.store, name)) {
            tracing::warn!(name, %error, "a new certificate of the local CA is served but not stored; it is lost at the next start");
        }
        issued.certificate(&self.store, name)
    }

    /// Renews what is due and stores what could not be stored, if the CA is used at all: handshakes only take what is in
    /// memory.
    pub fn refresh(&self) {
        if self.known().is_none() {
            return;
        }
        if let Err(error) = self.update(|now| self.load_or_make_chain(now)) {
            tracing::error!(%error, "cannot renew the local CA");
        }
    }

    /// Ends when a handshake has found that the CA is to be renewed.
    pub async fn is_outlived(&self) {
        self.is_outlived.notified().await;
    }

    /// A new certificate for one name and this key, with its chain. Does not block.
    fn sign(
        &self,
        name: &str,
        profile: Profile,
        key: &KeyPair,
    ) -> Result<Vec<CertificateDer<'static>>, Error> {
        let now = self.now();
        let Some(chain) = self.known().filter(|chain| chain.is_valid(now)) else {
            self.is_outlived.notify_one();
            return Err(Error::Outlived);
        };
        let leaf = leaf::sign(name, profile.lifetime, key, &chain, now)?;
        Ok(vec![leaf.into(), chain.intermediate.certificate.clone()])
    }

    /// Root and intermediate, made or renewed where needed. One that could not be stored does, so that not every certificate
    /// waits for the storage again.
    fn chain(&self) -> Result<Arc<Chain>, Error> {
        self.update(|now| match self.unstored(now)? {
            Some(unstored) => Ok(unstored),
            None => self.load_or_make_chain(now),
        })
    }

    /// Takes the chain that this finds. If there is none, the one that is in memory goes on, as long as it is valid.
    fn update(&self, find: impl FnOnce(i64) -> Result<Arc<Chain>, Error>) -> Result<Arc<Chain>, Error> {
        let now = self.now();
        let chain = find(now).or_else(|error| {
            let Some(known) = self.known().filter(|known| known.is_valid(now)) else { return Err(error) };
            tracing::warn!(%error, "the local CA goes on with what it has in memory");
            Ok(known)
        })?;
        *self.lock_known() = Some(Arc::clone(&chain));
        Ok(chain)
    }

    /// One that is only in memory, of the root that is stored.
    fn unstored(&self, now: i64) -> Result<Option<Arc<Chain>>, Error> {
        let Some(known) = self.known().filter(|known| known.is_unstored && known.is_fresh(now)) else {
            return Ok(None);
        };
        let root = authority::load_root(&self.store, &self.options, now)?;
        Ok(root.is_some_and(|root| root.certificate == known.root.certificate).then_some(known))
    }

    fn load_or_make_chain(&self, now: i64) -> Result<Arc<Chain>, Error> {
        let load = || authority::load_chain(&self.store, &self.options, now);
        if let Some(stored) = load()?.filter(|stored| stored.is_fresh(now)) {
            return Ok(Arc::new(stored));
        }
        let lock = self.store.lock("pki_local");
        // Another process may have been faster.
        let stored = match load()? {
            Some(fresh) if fresh.is_fresh(now) => return Ok(Arc::new(fresh)),
            stored => stored,
        };
        self.renew_chain(lock, now).or_else(|error| {
            let Some(stored) = stored else { return Err(error) };
            tracing::warn!(%error, "the intermediate certificate of the local CA is due, and cannot be renewed");
            Ok(Arc::new(stored))
        })
    }

    fn renew_chain(&self, lock: Result<Lock, Error>, now: i64) -> Result<Arc<Chain>, Error> {
        let (root, lock) = match authority::load_root(&self.store, &self.options, now)? {
            Some(root) => (root, lock),
            None => {
                let lock = lock?;
                (authority::make_root(&self.store, &self.options, now)?, Ok(lock))
            }
        };
        let mut new = authority::make_intermediate(&self.store, &self.options, root, now)?;
        let Err(error) = lock.and_then(|_lock| authority::save_intermediate(&self.store, &new)) else {
            new.is_unstored = false;
            return Ok(Arc::new(new));
        };
        tracing::warn!(%error, "a new intermediate certificate of the local CA is used but not stored");
        // That of the last time will do as well.
        let is_as_good =
            |known: &Arc<Chain>| known.root.certificate == new.root.certificate && known.is_fresh(now);
        Ok(self.known().filter(is_as_good).unwrap_or_else(|| Arc::new(new)))
    }

    fn known(&self) -> Option<Arc<Chain>> {
        self.lock_known().clone()
    }

    fn lock_known(&self) -> MutexGuard<'_, Option<Arc<Chain>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> i64 {
        clock::unix_seconds(&*self.clock)
    }
}

impl Chain {
    fn is_valid(&self, now: i64) -> bool {
        now <= self.root.validity.until && self.intermediate.validity.contains(now)
    }

    fn is_fresh(&self, now: i64) -> bool {
        self.is_valid(now) && !self.intermediate.validity.is_due(now)
    }
}

/// Without its key.
impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("intermediate", &self.intermediate.validity).finish_non_exhaustive()
    }
}
