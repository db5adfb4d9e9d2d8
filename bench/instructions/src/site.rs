//! The site that is served, in a temporary directory whose path is equally long in every run.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use tempfile::TempDir;

use crate::scenario::Scenario;

/// Instructions depend on the lengths of paths, so that `TMPDIR` has no say.
const PARENT: &str = "/tmp";

const CLASSIC: &str = "<?php echo str_repeat('.', 128);\n";

const WORKER: &str = "<?php
$handler = static function (): void {
    echo str_repeat('.', 128);
};
while (frankenphp_handle_request($handler)) {
}
";

const VERSION: &str = "<?php echo PHP_VERSION;\n";

/// Of PHP's production values, those that a request passes by; without what a clock or a compiler in the process
/// would make different each time.
const PHP_SETTINGS: &str = "display_errors = Off
log_errors = On
expose_php = Off
variables_order = GPCS
output_buffering = 4096
max_execution_time = 30
realpath_cache_size = 4096K
realpath_cache_ttl = 600
opcache.enable = 1
opcache.validate_timestamps = 1
opcache.revalidate_freq = 600
opcache.jit = disable
opcache.jit_buffer_size = 0
";

/// The URL path of a script that says which PHP it is.
pub const VERSION_PATH: &str = "/version.php";

/// The server keeps in memory what has not been changed for two seconds: before that, a file costs more.
const SETTLED: Duration = Duration::from_secs(4);

/// A fresh directory that goes away with this value.
#[derive(Debug)]
pub struct Site {
    directory: TempDir,
    created: Instant,
}

impl Site {
    pub fn create() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("regent-instructions-").tempdir_in(PARENT)?;
        let site = Self { directory, created: Instant::now() };
        fs::create_dir(site.root())?;
        fs::create_dir(site.php_settings_directory())?;
        fs::write(site.php_settings_directory().join("instructions.ini"), PHP_SETTINGS)?;
        for (name, content) in
            [("file.txt", "x".repeat(1024).as_str()), ("classic.php", CLASSIC), ("worker.php", WORKER)]
        {
            fs::write(site.root().join(name), content)?;
        }
        fs::write(site.root().join(VERSION_PATH.trim_start_matches('/')), VERSION)?;
        Ok(site)
    }

    /// Waits until requests cost what they do from then on.
    pub fn settle(&self) {
        thread::sleep(SETTLED.saturating_sub(self.created.elapsed()));
    }

    /// Writes the server's configuration for this port of 127.0.0.1: one PHP thread for each mode.
    pub fn configure(&self, port: u16) -> Result<PathBuf> {
        let file = self.path().join("Caddyfile");
        let root = self.root();
        let text = format!(
            "{{
\tadmin off
\tregent {{
\t\tnum_threads 2
\t\tworker \"{root}/worker.php\" 1
\t}}
}}

http://:{port} {{
\tbind 127.0.0.1
\troot * \"{root}\"
\trespond /respond \"hello\"
\tphp_server
}}
",
            root = root.display()
        );
        fs::write(&file, text)?;
        Ok(file)
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// For `PHP_INI_SCAN_DIR`.
    pub fn php_settings_directory(&self) -> PathBuf {
        self.path().join("php.d")
    }

    fn root(&self) -> PathBuf {
        self.path().join("site")
    }
}

/// Where a scenario's requests go.
pub fn url_path(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::Respond | Scenario::Connection => "/respond",
        Scenario::File => "/file.txt",
        Scenario::Classic => "/classic.php",
        Scenario::Worker => "/worker.php",
    }
}

/// Bytes of the body of a right answer.
pub fn body_length(scenario: Scenario) -> usize {
    match scenario {
        Scenario::Respond | Scenario::Connection => "hello".len(),
        Scenario::File => 1024,
        Scenario::Classic | Scenario::Worker => 128,
    }
}
