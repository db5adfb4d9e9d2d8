//! Whether the files with certificates that a configuration names could be served. Nothing is made of it.

use anyhow::{Result, bail};
use regent_config::{CertificateFiles, CertificateSource, Config, SiteTls};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Fails with all that is wrong with any of them.
pub fn check(config: &Config) -> Result<()> {
    let mut problems = Problems::default();
    for tls in config.servers.iter().flat_map(|server| &server.sites).filter_map(|site| site.tls.as_ref()) {
        check_site(tls, &mut problems);
    }
    if problems.0.is_empty() {
        return Ok(());
    }
    bail!("\n{}", problems.0.into_iter().collect::<Vec<_>>().join("\n"));
}

/// Each once, however many sites have the file.
#[derive(Default)]
struct Problems(BTreeSet<String>);

impl Problems {
    fn add<E: ToString>(&mut self, checked: Result<(), E>) {
        self.0.extend(checked.err().map(|error| error.to_string()));
    }
}

fn check_site(tls: &SiteTls, problems: &mut Problems) {
    if let CertificateSource::Files { pairs, directories } = &tls.source {
        for CertificateFiles { certificate, key } in pairs {
            problems.add(regent_tls::check_certificate(certificate, key));
        }
        directories.iter().for_each(|directory| check_directory(directory, problems));
    }
    let clients = tls.client_auth.iter();
    for file in clients.flat_map(|auth| auth.trusted_cas.iter().chain(&auth.trusted_leaves)) {
        problems.add(regent_tls::check_authorities(file));
    }
}

/// Its `.pem` files and those of the directories below, each with a certificate and its key.
fn check_directory(directory: &Path, problems: &mut Problems) {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            return problems.add(Err(format!("cannot read the directory {}: {error}", directory.display())));
        }
    };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    for path in paths {
        // A link to a directory could lead in a circle.
        if path.is_dir() && !path.is_symlink() {
            check_directory(&path, problems);
        } else if path.extension().is_some_and(|extension| extension == "pem") {
            problems.add(regent_tls::check_certificate(&path, &path));
        }
    }
}
