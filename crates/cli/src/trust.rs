//! `regent trust` and `regent untrust`: the local CA's root in the trust stores of this machine.
//!
//! Caddy's commands (modules/caddypki/command.go) ask a running server for the root. These read it from the storage, so
//! that no server has to run.

use crate::arguments::{CaStorage, Config, Trust, Untrust};
use crate::configuration;
use anyhow::{Result, bail};
use regent_tls::{Options, RedisStorage, Tickets, Tls, TrustOutcome, TrustReport, TrustStores};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What has been done, and whether it is what was asked for.
#[derive(Debug)]
struct Done {
    report: TrustReport,
    exit_code: u8,
}

/// Makes the CA if there is none. The exit code is 1 if no store has taken its root.
pub fn trust(options: &Trust) -> Result<ExitCode> {
    let storage = Storage::of(&options.storage)?;
    let root = root_made_if_missing(&storage)?;
    let done = install(&TrustStores::of_this_process(), &root)?;
    print!("{}", done.report);
    hint(&done.report, &format!("trust {}", storage.argument));
    if done.exit_code != 0 {
        eprintln!("regent: no trust store has the certificate; programs can be given its file by hand");
    }
    Ok(done.exit_code.into())
}

/// The exit code is 1 if a store would not give the root up, and none did.
pub fn untrust(options: &Untrust) -> Result<ExitCode> {
    let (root, argument) = match &options.cert {
        Some(file) => (file.clone(), format!("--cert {}", file.display())),
        None => {
            let storage = Storage::of(&options.storage)?;
            (stored_root(&storage)?, storage.argument)
        }
    };
    println!("root certificate: {}", root.display());
    let done = uninstall(&TrustStores::of_this_process(), &root)?;
    print!("{}", done.report);
    hint(&done.report, &format!("untrust {argument}"));
    Ok(done.exit_code.into())
}

fn install(stores: &TrustStores, root: &Path) -> Result<Done> {
    let report = stores.install(root)?;
    let exit_code = u8::from(!report.has(TrustOutcome::Installed));
    Ok(Done { report, exit_code })
}

fn uninstall(stores: &TrustStores, root: &Path) -> Result<Done> {
    let report = stores.uninstall(root)?;
    let exit_code = u8::from(report.has_failed() && !report.has(TrustOutcome::Removed));
    Ok(Done { report, exit_code })
}

/// Where the local CA is.
struct Storage {
    tls: Tls,
    /// For messages.
    place: String,
    /// What names it on the command line.
    argument: String,
}

impl Storage {
    fn of(options: &CaStorage) -> Result<Self> {
        match (&options.ca_storage, &options.config) {
            (Some(storage), _) if storage.as_os_str().is_empty() => {
                bail!("--ca-storage is empty; name a directory")
            }
            (Some(storage), _) => Self::of_directory(&std::path::absolute(storage)?),
            (None, Some(file)) => {
                let named = Config::of_file(file.clone(), options.adapter.language());
                let options = regent_server::tls_options(&configuration::load(&named)?.config.global.tls);
                let directory = options.storage.display().to_string();
                let place = options.redis.as_ref().map_or(directory, RedisStorage::url);
                Ok(Self { tls: open(options)?, place, argument: format!("--config {}", file.display()) })
            }
            (None, None) => Self::of_directory(&configuration::default_storage()?),
        }
    }

    fn of_directory(storage: &Path) -> Result<Self> {
        let place = storage.display().to_string();
        let argument = format!("--ca-storage {place}");
        Ok(Self { tls: open(Options::of_storage(storage))?, place, argument })
    }
}

fn root_made_if_missing(storage: &Storage) -> Result<PathBuf> {
    if let Some(root) = storage.tls.stored_local_root()? {
        println!("root certificate: {}", root.display());
        return Ok(root);
    }
    let root = storage.tls.local_root()?;
    println!("root certificate: {} (new)", root.display());
    if std::env::var_os("SUDO_USER").is_some() {
        println!(
            "a server of another user has a CA of its own: name its storage with --ca-storage DIRECTORY"
        );
    }
    Ok(root)
}

fn stored_root(storage: &Storage) -> Result<PathBuf> {
    let Some(root) = storage.tls.stored_local_root()? else {
        bail!(
            "there is no local CA in {}; name its storage with --ca-storage DIRECTORY, or its root certificate with --cert FILE",
            storage.place
        );
    };
    Ok(root)
}

fn open(options: Options) -> Result<Tls> {
    Ok(Tls::open(Options { tickets: Tickets::Disabled, ..options })?)
}

/// What to do where a store refused.
fn hint(report: &TrustReport, command: &str) {
    if report.has_failed() && !rustix::process::geteuid().is_root() {
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("regent"));
        println!("stores of the system are for root to change: sudo {} {command}", program.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// A machine in a directory, with one database of a browser and a `certutil` that does as it is told.
    struct Machine {
        directory: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Self {
            let machine = Self { directory: tempfile::tempdir().unwrap() };
            for directory in ["bin", "home/.pki/nssdb"] {
                fs::create_dir_all(machine.path(directory)).unwrap();
            }
            fs::write(machine.path("home/.pki/nssdb/cert9.db"), "").unwrap();
            machine
        }

        fn path(&self, path: &str) -> PathBuf {
            self.directory.path().join(path)
        }

        fn with_certutil(self, body: &str) -> Self {
            let text = self.path("certutil.sh");
            fs::write(&text, format!("#!/bin/sh\n{body}\n")).unwrap();
            // Another process writes what is run: children of other tests may hold what this one has open ("Text file busy").
            let mut install = Command::new("install");
            install.args(["-m", "755"]).arg(&text).arg(self.path("bin/certutil"));
            assert!(install.status().unwrap().success());
            self
        }

        fn stores(&self) -> TrustStores {
            let root = self.directory.path().to_owned();
            TrustStores { root, home: Some(self.path("home")), path: self.path("bin").into_os_string() }
        }

        fn storage(&self) -> Storage {
            Storage::of_directory(&self.path("storage")).unwrap()
        }

        fn root(&self) -> PathBuf {
            root_made_if_missing(&self.storage()).unwrap()
        }
    }

    #[test]
    fn a_ca_is_made_once_and_its_root_installed_and_removed() {
        let machine = Machine::new().with_certutil("");
        let root = machine.root();
        let made = fs::read(&root).unwrap();
        assert_eq!(machine.root(), root);
        assert_eq!(fs::read(&root).unwrap(), made);
        assert_eq!(stored_root(&machine.storage()).unwrap(), root);
        assert_eq!(install(&machine.stores(), &root).unwrap().exit_code, 0);
        assert_eq!(uninstall(&machine.stores(), &root).unwrap().exit_code, 0);
    }

    #[test]
    fn stores_that_refuse_are_a_failure_and_say_why() {
        let machine = Machine::new().with_certutil("echo locked >&2; [ $1 = -L ]");
        let root = machine.root();
        for done in [install(&machine.stores(), &root), uninstall(&machine.stores(), &root)] {
            let done = done.unwrap();
            assert_eq!(done.exit_code, 1);
            assert!(done.report.to_string().contains("locked"), "{}", done.report);
        }
    }

    #[test]
    fn without_a_store_there_is_nowhere_to_install_and_nothing_to_remove() {
        let machine = Machine::new().with_certutil("");
        let root = machine.root();
        let stores = TrustStores { home: None, ..machine.stores() };
        assert_eq!(install(&stores, &root).unwrap().exit_code, 1);
        assert_eq!(uninstall(&stores, &root).unwrap().exit_code, 0);
    }

    #[test]
    fn untrust_makes_no_ca() {
        let machine = Machine::new();
        let error = stored_root(&machine.storage()).unwrap_err().to_string();
        assert!(error.starts_with("there is no local CA in "), "{error}");
        assert!(!machine.path("storage").exists());
    }
}
