//! Which tests are run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::glob::Glob;

/// The folders whose tests exercise a server's side of PHP, and the language itself.
const FOLDERS: [&str; 8] =
    ["tests", "Zend", "ext/session", "ext/standard", "ext/filter", "ext/mbstring", "ext/spl", "ext/date"];

/// What a SAPI has a part in: input, output, headers, uploads, sessions, the end of scripts, superglobals. The rest is a
/// sample.
const SHORT: [&str; 11] = [
    "tests/basic/*",
    "tests/output/*",
    "tests/lang/0*",
    "tests/classes/*",
    "ext/session/tests/bug*",
    "ext/session/tests/session_*_basic*",
    "ext/standard/tests/http/request_parse_body/*",
    "ext/standard/tests/general_functions/*header*",
    "ext/standard/tests/general_functions/*error*",
    "ext/filter/tests/0*",
    "Zend/tests/exception_*",
];

/// The paths of all tests in the tree that fit, in order.
///
/// # Errors
/// When a folder cannot be read.
pub fn tests(tree: &Path, selection: &[Glob]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        collect(tree, Path::new(folder), &mut found)?;
    }
    found.retain(|test| selection.iter().any(|glob| glob.fits(test)));
    found.sort();
    Ok(found)
}

/// Tests that leave something on this machine, which would spoil the next run, when a function includes them: what they
/// clean up with is a global variable.
const GLOBAL: [&str; 1] = ["ext/standard/tests/streams/bug60106-001.phpt"];

/// Whether a worker, which includes tests in a function, may run this one.
pub fn is_for_workers(test: &Path) -> bool {
    !GLOBAL.iter().any(|name| test == Path::new(name))
}

/// The folder of [`FOLDERS`] that a test is in.
pub fn folder(test: &Path) -> &'static str {
    FOLDERS.into_iter().find(|folder| test.starts_with(folder)).unwrap_or("others")
}

pub fn short_selection() -> Vec<Glob> {
    SHORT.iter().map(|text| Glob::new(text)).collect()
}

fn collect(tree: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(tree.join(folder)).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(tree, &path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "phpt") {
            found.push(path);
        }
    }
    Ok(())
}
