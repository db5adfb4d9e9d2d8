//! The work directory of a run: the scripts and PHP settings that all servers share, and a directory for each server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempDir;

/// The body that every measured answer must have.
pub const BODY: &str = "................................................................\
                        ................................................................";

const HELLO: &str = "<?php echo str_repeat('.', 128);\n";

const WORKER: &str = "<?php
$handler = static function (): void {
    echo str_repeat('.', 128);
};
while (frankenphp_handle_request($handler)) {
}
";

const INFO: &str = "<?php
$opcache = function_exists('opcache_get_status') ? opcache_get_status(false) : false;
echo json_encode([
    'php' => PHP_VERSION,
    'sapi' => PHP_SAPI,
    'thread_safe' => (bool) PHP_ZTS,
    'opcache' => (bool) ($opcache['opcache_enabled'] ?? false),
    'jit' => (bool) ($opcache['jit']['on'] ?? false),
    'validate_timestamps' => (bool) ini_get('opcache.validate_timestamps'),
]);
";

/// PHP's production values, the same for every server, on top of whatever php.ini it has: read last, they win.
pub const PHP_SETTINGS: &str = "display_errors = Off
log_errors = On
expose_php = Off
variables_order = GPCS
output_buffering = 4096
memory_limit = 128M
max_execution_time = 30
zend.assertions = -1
realpath_cache_size = 4096K
realpath_cache_ttl = 600
opcache.enable = 1
opcache.memory_consumption = 128
opcache.validate_timestamps = 1
opcache.revalidate_freq = 2
opcache.jit = disable
opcache.jit_buffer_size = 0
";

/// Paths of the classic script, the worker script and the self-description, as URLs and below the document root.
pub const HELLO_PATH: &str = "/hello.php";
pub const WORKER_PATH: &str = "/worker.php";
pub const INFO_PATH: &str = "/info.php";

/// A fresh directory that goes away with this value.
#[derive(Debug)]
pub struct Site {
    directory: TempDir,
}

impl Site {
    pub fn create() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("regent-bench-").tempdir()?;
        // Servers that were started by root read it as www-data.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        let site = Self { directory };
        fs::create_dir(site.document_root())?;
        fs::create_dir(site.php_settings_directory())?;
        for (name, text) in [(HELLO_PATH, HELLO), (WORKER_PATH, WORKER), (INFO_PATH, INFO)] {
            fs::write(site.script(name), text)?;
        }
        fs::write(site.php_settings_directory().join("bench.ini"), PHP_SETTINGS)?;
        Ok(site)
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn document_root(&self) -> PathBuf {
        self.path().join("site")
    }

    /// The file behind one of the URL paths of this module.
    pub fn script(&self, url_path: &str) -> PathBuf {
        self.document_root().join(url_path.trim_start_matches('/'))
    }

    /// For `PHP_INI_SCAN_DIR`: the settings that every PHP gets.
    pub fn php_settings_directory(&self) -> PathBuf {
        self.path().join("php.d")
    }

    /// A new directory for one server's configuration, logs and sockets.
    pub fn server_directory(&self, name: &str) -> Result<PathBuf> {
        let directory = self.path().join(name);
        fs::create_dir(&directory)?;
        Ok(directory)
    }

    /// The text without the name of this directory, for the published results.
    pub fn anonymize(&self, text: &str) -> String {
        text.replace(&*self.path().to_string_lossy(), "WORK")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_128_periods() {
        assert_eq!(BODY, ".".repeat(128));
    }

    #[test]
    fn the_directory_is_readable_by_others_and_goes_away() {
        let site = Site::create().expect("a directory");
        let path = site.path().to_owned();
        let mode = fs::metadata(&path).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert!(site.script(HELLO_PATH).is_file());
        assert_eq!(site.anonymize(&format!("root {};", site.document_root().display())), "root WORK/site;");
        drop(site);
        assert!(!path.exists());
    }
}
