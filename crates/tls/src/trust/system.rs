//! The stores of distributions, which programs with OpenSSL, GnuTLS and Go read.

use super::{Outcome, Root, TrustOutcome, TrustStores, command};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(super) struct SystemStore {
    pub name: &'static str,
    /// Below the root; the store is there if this is.
    directory: &'static str,
    extension: &'static str,
    update: (&'static str, &'static [&'static str]),
}

pub(super) const STORES: [SystemStore; 2] = [
    SystemStore {
        name: "Debian's trust store (update-ca-certificates)",
        directory: "usr/local/share/ca-certificates",
        extension: "crt",
        update: ("update-ca-certificates", &[]),
    },
    SystemStore {
        name: "Fedora's trust store (update-ca-trust)",
        directory: "etc/pki/ca-trust/source/anchors",
        extension: "pem",
        update: ("update-ca-trust", &["extract"]),
    },
];

pub(super) fn install(stores: &TrustStores, store: &SystemStore, root: &Root) -> Outcome {
    let Some(file) = store.file(stores, root) else { return Ok(TrustOutcome::Absent) };
    // Otherwise the file would be left there without effect.
    if command::find(stores, store.update.0).is_none() {
        return Err(format!("{} is not installed", store.update.0));
    }
    write_public(&file, &root.pem).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    command::run(stores, store.update.0, store.update.1)?;
    Ok(TrustOutcome::Installed)
}

pub(super) fn remove(stores: &TrustStores, store: &SystemStore, root: &Root) -> Outcome {
    let Some(file) = store.file(stores, root) else { return Ok(TrustOutcome::Absent) };
    match std::fs::remove_file(&file) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TrustOutcome::NotInstalled),
        Err(error) => return Err(format!("cannot remove {}: {error}", file.display())),
    }
    command::run(stores, store.update.0, store.update.1)?;
    Ok(TrustOutcome::Removed)
}

impl SystemStore {
    /// `None`: this machine has no such store.
    fn file(&self, stores: &TrustStores, root: &Root) -> Option<PathBuf> {
        let directory = stores.root.join(self.directory);
        directory.is_dir().then(|| directory.join(format!("{}.{}", root.name, self.extension)))
    }
}

/// Certificates are for everybody to read.
fn write_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path)?.write_all(bytes)
}
