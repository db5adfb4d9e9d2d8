//! The peers' programs from the distribution, without its services.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::interrupt::Interrupt;
use crate::peers::programs::{COMPILER, COMPILER_PACKAGE, find, mod_php, php_fpm};
use crate::peers::{Contender, ServerKind};

/// Debian's veto on starting services: invoke-rc.d and deb-systemd-invoke ask this program, and 101 means no.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_TEXT: &str = "#!/bin/sh\nexit 101\n";
const UNIT_DIRECTORIES: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];
const INIT_SCRIPTS: &str = "/etc/init.d";

/// Installs what the chosen servers and the load generator need and the machine lacks. Services that come along are
/// neither started nor left enabled.
pub fn install_missing(servers: &[Contender], interrupt: &Interrupt) -> Result<()> {
    install_packages(&missing_packages(servers), interrupt)?;
    match missing_packages(servers).as_slice() {
        [] => Ok(()),
        still => {
            bail!("the packages were installed, but still missing are the programs of: {}", still.join(" "))
        }
    }
}

fn install_packages(missing: &[&str], interrupt: &Interrupt) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    ensure!(
        find("apt-get").is_some(),
        "these programs are missing and this is not a Debian or Ubuntu: {list}; install them, \
         or leave the servers that need them out of --servers"
    );
    let root = Root::find().with_context(|| {
        format!(
            "packages are missing and there is neither root nor sudo; run as root: apt-get install {list}"
        )
    })?;
    protect_existing_apache(missing)?;
    eprintln!("installing {list}");
    let before = Services::present();
    let installed = install(&root, missing);
    let disabled = before.disable_new(&root);
    installed?;
    disabled?;
    interrupt.check()
}

/// A program, by the package that it comes with.
pub struct Program {
    pub package: &'static str,
    pub is_there: bool,
}

impl Program {
    pub fn named(name: &str, package: &'static str) -> Self {
        Self { package, is_there: find(name).is_some() }
    }
}

/// Installs what is missing of these, as [`install_missing`] does. What is started later says what is still missing.
pub fn install_programs(programs: &[Program], interrupt: &Interrupt) -> Result<()> {
    let missing = programs.iter().filter(|program| !program.is_there);
    install_packages(&missing.map(|program| program.package).collect::<Vec<_>>(), interrupt)
}

/// What an external server needs is not known here; its start says what is missing.
fn missing_packages(servers: &[Contender]) -> Vec<&'static str> {
    let mut missing = Vec::new();
    let mut need = |package, present: bool| {
        if !present {
            missing.push(package);
        }
    };
    let built_in: Vec<ServerKind> = servers.iter().filter_map(Contender::built_in).collect();
    need("wrk", find("wrk").is_some());
    if built_in.iter().any(|server| server.is_native()) {
        need(COMPILER_PACKAGE, find(COMPILER).is_some());
    }
    if built_in.iter().any(|server| server.is_fpm()) {
        need("nginx", find("nginx").is_some());
        need("php-fpm", php_fpm().is_some());
    }
    if built_in.contains(&ServerKind::Apache) {
        need("apache2-bin", find("apache2").is_some());
        need("libapache2-mod-php", mod_php().is_some());
    }
    missing
}

/// The package of mod_php changes the modules of a configured Apache (a2enmod, from event to prefork).
fn protect_existing_apache(missing: &[&str]) -> Result<()> {
    if missing.contains(&"libapache2-mod-php") && Path::new("/etc/apache2/apache2.conf").exists() {
        bail!(
            "this machine has an Apache of its own, whose configuration the installation of libapache2-mod-php \
             would change; install it yourself, or leave apache out of --servers"
        );
    }
    Ok(())
}

fn install(root: &Root, packages: &[&str]) -> Result<()> {
    let _policy = ServicePolicy::forbid(root, Path::new(POLICY))?;
    // One broken source makes the update fail as a whole; what is needed may still be had from the others.
    if let Err(error) = apt_get(root, &["update"]) {
        eprintln!("warning: {error:#}");
    }
    apt_get(root, &[&["install", "-y", "--no-install-recommends"], packages].concat())
}

fn apt_get(root: &Root, arguments: &[&str]) -> Result<()> {
    let log = tempfile::NamedTempFile::new()?;
    let status = root
        .command("env")
        .args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"])
        .args(arguments)
        .stdout(log.as_file().try_clone()?)
        .stderr(log.as_file().try_clone()?)
        .status()?;
    if !status.success() {
        let text = fs::read_to_string(log.path())?;
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(15)..].join("\n  ");
        bail!("apt-get {} failed ({status}):\n  {end}", arguments.join(" "));
    }
    Ok(())
}

/// Runs commands as root, directly or by sudo (which may ask for the password).
#[derive(Debug)]
struct Root {
    sudo: bool,
}

impl Root {
    fn find() -> Option<Self> {
        let sudo = !rustix::process::geteuid().is_root();
        (!sudo || find("sudo").is_some()).then_some(Self { sudo })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(if self.sudo { "sudo" } else { program });
        if self.sudo {
            command.arg(program);
        }
        command.stdin(Stdio::inherit());
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let output = self.command(program).args(arguments).output()?;
        ensure!(
            output.status.success(),
            "{program} {} failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(())
    }
}

/// While this lives, installing a package starts no service. A policy of the machine's own is left as it is.
struct ServicePolicy<'a> {
    path: &'a Path,
    /// `None` when the policy is the machine's own.
    root: Option<&'a Root>,
}

impl<'a> ServicePolicy<'a> {
    fn forbid(root: &'a Root, path: &'a Path) -> Result<Self> {
        if path.exists() {
            return Ok(Self { path, root: None });
        }
        let mut text = tempfile::NamedTempFile::new()?;
        text.write_all(POLICY_TEXT.as_bytes())?;
        root.run("install", &["-m", "755", &text.path().to_string_lossy(), &path.to_string_lossy()])?;
        Ok(Self { path, root: Some(root) })
    }
}

impl Drop for ServicePolicy<'_> {
    fn drop(&mut self) {
        let Some(root) = self.root else { return };
        if let Err(error) = root.run("rm", &["-f", &self.path.to_string_lossy()]) {
            eprintln!(
                "warning: {} keeps services from starting and could not be removed: {error}",
                self.path.display()
            );
        }
    }
}

/// The services that a machine knows.
#[derive(Debug)]
struct Services {
    units: BTreeSet<String>,
    init_scripts: BTreeSet<String>,
}

impl Services {
    fn present() -> Self {
        let units =
            UNIT_DIRECTORIES.iter().flat_map(|directory| names_in(directory)).filter(|name| is_unit(name));
        Self { units: units.collect(), init_scripts: names_in(INIT_SCRIPTS).collect() }
    }

    /// Disables and stops what has come since.
    fn disable_new(&self, root: &Root) -> Result<()> {
        let now = Self::present();
        // Without a running systemd there is nothing to stop, and `--now` would fail.
        let how: &[&str] =
            if Path::new("/run/systemd/system").exists() { &["disable", "--now"] } else { &["disable"] };
        if find("systemctl").is_some() {
            for unit in now.units.difference(&self.units) {
                root.run("systemctl", &[how, &["--quiet", unit.as_str()]].concat())?;
            }
        }
        for script in now.init_scripts.difference(&self.init_scripts) {
            root.run("update-rc.d", &[script, "disable"])?;
        }
        Ok(())
    }
}

fn names_in(directory: &str) -> impl Iterator<Item = String> + use<> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// Units that can be enabled on their own; a template (`name@.service`) needs an instance.
fn is_unit(name: &str) -> bool {
    [".service", ".socket", ".timer"].iter().any(|suffix| name.ends_with(suffix)) && !name.contains("@.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_units_that_can_be_enabled_count() {
        assert!(is_unit("nginx.service") && is_unit("phpsessionclean.timer"));
        assert!(!is_unit("apache2@.service") && !is_unit("multi-user.target") && !is_unit("nginx.service.d"));
    }

    #[test]
    fn services_are_vetoed_only_while_packages_are_installed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("policy-rc.d");
        let root = Root { sudo: false };
        let policy = ServicePolicy::forbid(&root, &path).expect("written");
        let status = Command::new(&path).status().expect("it can be executed");
        assert_eq!(status.code(), Some(101));
        drop(policy);
        assert!(!path.exists());
    }

    #[test]
    fn a_policy_of_the_machines_own_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("policy-rc.d");
        fs::write(&path, "theirs").expect("written");
        drop(ServicePolicy::forbid(&Root { sudo: false }, &path).expect("left alone"));
        assert_eq!(fs::read_to_string(&path).expect("it is still there"), "theirs");
    }

    #[test]
    fn a_server_with_default_settings_needs_the_same_programs() {
        for text in ["fpm", "apache"] {
            let contender = |text: &str| text.parse::<Contender>().expect("any name is valid");
            assert_eq!(
                missing_packages(&[contender(text)]),
                missing_packages(&[contender(&format!("{text}:default"))])
            );
        }
    }

    #[test]
    fn regent_alone_needs_no_peer() {
        let missing = missing_packages(&[ServerKind::Classic.into(), ServerKind::Worker.into()]);
        assert!(missing.iter().all(|package| *package == "wrk"), "{missing:?}");
    }
}
