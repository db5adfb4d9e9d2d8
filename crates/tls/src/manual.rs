//! Certificates from files that somebody else renews.

mod pair;

use crate::Error;
use crate::catalog::{Catalog, Otherwise};
use crate::certificate::Certificate;
use crate::clock::Clock;
use crate::options::{CertificateFiles, KeyPairFiles};
use pair::Pair;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The certificates of a site, kept as its files are.
#[derive(Debug)]
pub(crate) struct ManualCertificates {
    files: CertificateFiles,
    pairs: Vec<Pair>,
    catalog: Arc<Catalog>,
    clock: Arc<dyn Clock>,
}

impl ManualCertificates {
    /// # Errors
    /// If any file cannot be used, or there is none.
    pub fn load(files: CertificateFiles, clock: &Arc<dyn Clock>) -> Result<Self, Error> {
        let paths = all_paths(&files).map_err(|(path, error)| Error::read(path, error))?;
        if paths.is_empty() {
            return Err(Error::NoFiles(files.directories));
        }
        let load = |paths| Pair::load(paths, &**clock);
        let pairs = paths.into_iter().map(load).collect::<Result<_, _>>()?;
        let catalog = Catalog::new(Otherwise::Any, Arc::clone(clock));
        let manual = Self { files, pairs, catalog, clock: Arc::clone(clock) };
        manual.catalog.replace(manual.current());
        Ok(manual)
    }

    pub fn files(&self) -> &CertificateFiles {
        &self.files
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub fn current(&self) -> Vec<Arc<Certificate>> {
        self.pairs.iter().filter_map(Pair::current).cloned().collect()
    }

    /// Files that cannot be used, as while they are being replaced, leave the old certificates where they are.
    pub fn reload(&mut self) {
        let paths = match all_paths(&self.files) {
            Ok(paths) => paths,
            Err((path, error)) => {
                tracing::warn!(%error, directory = %path.display(), "cannot look for changed certificates");
                return;
            }
        };
        let mut has_changed = self.forget_all_but(&paths);
        for new in paths {
            if !self.pairs.iter().any(|pair| *pair.paths() == new) {
                self.pairs.push(Pair::unloaded(new));
            }
        }
        for pair in &mut self.pairs {
            has_changed |= pair.reload_if_changed(&*self.clock);
        }
        if has_changed {
            self.catalog.replace(self.current());
        }
    }

    /// Forgets pairs whose file has gone from its directory, unless nothing were left to serve. Returns whether there
    /// were any.
    fn forget_all_but(&mut self, paths: &[KeyPairFiles]) -> bool {
        let is_there = |pair: &Pair| paths.contains(pair.paths());
        let is_served = |pair: &&Pair| pair.current().is_some();
        if !self.pairs.iter().filter(is_served).any(is_there) {
            return false;
        }
        let before = self.pairs.len();
        self.pairs.retain(is_there);
        self.pairs.len() < before
    }
}

fn all_paths(files: &CertificateFiles) -> Result<Vec<KeyPairFiles>, (PathBuf, io::Error)> {
    let mut bundles = Vec::new();
    for directory in &files.directories {
        find_bundles(directory, &mut bundles)?;
    }
    bundles.sort();
    let bundles = bundles.into_iter().map(|path| KeyPairFiles { certificate: path.clone(), key: path });
    Ok(files.pairs.iter().cloned().chain(bundles).collect())
}

/// As Go's `filepath.Walk`, links to directories are not followed.
fn find_bundles(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    let named = |error| (directory.to_owned(), error);
    for entry in fs::read_dir(directory).map_err(named)? {
        let entry = entry.map_err(named)?;
        let path = entry.path();
        if entry.file_type().map_err(named)?.is_dir() {
            find_bundles(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pem")) {
            found.push(path);
        }
    }
    Ok(())
}
