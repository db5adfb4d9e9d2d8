//! A chain and its key in files.

use crate::Error;
use crate::certificate::{self, Certificate};
use crate::clock::{self, Clock};
use crate::options::KeyPairFiles;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Pair {
    paths: KeyPairFiles,
    /// `None`: the files have never been fit for use.
    current: Option<Arc<Certificate>>,
    /// Of the files that were loaded last, or that could not be loaded.
    seen: Option<Stamp>,
}

/// Changes when a file is replaced or rewritten.
type Stamp = [(u64, u64, i64, i64); 2];

impl Pair {
    pub fn load(paths: KeyPairFiles, clock: &dyn Clock) -> Result<Self, Error> {
        let seen = paths.stamp();
        let current = Some(paths.load(clock)?);
        Ok(Self { paths, current, seen })
    }

    /// To be loaded as if it had changed.
    pub fn unloaded(paths: KeyPairFiles) -> Self {
        Self { paths, current: None, seen: None }
    }

    pub fn paths(&self) -> &KeyPairFiles {
        &self.paths
    }

    pub fn current(&self) -> Option<&Arc<Certificate>> {
        self.current.as_ref()
    }

    /// Returns whether there is another certificate now.
    pub fn reload_if_changed(&mut self, clock: &dyn Clock) -> bool {
        let stamp = self.paths.stamp();
        if stamp == self.seen {
            return false;
        }
        self.seen = stamp;
        match self.paths.load(clock) {
            Ok(loaded) => {
                tracing::info!(certificate = %self.paths.certificate.display(), "loaded a changed certificate");
                self.current = Some(loaded);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "a changed certificate was not loaded; what was there before is served");
                false
            }
        }
    }
}

impl KeyPairFiles {
    fn load(&self, clock: &dyn Clock) -> Result<Arc<Certificate>, Error> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(|error| Error::read(path, error));
        let (chain, key) = (read(&self.certificate)?, read(&self.key)?);
        let loaded = Certificate::from_pem((&self.certificate, &chain), (&self.key, &key))?;
        self.remark(&loaded, clock);
        Ok(Arc::new(loaded))
    }

    /// `None` if one is missing.
    fn stamp(&self) -> Option<Stamp> {
        let of = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
        };
        Some([of(&self.certificate)?, of(&self.key)?])
    }

    /// What is served all the same, but should be known.
    fn remark(&self, loaded: &Certificate, clock: &dyn Clock) {
        let file = self.certificate.display();
        let now = clock::unix_seconds(clock);
        certificate::warn_if_readable_by_others(&self.key);
        if now > loaded.validity.until {
            tracing::warn!(certificate = %file, "this certificate has expired; clients will refuse it");
        } else if now < loaded.validity.from {
            tracing::warn!(certificate = %file, "this certificate is not valid yet; clients will refuse it");
        }
        if loaded.is_rsa() {
            tracing::debug!(certificate = %file, "an RSA key costs a multiple of an ECDSA key at each full handshake");
        }
    }
}
