//! Programs that trust stores come with.

use super::TrustStores;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// By `$PATH`. `None`: not installed.
pub(super) fn find(stores: &TrustStores, program: &str) -> Option<PathBuf> {
    std::env::split_paths(&stores.path).map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// `Err`: what it said, or why it could not be run.
pub(super) fn run<A: AsRef<OsStr>>(
    stores: &TrustStores,
    program: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), String> {
    let path = find(stores, program).ok_or_else(|| format!("{program} is not installed"))?;
    let output = Command::new(path)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}
