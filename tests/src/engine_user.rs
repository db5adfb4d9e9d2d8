//! What engines need to run as another user than the server.

use crate::mariadb::DATABASE;
use crate::native::assert_success;
use crate::process::copy_program;
use crate::server::MORE_OPTIONS;
use crate::{Server, Setup, php, until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

impl Setup {
    /// Has the engines where every user may read them, with PHP's library, opcache and settings: those of the build are
    /// often in root's own directory. The site can be read, and files of sessions and uploads written, by every user.
    pub fn for_every_user(self) -> Self {
        let directory = self.directory().to_owned();
        let engines = directory.join("engine");
        fs::create_dir(&engines).expect("the temporary directory is ours");
        let mut files = files_of_an_engine();
        files.extend(native_engine(&files));
        for file in &files {
            let copy = engines.join(file.file_name().expect("a file has a name"));
            copy_program(file, &copy);
            set_mode(&copy, 0o755);
        }
        for path in [&directory, &engines, &directory.join("www")] {
            set_mode(path, 0o755);
        }
        for name in ["tmp", "sessions"] {
            set_mode(&directory.join(name), 0o777);
        }
        let setup = self
            .env("LD_LIBRARY_PATH", "DIRECTORY/engine")
            .env("REGENT_ENGINE", "DIRECTORY/engine/regent-php")
            .env("REGENT_NATIVE_ENGINE", "DIRECTORY/engine/regent-native");
        if php::is_in_processes() {
            return setup;
        }
        let settings = php::settings(&engines.join("opcache.so"));
        fs::write(engines.join("php.ini"), settings).expect("the temporary directory is ours");
        setup.env("PHPRC", "DIRECTORY/engine/php.ini")
    }

    /// What is there of the application and of its directories is PHP's.
    pub(crate) fn give_to_php(&self) {
        let entries = fs::read_dir(self.directory()).expect("the temporary directory is ours");
        let paths = entries.map(|entry| entry.expect("it can be read to its end").path());
        paths.filter(|path| !path.ends_with(DATABASE)).for_each(|path| give_to_php(&path));
    }
}

/// Gives what is at `path`, and below, to the `user` that all tests have for PHP, if they have one: an application with all that it
/// writes is that user's, as it is on a server.
pub fn give_to_php(path: &Path) {
    let options = std::env::var(MORE_OPTIONS).unwrap_or_default();
    let Some(user) = options.lines().find_map(|line| line.trim().strip_prefix("user ")) else { return };
    let output = Command::new("chown").args(["--recursive", user]).arg(path).output();
    assert_success(&output.expect("chown is there"), "chown, for `user` of every test");
    let directory = path.parent().expect("it is in a directory of the test's own");
    set_mode(directory, 0o755);
}

/// The program of a running engine, and the libphp and opcache that it has loaded.
fn files_of_an_engine() -> Vec<PathBuf> {
    let server = Setup::new().file("index.php", "<?php").start();
    // Everything is loaded by then.
    server.get("/").expect(200);
    let is_engine = |path: &PathBuf| path.ends_with("regent-php");
    let is_library = |path: &PathBuf| path.to_string_lossy().contains("/libphp");
    let found = until("the engine has loaded libphp", || {
        let paths = mapped_by(&server);
        (paths.iter().any(is_engine) && paths.iter().any(is_library)).then_some(paths)
    });
    server.stop();
    found
}

fn mapped_by(server: &Server) -> Vec<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.engine())).unwrap_or_default();
    let is_ours = |path: &&str| {
        path.ends_with("/regent-php") || path.contains("/libphp") || path.ends_with("/opcache.so")
    };
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let mut paths: Vec<PathBuf> = paths.filter(is_ours).map(PathBuf::from).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Beside the other one, if it was built.
fn native_engine(files: &[PathBuf]) -> Option<PathBuf> {
    let php = files.iter().find(|file| file.ends_with("regent-php"))?;
    Some(php.with_file_name("regent-native")).filter(|program| program.is_file())
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}
