//! `regent trust` and `regent untrust`: the local CA's root in the trust stores of this machine.
//!
//! Caddy's commands (modules/caddypki/command.go) ask a running server for the root. These read it from the storage, so
//! that no server has to run.

use crate::arguments::{CaStorage, Trust, Untrust};
use crate::configuration;
use anyhow::{Result, bail};
use regent_tls::{Options, Tickets, Tls, TrustOutcome, TrustReport, TrustStores};
use std::path::PathBuf;
use std::process::ExitCode;

/// Makes the CA if there is none. The exit code is 1 if no store has taken its root.
pub fn trust(options: &Trust) -> Result<ExitCode> {
    let storage = storage(&options.storage)?;
    let tls = open(storage.clone())?;
    let root = match tls.stored_local_root() {
        Some(root) => root,
        None => {
            let root = tls.local_root()?;
            println!("made a local CA in {}", storage.display());
            if std::env::var_os("SUDO_USER").is_some() {
                println!(
                    "a server that another user runs has a CA of its own: name its storage with --ca-storage"
                );
            }
            root
        }
    };
    println!("root certificate: {}", root.display());
    let report = TrustStores::of_this_process().install(&root)?;
    print!("{report}");
    hint(&report, "trust", &format!("--ca-storage {}", storage.display()));
    if !report.has(TrustOutcome::Installed) {
        eprintln!(
            "regent: no trust store has taken the certificate; a program can be given its file by hand"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The exit code is 1 if no store gave the root up, and one would not.
pub fn untrust(options: &Untrust) -> Result<ExitCode> {
    let (root, argument) = match &options.cert {
        Some(file) => (file.clone(), format!("--cert {}", file.display())),
        None => {
            let storage = storage(&options.storage)?;
            let Some(root) = open(storage.clone())?.stored_local_root() else {
                bail!(
                    "there is no local CA in {}; name its storage with --ca-storage DIRECTORY, or its root certificate with --cert FILE",
                    storage.display()
                );
            };
            (root, format!("--ca-storage {}", storage.display()))
        }
    };
    println!("root certificate: {}", root.display());
    let report = TrustStores::of_this_process().uninstall(&root)?;
    print!("{report}");
    hint(&report, "untrust", &argument);
    let failed = report.has_failed() && !report.has(TrustOutcome::Removed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn storage(options: &CaStorage) -> Result<PathBuf> {
    match (&options.ca_storage, &options.config) {
        (Some(storage), _) if !storage.as_os_str().is_empty() => Ok(std::path::absolute(storage)?),
        (Some(_), _) => bail!("--ca-storage is empty; name a directory"),
        (None, Some(file)) => Ok(configuration::load(Some(file))?.global.tls.storage),
        (None, None) => configuration::default_storage(),
    }
}

fn open(storage: PathBuf) -> Result<Tls> {
    Ok(Tls::open(Options { storage, default_sni: None, tickets: Tickets::Disabled })?)
}

/// What to do where a store refused.
fn hint(report: &TrustReport, command: &str, argument: &str) {
    if report.has_failed() && !rustix::process::geteuid().is_root() {
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("regent"));
        println!(
            "stores of the system are for root to change: sudo {} {command} {argument}",
            program.display()
        );
    }
}
