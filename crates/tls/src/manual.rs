//! Certificates from files that somebody else renews.

use crate::Error;
use crate::certificate::{self, Certificate};
use crate::clock::{self, Clock};
use crate::slot::Slot;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct ManualCertificate {
    paths: Paths,
    slot: Arc<Slot>,
    /// Of the files that were loaded last, or that could not be loaded.
    seen: Mutex<Option<Stamp>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paths {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Changes when a file is replaced or rewritten.
type Stamp = [(u64, u64, i64, i64); 2];

impl ManualCertificate {
    pub fn load(paths: Paths, clock: &dyn Clock) -> Result<(Self, Certificate), Error> {
        let seen = paths.stamp();
        let loaded = paths.load()?;
        paths.remark(&loaded, clock);
        let slot = Slot::new(Arc::clone(&loaded.certified));
        Ok((Self { paths, slot, seen: Mutex::new(seen) }, loaded))
    }

    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    pub fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Files that cannot be used, as while they are being replaced, leave the old certificate where it is.
    pub fn reload_if_changed(&self, clock: &dyn Clock) {
        let stamp = self.paths.stamp();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp == *seen {
            return;
        }
        *seen = stamp;
        match self.paths.load() {
            Ok(loaded) => {
                tracing::info!(certificate = %self.paths.certificate.display(), "loaded a changed certificate");
                self.paths.remark(&loaded, clock);
                self.slot.replace(loaded.certified);
            }
            Err(error) => {
                tracing::warn!(%error, "a changed certificate was not loaded; the old one is served")
            }
        }
    }
}

impl Paths {
    fn load(&self) -> Result<Certificate, Error> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(|error| Error::read(path, error));
        let (chain, key) = (read(&self.certificate)?, read(&self.key)?);
        Certificate::from_pem((&self.certificate, &chain), (&self.key, &key))
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
