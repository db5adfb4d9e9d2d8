//! The databases of Chromium and Firefox, which do not read those of the system.

use super::{Outcome, Root, TrustOutcome, TrustStores, command};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Below the home directory: databases, and directories of them.
const DATABASES: [&str; 2] = [".pki/nssdb", "snap/chromium/current/.pki/nssdb"];
const PROFILES: [&str; 3] =
    [".mozilla/firefox", ".config/mozilla/firefox", "snap/firefox/common/.mozilla/firefox"];

/// Each directory with a `cert9.db` of the home.
pub(super) fn databases(stores: &TrustStores) -> Vec<PathBuf> {
    let Some(home) = &stores.home else { return Vec::new() };
    let mut found: Vec<_> = DATABASES.iter().map(|directory| home.join(directory)).collect();
    for profiles in PROFILES {
        let entries = std::fs::read_dir(home.join(profiles)).into_iter().flatten();
        found.extend(entries.flatten().map(|entry| entry.path()));
    }
    found.retain(|directory| directory.join("cert9.db").is_file());
    found.sort();
    found
}

pub(super) fn install(stores: &TrustStores, database: &Path, root: &Root) -> Outcome {
    require_certutil(stores)?;
    let arguments: [&OsStr; 7] = [
        "-A".as_ref(),
        "-t".as_ref(),
        "C,,".as_ref(),
        "-n".as_ref(),
        root.name.as_ref(),
        "-i".as_ref(),
        root.file.as_ref(),
    ];
    command::run(stores, "certutil", in_database(database, &arguments))?;
    Ok(TrustOutcome::Installed)
}

pub(super) fn remove(stores: &TrustStores, database: &Path, root: &Root) -> Outcome {
    require_certutil(stores)?;
    let name: [&OsStr; 2] = ["-n".as_ref(), root.name.as_ref()];
    if command::run(stores, "certutil", in_database(database, &[&["-L".as_ref()], &name[..]].concat()))
        .is_err()
    {
        return Ok(TrustOutcome::NotInstalled);
    }
    command::run(stores, "certutil", in_database(database, &[&["-D".as_ref()], &name[..]].concat()))?;
    Ok(TrustOutcome::Removed)
}

fn require_certutil(stores: &TrustStores) -> Result<(), String> {
    let found = command::find(stores, "certutil").map(|_| ());
    found.ok_or_else(|| "certutil is not installed (package libnss3-tools or nss-tools)".to_owned())
}

fn in_database(database: &Path, arguments: &[&OsStr]) -> Vec<OsString> {
    let mut location = OsString::from("sql:");
    location.push(database);
    let mut all: Vec<_> = arguments.iter().map(|argument| OsString::from(*argument)).collect();
    all.extend(["-d".into(), location]);
    all
}
