//! The Debian package as it is installed: extracted into a fresh directory, it serves from there with its own PHP, and
//! nothing of the machine that built it.
//!
//! `REGENT_DEB` names the package. `tools/test package` runs this, and `make deb` makes the package.
#![forbid(unsafe_code)]

use regent_tests::Setup;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The extracted tree.
struct Package {
    root: TempDir,
}

impl Package {
    fn extract() -> Self {
        let deb =
            std::env::var_os("REGENT_DEB").expect("REGENT_DEB names the package: see `tools/test package`");
        let root = TempDir::with_prefix("regent-package-").expect("a temporary directory can be made");
        let status =
            Command::new("dpkg-deb").arg("-x").arg(deb).arg(root.path()).status().expect("dpkg-deb is there");
        assert!(status.success());
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn program(&self) -> PathBuf {
        self.path("usr/bin/regent")
    }

    /// Becomes the package's program instead of the one under test, which is the first argument.
    fn launcher(&self) -> [String; 4] {
        let program = self.program().display().to_string();
        ["sh".into(), "-c".into(), "shift; exec \"$0\" \"$@\"".into(), program]
    }

    /// Where PHP is told to look for what an installed package has at its place.
    fn extensions(&self) -> PathBuf {
        let directory = self.path("usr/lib/regent/php/lib/php/extensions");
        let mut versions = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        versions.next().expect("there is one version of PHP's interface")
    }

    /// `regent` of the package, with an environment that has nothing but this.
    fn command(&self) -> Command {
        let mut command = Command::new(self.program());
        command.env_clear().env("HOME", self.root.path()).env("PHPRC", self.path("etc/regent/php"));
        command
    }
}

fn said(mut command: Command) -> String {
    let output = command.output().expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn the_package_serves_php_from_wherever_it_is_extracted() {
    let package = Package::extract();
    let script = "<?php echo PHP_SAPI, ' ', extension_loaded('Zend OPcache') ? 'cached ' : '', \
        ini_get('session.use_strict_mode'), ' ', extension_loaded('intl') ? 'intl' : '';";
    let server = Setup::new()
        .file("index.php", script)
        .php_options(&format!("num_threads 2\n\t\tphp_ini extension_dir {}", package.extensions().display()))
        .env("PHPRC", &package.path("etc/regent/php").display().to_string())
        .launcher(&package.launcher().each_ref().map(String::as_str))
        .start();
    assert_eq!(server.get("/").expect(200).text(), "frankenphp cached 1 intl");
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.engine())).unwrap();
    let own = package.root.path().display().to_string();
    assert!(maps.contains(&format!("{own}/usr/lib/regent/php/lib/libphp.so")), "{maps}");
    let foreign: Vec<_> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .filter(|path| path.starts_with('/') && !path.starts_with(&own))
        .filter(|path| {
            !["/usr/lib/", "/lib/", "/lib64/", "/dev/", "/memfd:", "/usr/share/", "/SYSV"]
                .iter()
                .any(|place| path.starts_with(place))
        })
        .collect();
    assert!(foreign.is_empty(), "the engine has mapped {foreign:?}");
    server.stop();
}

#[test]
fn no_program_of_the_package_looks_for_libraries_where_it_was_built() {
    let package = Package::extract();
    for program in ["regent", "regent-php", "regent-native", "php/bin/php", "php/lib/libphp.so"] {
        let mut readelf = Command::new("readelf");
        readelf.arg("-d").arg(package.path("usr/lib/regent").join(program));
        let text = said(readelf);
        let paths: Vec<_> =
            text.lines().filter(|line| line.contains("RUNPATH") || line.contains("RPATH")).collect();
        match program {
            "regent-php" => assert!(paths.len() == 1 && paths[0].ends_with("[$ORIGIN/php/lib]"), "{paths:?}"),
            _ => assert!(paths.is_empty(), "{program}: {paths:?}"),
        }
    }
}

#[test]
fn the_command_line_program_is_the_packages_php() {
    let package = Package::extract();
    let mut command = package.command();
    let extensions = package.extensions().display().to_string();
    command.args(["php-cli", "-d"]).arg(format!("extension_dir={extensions}"));
    command
        .args(["-r", "echo PHP_BINARY, ' ', PHP_ZTS, ' ', PHP_EXTENSION_DIR, ' ', php_ini_loaded_file();"]);
    let text = said(command);
    let [binary, zts, extension_dir, ini] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_eq!(Path::new(binary), package.path("usr/lib/regent/php/bin/php"));
    assert_eq!(zts, "1");
    assert!(extension_dir.starts_with("/usr/lib/regent/php/lib/php/extensions/"), "{extension_dir}");
    assert_eq!(Path::new(ini), package.path("etc/regent/php/php.ini"));
}

#[test]
fn the_packaged_caddyfile_is_valid_and_its_page_is_served() {
    let package = Package::extract();
    let mut validate = package.command();
    validate.args(["validate", "--config"]).arg(package.path("etc/regent/Caddyfile"));
    assert_eq!(said(validate).trim(), "Valid configuration");
    let caddyfile = fs::read_to_string(package.path("etc/regent/Caddyfile"))
        .unwrap()
        .replacen('{', "{\n\tadmin off", 1)
        .replace("/var/lib/regent", "DIRECTORY")
        .replace("/usr/share/regent/welcome", "ROOT")
        .replace(":80 {", "http://127.0.0.1:PORT {");
    let page = fs::read(package.path("usr/share/regent/welcome/index.php")).unwrap();
    let server = Setup::new()
        .file("index.php", page)
        .caddyfile(&caddyfile)
        .launcher(&package.launcher().each_ref().map(String::as_str))
        .start();
    let response = server.get("/").expect(200).text();
    assert!(response.contains("made by FrankenPHP (Regent/"), "{response}");
    server.stop();
}

#[test]
fn there_are_a_manual_completions_and_a_unit_that_knows_the_program() {
    let package = Package::extract();
    for name in [
        "usr/share/man/man1/regent.1.gz",
        "usr/share/man/man1/regent-run.1.gz",
        "usr/share/bash-completion/completions/regent",
        "usr/share/zsh/vendor-completions/_regent",
        "usr/share/fish/vendor_completions.d/regent.fish",
        "usr/share/doc/regent/copyright",
        "usr/share/doc/regent/libraries.txt.gz",
        "usr/share/doc/regent/php-licences.txt.gz",
    ] {
        assert!(fs::metadata(package.path(name)).is_ok_and(|file| file.len() > 0), "{name}");
    }
    let unit = fs::read_to_string(package.path("usr/lib/systemd/system/regent.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/regent run --config /etc/regent/Caddyfile"), "{unit}");
}
