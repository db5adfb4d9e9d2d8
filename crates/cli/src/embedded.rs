//! This program with an application in it: unpacks it, and starts itself again with what belongs to it.

use crate::arguments::{Command, Config, PhpServer};
use crate::configuration::{DEFAULT_FILE, Origin};
use anyhow::{Context, Result};
use regent_embed::{Footer, Mark, Place, default_cache, layout, unpack};
use regent_server::EngineKind;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;

/// Names the application's directory, for its Caddyfile and its scripts too.
pub const APPLICATION: &str = "REGENT_APP";
/// This program, also when another file has come to its path.
const OWN: &str = "/proc/self/exe";
const SCAN: &str = "PHP_INI_SCAN_DIR";

/// An application that is unpacked, and whose PHP this program is to use.
#[derive(Debug)]
pub struct Embedded {
    directory: PathBuf,
}

impl Embedded {
    /// What is needed for a command. `None`: there is no application in this program, or the command is not about it.
    ///
    /// A program of several threads cannot change its environment safely, and PHP reads it: so this starts the program once
    /// more, in the same process, with what PHP is to have.
    pub fn for_command(command: &Command) -> Result<Option<Self>> {
        if Mark::own() == Mark::Plain || !is_about_the_application(command) {
            return Ok(None);
        }
        let own = Path::new(OWN);
        let Some(footer) = Footer::of_program(own)? else { return Ok(None) };
        let unpacked = unpack(own, &footer, &Place::open(&default_cache()?)?)?.directory;
        let directory = unpacked.join(layout::APPLICATION);
        if std::env::var_os(APPLICATION).is_some_and(|known| known == directory) {
            return Ok(Some(Self { directory }));
        }
        match again(&unpacked, &directory)? {}
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its own Caddyfile, unless the command line says what is to be served.
    pub fn php_server(&self, options: PhpServer) -> Origin {
        match options.is_plain() && self.directory.join(DEFAULT_FILE).is_file() {
            true => Origin::File(Config::default()),
            false => Origin::PhpServer(options),
        }
    }

    /// A script that is not there is one of the application's, as with FrankenPHP.
    pub fn php_arguments(&self, mut arguments: Vec<OsString>) -> Vec<OsString> {
        if let Some(script) = arguments.first_mut() {
            let own = self.directory.join(&script);
            if !Path::new(script).exists() && own.is_file() {
                *script = own.into();
            }
        }
        arguments
    }
}

/// Others talk to a server that runs, or are about another one.
fn is_about_the_application(command: &Command) -> bool {
    matches!(
        command,
        Command::Run(_)
            | Command::PhpServer(_)
            | Command::PhpCli(_)
            | Command::Php(_)
            | Command::Validate(_)
            | Command::Adapt(_)
            | Command::Doctor(_)
    )
}

fn again(unpacked: &Path, application: &Path) -> Result<Infallible> {
    let mut arguments = std::env::args_os();
    let mut command = process::Command::new(OWN);
    arguments.next().into_iter().for_each(|name| {
        command.arg0(name);
    });
    command.args(arguments).env(APPLICATION, application);
    for (kind, program) in [(EngineKind::Php, layout::ENGINE), (EngineKind::Native, layout::NATIVE_ENGINE)] {
        let program = unpacked.join(program);
        if program.is_file() {
            command.env(kind.variable(), program);
        }
    }
    let ini = unpacked.join(layout::INI);
    if let Some(directory) = ini.parent().filter(|_| ini.is_file()) {
        command.env("PHPRC", directory);
    }
    // An application that another one has started has nothing of that one's settings.
    let users = std::env::var_os(SCAN).filter(|_| std::env::var_os(APPLICATION).is_none());
    command.env(SCAN, scanned(unpacked, users));
    Err(command.exec()).context("starting the program again, with the application that is in it")
}

/// The directories of settings: what the user names comes last. An empty one is PHP's own, if that is the system's.
fn scanned(unpacked: &Path, users: Option<OsString>) -> OsString {
    let mut scanned = OsString::new();
    if !unpacked.join(layout::CLI).is_file() {
        scanned.push(":");
    }
    scanned.push(unpacked.join(layout::INI_DIRECTORY));
    if let Some(users) = users.filter(|users| !users.is_empty()) {
        scanned.push(":");
        scanned.push(users);
    }
    scanned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_is_not_there_is_the_application_s() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("console.php"), "").unwrap();
        let embedded = Embedded { directory: directory.path().to_owned() };
        let first = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from).collect();
            embedded.php_arguments(arguments).into_iter().next()
        };
        assert_eq!(first(&["console.php", "x"]), Some(directory.path().join("console.php").into()));
        for same in ["-r", "none.php", "/bin/sh"] {
            assert_eq!(first(&[same]), Some(same.into()));
        }
        assert_eq!(first(&[]), None);
    }

    #[test]
    fn settings_of_the_user_come_last_and_those_of_the_system_s_php_first() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join(layout::INI_DIRECTORY).display().to_string();
        let scan =
            |users: Option<&str>| scanned(directory.path(), users.map(Into::into)).into_string().unwrap();
        assert_eq!([scan(None), scan(Some("/x"))], [format!(":{own}"), format!(":{own}:/x")]);
        std::fs::create_dir_all(directory.path().join("php/bin")).unwrap();
        std::fs::write(directory.path().join(layout::CLI), "").unwrap();
        assert_eq!([scan(None), scan(Some(""))], [own.clone(), own]);
    }
}
