//! A certificate authority for names that no public one certifies: `localhost`, its subdomains, IP addresses, and all
//! names under `local_certs`. Lifetimes and files are those of Caddy's `caddypki`; one that Caddy has made is used.

mod authority;
mod leaf;
mod on_demand;

use crate::Error;
use crate::certificate::Certificate;
use crate::clock::{self, Clock};
use crate::store::{Store, local_authority};
use authority::Authority;
pub(crate) use leaf::Profile;
pub(crate) use on_demand::OnDemand;
use rcgen::KeyPair;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct LocalCa {
    store: Store,
    clock: Arc<dyn Clock>,
}

/// What signs leaves, and what they are verified against.
struct Chain {
    root: Authority,
    intermediate: Authority,
}

impl LocalCa {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Where the root certificate is, which is made if there is none.
    pub fn root_path(&self) -> Result<PathBuf, Error> {
        self.chain()?;
        Ok(self.store.path(&local_authority("root.crt")))
    }

    /// Where the root certificate is, if there is one.
    pub fn stored_root_path(&self) -> Option<PathBuf> {
        Some(self.store.path(&local_authority("root.crt"))).filter(|path| path.is_file())
    }

    /// A certificate for one name, of which at least a third of the lifetime is left: the stored one or a new one.
    pub fn certificate(&self, name: &str, profile: Profile) -> Result<Certificate, Error> {
        let chain = self.chain()?;
        let now = clock::unix_seconds(&*self.clock);
        if let Some(stored) = leaf::load(&self.store, name, profile, &chain, now) {
            return Ok(stored);
        }
        let _lock = self.store.lock(&format!("issue_cert_{name}"))?;
        // Another process may have been faster.
        match leaf::load(&self.store, name, profile, &chain, now) {
            Some(stored) => Ok(stored),
            None => leaf::issue(&self.store, name, profile, &chain, now),
        }
    }

    /// A new certificate for one name and this key, which is not stored.
    fn sign(&self, name: &str, profile: Profile, key: &KeyPair) -> Result<Certificate, Error> {
        let now = clock::unix_seconds(&*self.clock);
        leaf::sign(&self.store, name, profile.lifetime, key, &self.chain()?, now)?
            .certificate(&self.store, name)
    }

    /// Root and intermediate, made or renewed where needed.
    fn chain(&self) -> Result<Chain, Error> {
        let now = clock::unix_seconds(&*self.clock);
        if let Some(chain) = authority::load_chain(&self.store, now)? {
            return Ok(chain);
        }
        let _lock = self.store.lock("pki_local")?;
        match authority::load_chain(&self.store, now)? {
            Some(chain) => Ok(chain),
            None => authority::make_chain(&self.store, now),
        }
    }
}
