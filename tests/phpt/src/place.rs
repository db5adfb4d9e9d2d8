//! The place where tests run: PHP's test directories in a fresh directory, because tests write beside themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use regent_tests::process;
use tempfile::TempDir;

/// What `tools/build-php` keeps beside PHP.
const ARCHIVE: &str = "share/php-tests.tar.gz";

/// Includes the test that the URI names. The function's scope is the same in a worker and with php-cgi, which runs this
/// too in the comparison of workers.
const INCLUDE: &str = r"<?php
$include = static function (): void {
    $_SERVER['PHPT_SCRIPT'] = __DIR__.rawurldecode(explode('?', $_SERVER['REQUEST_URI'], 2)[0]);
    chdir(dirname($_SERVER['PHPT_SCRIPT']));
    include $_SERVER['PHPT_SCRIPT'];
};
";

/// Names the run's process after this.
const PREFIX: &str = "regent-phpt-";

/// Removed when dropped.
pub struct Place {
    directory: TempDir,
}

impl Place {
    /// Unpacks PHP's tests.
    ///
    /// # Errors
    /// When this PHP came without its tests, or they cannot be unpacked.
    pub fn unpack(prefix: &Path) -> Result<Self> {
        let archive = prefix.join(ARCHIVE);
        ensure!(archive.is_file(), "there is no {}", archive.display());
        let parent = parent_directory();
        remove_abandoned(&parent)?;
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let place = Self { directory: TempDir::with_prefix_in(prefix, parent)? };
        for name in ["tree", "tmp"] {
            fs::create_dir(place.directory().join(name))?;
        }
        let status = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(place.tree()).status();
        ensure!(status.context("running tar")?.success(), "unpacking {} failed", archive.display());
        fs::write(
            place.tree().join(Self::WORKER),
            format!("{INCLUDE}while (frankenphp_handle_request($include)) {{}}\n"),
        )?;
        fs::write(place.tree().join(Self::WRAPPER), format!("{INCLUDE}$include();\n"))?;
        Ok(place)
    }

    /// The worker, and what php-cgi runs in its place, in the tree.
    pub const WORKER: &str = "phpt-worker.php";
    pub const WRAPPER: &str = "phpt-wrapper.php";

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The root of PHP's source, as far as its tests go.
    pub fn tree(&self) -> PathBuf {
        self.directory().join("tree")
    }

    pub fn temporary(&self) -> PathBuf {
        self.directory().join("tmp")
    }

    /// The environment of everything that runs here; it owes nothing to this machine but the path.
    pub fn environment(&self) -> Vec<(String, String)> {
        let (home, temporary) =
            (self.directory().display().to_string(), self.temporary().display().to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        [
            ("PATH", path.as_str()),
            ("HOME", &home),
            ("TMPDIR", &temporary),
            ("TEMP", &temporary),
            ("PHP_INI_SCAN_DIR", ""),
            ("LANG", "C.UTF-8"),
            ("NO_COLOR", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }
}

/// A file system in memory if there is one with room: twelve thousand small files took a busy disk a minute.
fn parent_directory() -> PathBuf {
    const MEMORY: &str = "/dev/shm";
    const ROOM: u64 = 1 << 30;
    match rustix::fs::statvfs(MEMORY) {
        Ok(system) if system.f_bavail * system.f_frsize >= ROOM => MEMORY.into(),
        _ => std::env::temp_dir(),
    }
}

/// Removes what runs have left that were interrupted: it may be memory.
fn remove_abandoned(parent: &Path) -> Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse().ok());
        if owner.is_some_and(|pid| !process::is_alive(pid)) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
