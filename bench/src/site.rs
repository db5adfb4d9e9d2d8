//! The work directory of a run: the scripts and PHP settings that all servers share, and a directory for each server.

mod script;

use std::fs;
use std::io::ErrorKind;
use std::iter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

pub use self::script::{BODY, Script, StaticFile};

/// The scripts below the document root; their paths are also those of the URLs.
const SCRIPTS: [(&str, &str); 8] = [
    (HELLO_PATH, include_str!("site/hello.php")),
    (SLEEP_PATH, include_str!("site/sleep.php")),
    (SLOW_PATH, include_str!("site/slow.php")),
    (LARGE_PATH, include_str!("site/large.php")),
    (UPLOAD_PATH, include_str!("site/upload.php")),
    ("/tasks.php", include_str!("site/tasks.php")),
    (WORKER_PATH, include_str!("site/worker.php")),
    (INFO_PATH, include_str!("site/info.php")),
];

/// PHP's production values, the same for every server, on top of whatever php.ini it has: read last, they win. Bodies
/// of uploads are of any size.
pub const PHP_SETTINGS: &str = "display_errors = Off
log_errors = On
expose_php = Off
variables_order = GPCS
output_buffering = 4096
memory_limit = 128M
post_max_size = 0
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

/// PHP's limit of a script's time when a plan sets none, in seconds: above the longest request, which sleeps for 50 s.
/// A thread-safe PHP counts the clock on the wall, others their CPU time.
const LONGEST_SCRIPT: u64 = 60;

pub const HELLO_PATH: &str = "/hello.php";
pub const SLEEP_PATH: &str = "/sleep.php";
/// What sleep.php does, as a route of its own.
pub const SLOW_PATH: &str = "/slow.php";
pub const LARGE_PATH: &str = "/large.php";
pub const UPLOAD_PATH: &str = "/upload.php";
/// The worker script; a path after it says which of the others it stands for: `/worker.php/sleep`.
pub const WORKER_PATH: &str = "/worker.php";
/// What a PHP says of itself.
pub const INFO_PATH: &str = "/info.php";
/// The directory of the static files.
pub const STATIC_PATH: &str = "/static";

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
        fs::create_dir(site.shared_settings())?;
        fs::create_dir(site.file(STATIC_PATH))?;
        for (path, text) in SCRIPTS {
            fs::write(site.file(path), text)?;
        }
        for file in StaticFile::ALL {
            fs::write(site.file(STATIC_PATH).join(file.name()), file.content())?;
        }
        fs::write(site.shared_settings().join("bench.ini"), PHP_SETTINGS)?;
        Ok(site)
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn document_root(&self) -> PathBuf {
        self.path().join("site")
    }

    /// The file behind a URL path.
    pub fn file(&self, url_path: &str) -> PathBuf {
        self.document_root().join(url_path.trim_start_matches('/'))
    }

    /// For `PHP_INI_SCAN_DIR`: the settings that every PHP gets, and in the server's directory how long a script may
    /// run. Later ones win.
    pub fn php_settings(&self, server: &Path, time_limit: Option<Duration>) -> Result<String> {
        let own = server.join("php.d");
        fs::create_dir(&own)?;
        let seconds = time_limit.map_or(LONGEST_SCRIPT, |limit| limit.as_secs().max(1));
        fs::write(own.join("limit.ini"), format!("max_execution_time = {seconds}\n"))?;
        Ok(format!("{}:{}", self.shared_settings().display(), own.display()))
    }

    /// A new directory for one server's configuration, logs and sockets.
    pub fn server_directory(&self, name: &str) -> Result<PathBuf> {
        let names = iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}-{number}")));
        for name in names {
            let directory = self.path().join(name);
            match fs::create_dir(&directory) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                result => return result.map(|()| directory).map_err(Into::into),
            }
        }
        unreachable!("invariant: there is a next number")
    }

    /// The text without the name of this directory, for the published results.
    pub fn anonymize(&self, text: &str) -> String {
        text.replace(&*self.path().to_string_lossy(), "WORK")
    }

    fn shared_settings(&self) -> PathBuf {
        self.path().join("php.d")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_readable_by_others_and_goes_away() {
        let site = Site::create().expect("a directory");
        let path = site.path().to_owned();
        let mode = fs::metadata(&path).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert!(site.file(HELLO_PATH).is_file());
        assert_eq!(site.anonymize(&format!("root {};", site.document_root().display())), "root WORK/site;");
        drop(site);
        assert!(!path.exists());
    }

    #[test]
    fn a_server_that_is_started_again_has_a_fresh_directory() {
        let site = Site::create().expect("a directory");
        let first = site.server_directory("fpm").expect("made");
        assert_ne!(site.server_directory("fpm").expect("made"), first);
    }

    #[test]
    fn the_time_limit_wins_over_the_shared_settings() {
        let site = Site::create().expect("a directory");
        for (limit, line) in [(None, "= 60\n"), (Some(Duration::from_secs(10)), "= 10\n")] {
            let server = site.server_directory("fpm").expect("made");
            let scanned = site.php_settings(&server, limit).expect("written");
            let last = scanned.rsplit(':').next().expect("there are two");
            let text = fs::read_to_string(Path::new(last).join("limit.ini")).expect("it exists");
            assert!(text.ends_with(line), "{text}");
        }
    }
}
