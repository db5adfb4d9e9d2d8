//! The Debian packages as they are installed: extracted into a fresh directory, the server serves from there with either PHP, and
//! nothing of the machine that built it.
//!
//! `REGENT_DEB` names the server's package, beside which those of the engines lie. `tools/test package` runs this, and `make deb`
//! makes the packages.
#![forbid(unsafe_code)]

use regent_tests::Setup;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The server's package and that of an engine.
struct Package {
    /// The extracted tree.
    root: TempDir,
    /// The name of the engine's package.
    engine: String,
}

impl Package {
    /// With the PHP that is packaged too, if there is one.
    fn of_threads() -> Option<Self> {
        let engine = engines().into_iter().find(|(name, _)| name.ends_with("-zts"));
        if engine.is_none() {
            println!("SKIPPED: there is no package of a thread-safe PHP: make deb PHP=zts");
        }
        engine.map(Self::extract)
    }

    /// With whichever engine there is.
    fn of_any() -> Self {
        Self::extract(engines().into_iter().next().expect("an engine is packaged with the server"))
    }

    /// With the distribution's PHP, if it has an embed library.
    fn of_processes() -> Option<Self> {
        let engine = engines().into_iter().find(|(name, _)| !name.ends_with("-zts"));
        if engine.is_none() {
            println!("SKIPPED: there is no package of an engine for the distribution's PHP");
        }
        engine.map(Self::extract)
    }

    fn extract((engine, file): (String, PathBuf)) -> Self {
        let root = TempDir::with_prefix("regent-package-").expect("a temporary directory can be made");
        for deb in [&server_deb(), &file] {
            dpkg_deb("-x", deb, root.path());
        }
        // As Debian's alternatives lead to it.
        symlink(&engine, root.path().join("usr/lib/regent/regent-php")).unwrap();
        Self { root, engine }
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
        command.env_clear().env("HOME", self.root.path());
        if self.engine.ends_with("-zts") {
            command.env("PHPRC", self.path("etc/regent/php"));
        }
        command
    }

    /// The dynamic section's entry of where a program looks for libraries.
    fn search_path(&self, program: &str) -> Vec<String> {
        let mut readelf = Command::new("readelf");
        readelf.arg("-d").arg(self.path("usr/lib/regent").join(program));
        let text = said(readelf);
        text.lines()
            .filter(|line| line.contains("RUNPATH") || line.contains("RPATH"))
            .map(Into::into)
            .collect()
    }
}

fn server_deb() -> PathBuf {
    std::env::var_os("REGENT_DEB").expect("REGENT_DEB names the package: see `tools/test package`").into()
}

/// The packages of engines of the same version, by name.
fn engines() -> Vec<(String, PathBuf)> {
    let server = server_deb();
    let file = server.file_name().unwrap().to_str().unwrap();
    let version = file.strip_prefix("regent_").expect("regent_VERSION_ARCHITECTURE.deb");
    let directory = fs::read_dir(server.parent().unwrap()).unwrap();
    let mut found: Vec<_> = directory
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let (name, other) = path.file_name()?.to_str()?.split_once('_')?;
            (name.starts_with("regent-php") && other == version).then(|| (name.to_owned(), path.clone()))
        })
        .collect();
    found.sort();
    found
}

fn dpkg_deb(option: &str, deb: &Path, to: &Path) {
    let status = Command::new("dpkg-deb").arg(option).arg(deb).arg(to).status().expect("dpkg-deb is there");
    assert!(status.success());
}

fn said(mut command: Command) -> String {
    let output = command.output().expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn the_packages_serve_php_from_wherever_they_are_extracted() {
    let Some(package) = Package::of_threads() else { return };
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
fn no_program_of_the_packages_looks_for_libraries_where_it_was_built() {
    let package = Package::of_any();
    for program in ["regent", "regent-native"] {
        assert_eq!(package.search_path(program), Vec::<String>::new(), "{program}");
    }
    if let Some(package) = Package::of_threads() {
        for program in ["php/bin/php", "php/lib/libphp.so"] {
            assert_eq!(package.search_path(program), Vec::<String>::new(), "{program}");
        }
        let paths = package.search_path(&package.engine);
        assert!(paths.len() == 1 && paths[0].ends_with("[$ORIGIN/php/lib]"), "{paths:?}");
    }
    if let Some(package) = Package::of_processes() {
        assert_eq!(package.search_path(&package.engine), Vec::<String>::new());
    }
}

#[test]
fn the_command_line_program_is_the_packages_php() {
    let Some(package) = Package::of_threads() else { return };
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
fn the_distributions_php_serves_in_processes_with_its_extensions_and_its_program() {
    let Some(package) = Package::of_processes() else { return };
    let script = "<?php echo PHP_SAPI, ' ', PHP_ZTS, ' ', extension_loaded('mbstring') ? 'mbstring' : '', ' ', \
        PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;";
    let server = Setup::new()
        .file("index.php", script)
        .php_options("num_threads 2")
        // Not the settings of the test's PHP, which may be another.
        .env("PHP_INI_SCAN_DIR", &scanned(&package))
        .launcher(&package.launcher().each_ref().map(String::as_str))
        .start();
    let version = package.engine.strip_prefix("regent-php").unwrap();
    assert_eq!(server.get("/").expect(200).text(), format!("frankenphp 0 mbstring {version}"));
    server.stop();
    // Beside the other engine too, whose PHP lies in php/.
    fs::create_dir_all(package.path("usr/lib/regent/php/bin")).unwrap();
    fs::write(package.path("usr/lib/regent/php/bin/php"), "#!/bin/sh\necho 'not this one'\n").unwrap();
    let mut command = package.command();
    command.args(["php-cli", "-r", "echo PHP_BINARY, ' ', php_ini_loaded_file();"]);
    assert_eq!(said(command), format!("/usr/bin/php{version} /etc/php/{version}/embed/php.ini"));
}

#[test]
fn of_two_engines_the_distributions_is_taken_and_the_other_when_it_has_gone() {
    let [one, two] = &engines()[..] else {
        println!("SKIPPED: there is one engine alone");
        return;
    };
    let root = TempDir::with_prefix("regent-engines-").unwrap();
    for directory in ["var/lib/dpkg/alternatives", "etc/alternatives"] {
        fs::create_dir_all(root.path().join(directory)).unwrap();
    }
    let chosen = || fs::read_link(root.path().join("etc/alternatives/regent-php")).unwrap();
    let script = |(name, deb): &(String, PathBuf), script: &str, argument: &str| {
        let control = root.path().join(format!("{name}.control"));
        dpkg_deb("-e", deb, &control);
        dpkg_deb("-x", deb, root.path());
        let mut command = Command::new(control.join(script));
        command.arg(argument).env("DPKG_ROOT", root.path());
        said(command);
    };
    let (other, distributions) = if one.0.ends_with("-zts") { (one, two) } else { (two, one) };
    script(distributions, "postinst", "configure");
    script(other, "postinst", "configure");
    assert_eq!(chosen(), Path::new("/usr/lib/regent").join(&distributions.0));
    script(distributions, "prerm", "upgrade");
    assert_eq!(chosen(), Path::new("/usr/lib/regent").join(&distributions.0));
    script(distributions, "prerm", "remove");
    assert_eq!(chosen(), Path::new("/usr/lib/regent").join(&other.0));
}

/// The distribution's directory of extensions, which the harness hides from other PHPs.
fn scanned(package: &Package) -> String {
    format!("/etc/php/{}/embed/conf.d", package.engine.strip_prefix("regent-php").unwrap())
}

#[test]
fn the_packaged_caddyfile_is_valid_and_its_page_is_served() {
    let package = Package::of_any();
    let mut validate = package.command();
    validate.args(["validate", "--config"]).arg(package.path("etc/regent/Caddyfile"));
    assert_eq!(said(validate).trim(), "Valid configuration");
    let caddyfile = fs::read_to_string(package.path("etc/regent/Caddyfile"))
        .unwrap()
        .replace("admin unix//run/regent/admin.sock", "admin off")
        .replace("/var/lib/regent", "DIRECTORY")
        .replace("/usr/share/regent/welcome", "ROOT")
        .replace(":80 {", "http://ADDRESS {");
    let page = fs::read(package.path("usr/share/regent/welcome/index.php")).unwrap();
    // Who is not root cannot have PHP run as somebody else.
    let is_root = rustix::process::geteuid().is_root();
    let caddyfile = if is_root { caddyfile } else { caddyfile.replace("\t\tuser www-data\n", "") };
    let server = Setup::new()
        .for_every_user()
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
    let package = Package::of_any();
    for name in [
        "usr/share/man/man1/regent.1.gz",
        "usr/share/man/man1/regent-run.1.gz",
        "usr/share/bash-completion/completions/regent",
        "usr/share/zsh/vendor-completions/_regent",
        "usr/share/fish/vendor_completions.d/regent.fish",
        "usr/share/doc/regent/copyright",
        "usr/share/doc/regent/libraries.txt.gz",
        &format!("usr/share/doc/{}/copyright", package.engine),
    ] {
        assert!(fs::metadata(package.path(name)).is_ok_and(|file| file.len() > 0), "{name}");
    }
    if let Some(package) = Package::of_threads() {
        let licences = format!("usr/share/doc/{}/php-licences.txt.gz", package.engine);
        assert!(package.path(&licences).is_file(), "those of the PHP that is packaged");
    }
    let unit = fs::read_to_string(package.path("usr/lib/systemd/system/regent.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/regent run --config /etc/regent/Caddyfile"), "{unit}");
}
