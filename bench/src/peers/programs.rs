//! Where the distribution keeps the peers' programs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's directory of Apache modules.
pub const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// What compiles a native module, and Debian's package of it.
pub const COMPILER: &str = "c++";
pub const COMPILER_PACKAGE: &str = "g++";

/// A program or module of one PHP version, such as `php-fpm8.2` or `libphp8.2.so`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhpProgram {
    pub path: PathBuf,
    /// Major and minor version, from the name.
    pub version: (u32, u32),
}

impl PhpProgram {
    /// The line of php.ini that loads opcache; empty from PHP 8.5 on, which has it built in.
    pub fn opcache_line(&self) -> &'static str {
        if self.version < (8, 5) { "zend_extension = opcache\n" } else { "" }
    }
}

/// The program on PATH, or in the directories of system programs that a user's PATH lacks.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

/// The newest php-fpm.
pub fn php_fpm() -> Option<PhpProgram> {
    newest(Path::new("/usr/sbin"), "php-fpm", "")
}

/// The newest mod_php.
pub fn mod_php() -> Option<PhpProgram> {
    newest(Path::new(APACHE_MODULES), "libphp", ".so")
}

/// The first line that a program prints about its version, on either stream; its name when it prints none.
pub fn version_line(program: &Path, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    let text = output
        .map(|output| {
            let both = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&both).into_owned()
        })
        .unwrap_or_default();
    match text.lines().next() {
        Some(line) => {
            line.trim_start_matches("Server version: ").trim_start_matches("nginx version: ").to_owned()
        }
        None => program.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

fn newest(directory: &Path, prefix: &str, suffix: &str) -> Option<PhpProgram> {
    fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let version = version_in(&entry.file_name().to_string_lossy(), prefix, suffix)?;
            Some(PhpProgram { path: entry.path(), version })
        })
        .max_by_key(|program| program.version)
}

fn version_in(name: &str, prefix: &str, suffix: &str) -> Option<(u32, u32)> {
    let (major, minor) = name.strip_prefix(prefix)?.strip_suffix(suffix)?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_names() {
        assert_eq!(version_in("php-fpm8.2", "php-fpm", ""), Some((8, 2)));
        assert_eq!(version_in("libphp8.10.so", "libphp", ".so"), Some((8, 10)));
        assert_eq!(version_in("php-fpm", "php-fpm", ""), None);
        assert_eq!(version_in("libphp.so", "libphp", ".so"), None);
    }

    #[test]
    fn the_newest_is_the_largest_number_not_the_last_name() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["php-fpm8.2", "php-fpm8.10", "php-fpm8.4", "other"] {
            fs::write(directory.path().join(name), "").expect("written");
        }
        let found = newest(directory.path(), "php-fpm", "").expect("there are three");
        assert_eq!(found.version, (8, 10));
        assert_eq!(found.opcache_line(), "");
    }

    #[test]
    fn opcache_is_loaded_where_it_is_not_built_in() {
        let program = |version| PhpProgram { path: PathBuf::new(), version };
        assert_eq!(program((8, 4)).opcache_line(), "zend_extension = opcache\n");
        assert_eq!(program((9, 0)).opcache_line(), "");
    }
}
