//! A PHP with known critical holes: what the server says of it, and that no tool takes it without a word.
#![forbid(unsafe_code)]

use regent_tests::{Setup, php, until};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/build-php");
const IMAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/image");
const WARNING: &str = "this PHP has holes that are known";

#[test]
fn the_server_warns_of_a_php_with_known_holes_once_and_of_no_other() {
    let server = Setup::new().admin("ADMIN").file("index.php", "<?php echo PHP_VERSION;").start();
    let admin = server.admin();
    let version = server.get("/").expect(200).text().to_owned();
    admin.request("POST", "/regent/workers/restart").send().expect(200);
    until("another engine runs", || (admin.metric("regent_generations_total", &[]) >= 2.0).then_some(()));
    until("it has taken over", || {
        let statistics = admin.get("/regent/statistics").expect(200).json();
        (statistics["generations"].as_array()?.len() == 1 && statistics["generations"][0]["number"] == 2)
            .then_some(())
    });
    let warnings = usize::from(php::has_known_holes());
    assert_eq!(server.log().matches(WARNING).count(), warnings, "{}", server.log());

    let said = &admin.get("/regent/statistics").expect(200).json()["php"];
    assert_eq!(said["version"], version.as_str());
    assert_eq!(said["state"] == "below", php::has_known_holes(), "{said}");
    assert_eq!(said["floor"].is_string(), said["state"] == "below" || said["state"] == "unproven", "{said}");
    assert_eq!(admin.metric("regent_php_below_floor", &[]), warnings as f64);
    assert_eq!(admin.metric("regent_php_info", &[("version", &version)]), 1.0);
    server.stop();
}

/// What looks to the tools like a PHP of this version that somebody has built.
fn built(directory: &Path, version: &str) -> Command {
    for path in ["include/main", "lib"] {
        fs::create_dir_all(directory.join(path)).unwrap();
    }
    fs::write(directory.join("include/main/php_config.h"), "#define ZTS 1\n").unwrap();
    fs::write(directory.join("lib/libphp.so"), "").unwrap();
    let (config, root) = (directory.join("php-config"), directory.display());
    let answers = format!(
        "--include-dir) echo {root}/include;; --version) echo {version};; --lib-dir) echo {root}/lib;; *) echo {root};;"
    );
    fs::write(&config, format!("#!/bin/sh\ncase $1 in {answers} esac\n")).unwrap();
    fs::set_permissions(&config, Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(TOOL);
    command.env("PHP_CONFIG", config).env_remove("REGENT_OLD_PHP");
    command
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn tools_refuse_a_php_with_known_holes_unless_it_is_for_tests() {
    let directory = tempfile::tempdir().unwrap();
    let mut old = built(directory.path(), "8.4.24");
    let output = old.output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
    let said = complaint(&output);
    assert!(said.contains("PHP 8.4.24 has known critical holes (CVE-2026-109618"), "{said}");
    assert!(said.contains("without is 8.4.28") && said.contains("REGENT_OLD_PHP=yes"), "{said}");

    let output = old.env("REGENT_OLD_PHP", "yes").output().unwrap();
    assert!(output.status.success(), "{}", complaint(&output));
    assert!(complaint(&output).contains("for tests alone"), "{}", complaint(&output));
    let output = built(directory.path(), "8.4.999").output().unwrap();
    assert!(output.status.success(), "{}", complaint(&output));
}

#[test]
fn no_image_is_made_of_a_package_whose_php_has_known_holes() {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        println!("skipped: no packages can be made here");
        return;
    }
    let cache = Cache::new();
    // By which an image would be made.
    cache.program("mmdebstrap", "exit 1");
    cache.program("buildah", "exit 1");
    let directory = &cache.directory;
    let pack = |name: &str, fields: &str| {
        let root = directory.path().join(name);
        fs::create_dir_all(root.join("DEBIAN")).unwrap();
        let control = format!(
            "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@packages.invalid>\n{fields}Description: a\n"
        );
        fs::write(root.join("DEBIAN/control"), control).unwrap();
        let file = directory.path().join(format!("{name}_1_all.deb"));
        let packed =
            Command::new("dpkg-deb").arg("--root-owner-group").arg("--build").arg(&root).arg(&file).output();
        assert!(packed.unwrap().status.success());
        file
    };
    let server = pack("regent", "");
    for (fields, expected) in [
        ("Regent-PHP: 8.4.24\n", "PHP 8.4.24 has known critical holes"),
        ("", "does not say which PHP it has"),
    ] {
        pack("regent-php8.4-zts", fields);
        let mut image = Command::new(IMAGE);
        image.arg(&server).env("PHP", "zts").env("PATH", cache.search_path()).env_remove("REGENT_OLD_PHP");
        let output = image.output().unwrap();
        assert!(!output.status.success());
        assert!(complaint(&output).contains(expected), "{}", complaint(&output));
    }
}

/// A directory of its own for what the tool builds, with sources that build at once.
struct Cache {
    directory: tempfile::TempDir,
}

impl Cache {
    fn new() -> Self {
        let cache = Self { directory: tempfile::tempdir().unwrap() };
        // The packages that a real PHP needs are not.
        cache.program("dpkg-query", "echo install ok installed");
        cache
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        fs::create_dir_all(self.path("bin")).unwrap();
        let file = self.path("bin").join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    }

    /// With the programs of this directory before all others.
    fn search_path(&self) -> String {
        format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap())
    }

    /// An archive that calls itself this version; what it installs is a php-config.
    fn source(&self, version: &str) -> PathBuf {
        let root = self.path(&format!("php-{version}"));
        fs::create_dir_all(root.join("main")).unwrap();
        fs::write(root.join("main/php_version.h"), format!("#define PHP_VERSION \"{version}\"\n")).unwrap();
        let makefile = format!(
            "all:\ninstall:\n\tmkdir -p $(INSTALL_ROOT)$(prefix)/bin\n\
             \tprintf '#!/bin/sh\\necho {version}\\n' >$(INSTALL_ROOT)$(prefix)/bin/php-config\n\
             \tchmod 755 $(INSTALL_ROOT)$(prefix)/bin/php-config\n"
        );
        fs::write(root.join("Makefile.in"), makefile).unwrap();
        let configure = root.join("configure");
        let script = "#!/bin/sh\nfor of; do case $of in --prefix=*) prefix=${of#*=};; esac; done\n\
                      { echo \"prefix = $prefix\"; cat Makefile.in; } >Makefile\n";
        fs::write(&configure, script).unwrap();
        fs::set_permissions(&configure, Permissions::from_mode(0o755)).unwrap();
        let archive = self.path(&format!("php-{version}.tar"));
        let mut command = Command::new("tar");
        command.arg("-cf").arg(&archive).arg("-C").arg(self.directory.path()).arg(format!("php-{version}"));
        assert!(command.status().unwrap().success());
        archive
    }

    /// The directory of the PHP that the tool prints.
    fn take(&self, variables: &[(&str, &Path)]) -> PathBuf {
        let mut command = Command::new(TOOL);
        command.env_remove("PHP_CONFIG").env_remove("REGENT_OLD_PHP").env("PATH", self.search_path());
        command.env("REGENT_PHP", "8.4").env("REGENT_CACHE", self.directory.path());
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{}", complaint(&output));
        let config = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        config.parent().and_then(Path::parent).expect("it is in bin").to_owned()
    }
}

#[test]
fn a_php_of_the_cache_made_room_for_a_newer_one_and_is_found_by_its_former_name() {
    let (cache, tests) = (Cache::new(), ("REGENT_OLD_PHP", Path::new("yes")));
    let old = cache.take(&[tests, ("REGENT_PHP_SOURCE", &cache.source("8.4.24"))]);
    assert!(old.file_name().unwrap().to_str().unwrap().starts_with("8.4.24-"), "{}", old.display());
    assert!(old.join("FOR-TESTS-ALONE").is_file());
    assert_eq!(cache.take(&[tests]), old);

    let new = cache.take(&[("REGENT_PHP_SOURCE", &cache.source("8.4.999"))]);
    assert!(new.file_name().unwrap().to_str().unwrap().starts_with("8.4.999-"), "{}", new.display());
    assert!(!new.join("FOR-TESTS-ALONE").exists() && old.is_dir());
    assert_eq!(cache.take(&[]), new);
    assert_eq!(cache.take(&[tests]), new);

    // As it was named when the patch level was in no name.
    let former = PathBuf::from(new.to_str().unwrap().replace("8.4.999-", "8.4-"));
    fs::rename(&new, &former).unwrap();
    assert_eq!(cache.take(&[]), former);
}
