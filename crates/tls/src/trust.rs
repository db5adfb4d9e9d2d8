//! Makes this machine's programs trust the local CA, and undoes it.

mod command;
mod nss;
mod system;

use crate::certificate::parse_chain;
use crate::{Error, crypto};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where to look for trust stores.
#[derive(Debug, Clone)]
pub struct TrustStores {
    /// `/`, but for tests.
    pub root: PathBuf,
    /// Of the user whose browsers are to trust the CA; none without it.
    pub home: Option<PathBuf>,
    /// Where programs are looked for, as in `$PATH`.
    pub path: OsString,
}

/// What became of each store: those of the system first, then each database of a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustReport {
    pub stores: Vec<(String, TrustOutcome)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustOutcome {
    Installed,
    Removed,
    /// There was nothing to remove.
    NotInstalled,
    /// There is no such store on this machine.
    Absent,
    /// And why. The other stores are not touched by that.
    Failed(String),
}

impl TrustReport {
    /// Whether this has become of any store.
    pub fn has(&self, outcome: TrustOutcome) -> bool {
        self.stores.iter().any(|(_, of_store)| *of_store == outcome)
    }

    pub fn has_failed(&self) -> bool {
        self.stores.iter().any(|(_, outcome)| matches!(outcome, TrustOutcome::Failed(_)))
    }
}

/// A line for each store.
impl fmt::Display for TrustReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stores.iter().try_for_each(|(store, outcome)| writeln!(f, "{store}: {outcome}"))
    }
}

impl fmt::Display for TrustOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Installed => f.write_str("installed"),
            Self::Removed => f.write_str("removed"),
            Self::NotInstalled => f.write_str("was not installed"),
            Self::Absent => f.write_str("not on this machine"),
            Self::Failed(reason) => write!(f, "failed: {reason}"),
        }
    }
}

/// A root certificate, and the name by which stores know it.
struct Root {
    file: PathBuf,
    pem: Vec<u8>,
    /// Of its own digest, so that roots of several machines or directories do not replace each other.
    name: String,
}

impl Root {
    fn read(file: &Path) -> Result<Self, Error> {
        let pem = std::fs::read(file).map_err(|error| Error::read(file, error))?;
        let certificate = parse_chain(file, &pem)?.swap_remove(0);
        let name = format!("regent-local-authority-{}", crypto::hex(&crypto::sha256(&certificate)[..8]));
        Ok(Self { file: file.to_owned(), pem, name })
    }
}

/// What is done to a store. `Ok` says what became of it, `Err` why not.
type Outcome = Result<TrustOutcome, String>;

impl TrustStores {
    /// Those of the system and of the user who runs this process.
    pub fn of_this_process() -> Self {
        Self {
            root: PathBuf::from("/"),
            home: std::env::var_os("HOME").map(PathBuf::from),
            path: std::env::var_os("PATH").unwrap_or_default(),
        }
    }

    /// `root`: the PEM file of the root certificate, as of [`Tls::local_root`](crate::Tls::local_root).
    ///
    /// # Errors
    /// Only if that file cannot be used; all else is in the report.
    pub fn install(&self, root: &Path) -> Result<TrustReport, Error> {
        let root = Root::read(root)?;
        Ok(self.for_each(
            |store| system::install(self, store, &root),
            |database| nss::install(self, database, &root),
        ))
    }

    /// The contrary of [`Self::install`], for the same file.
    ///
    /// # Errors
    /// As [`Self::install`].
    pub fn uninstall(&self, root: &Path) -> Result<TrustReport, Error> {
        let root = Root::read(root)?;
        Ok(self.for_each(
            |store| system::remove(self, store, &root),
            |database| nss::remove(self, database, &root),
        ))
    }

    fn for_each(
        &self,
        on_system: impl Fn(&system::SystemStore) -> Outcome,
        on_database: impl Fn(&Path) -> Outcome,
    ) -> TrustReport {
        let settled = |outcome: Outcome| outcome.unwrap_or_else(TrustOutcome::Failed);
        let systems = system::STORES.iter().map(|store| (store.name.to_owned(), settled(on_system(store))));
        let databases = nss::databases(self).into_iter().map(|database| {
            (format!("NSS database {}", database.display()), settled(on_database(&database)))
        });
        TrustReport { stores: systems.chain(databases).collect() }
    }
}

#[cfg(test)]
mod tests;
