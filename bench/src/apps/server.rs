//! Servers with one application on one port of loopback, each with a copy of its own.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Options;
use super::application::{Application, Prepared};
use super::configuration::{self, Parts};
use super::peer::Peer;
use crate::interrupt::Interrupt;
use crate::peers::programs::{find, php_fpm, version_line};
use crate::peers::{free_port, run_command};
use crate::site::Site;
use crate::supervise::Daemon;

/// What all servers have in common.
pub struct Ground<'a> {
    pub site: &'a Site,
    pub options: &'a Options,
    pub interrupt: &'a Interrupt,
}

/// Ends with this value.
pub struct Server {
    pub peer: Peer,
    pub port: u16,
    application: Application,
    software: Vec<String>,
    /// Without what differs from run to run.
    configuration: Vec<(String, String)>,
    daemons: Vec<Daemon>,
}

/// What a page says of a server that is gone.
#[derive(Clone, Debug)]
pub struct Described {
    pub peer: Peer,
    pub application: Application,
    pub software: Vec<String>,
    pub configuration: Vec<(String, String)>,
}

impl Server {
    pub fn leaders(&self) -> Vec<i32> {
        self.daemons.iter().map(Daemon::leader).collect()
    }

    pub fn check_alive(&mut self) -> Result<()> {
        self.daemons.iter_mut().try_for_each(Daemon::check_alive)
    }

    pub fn describe(&self) -> Described {
        Described {
            peer: self.peer,
            application: self.application,
            software: self.software.clone(),
            configuration: self.configuration.clone(),
        }
    }
}

/// Where a server is to be made.
struct Place<'a> {
    ground: &'a Ground<'a>,
    peer: Peer,
    application: Application,
    directory: PathBuf,
    root: PathBuf,
    port: u16,
}

pub fn start(
    peer: Peer,
    application: Application,
    prepared: &Prepared,
    ground: &Ground<'_>,
) -> Result<Server> {
    let directory = ground.site.server_directory(&format!("{application:?}-{peer:?}").to_lowercase())?;
    let copy = directory.join("application");
    prepared.copy_to(&copy)?;
    let root = application.document_root(&copy);
    let place = Place { ground, peer, application, directory, root, port: free_port(1)? };
    if peer.is_fpm() { place.start_fpm() } else { place.start_caddyfile() }
}

impl Place<'_> {
    /// Regent and FrankenPHP.
    fn start_caddyfile(self) -> Result<Server> {
        let options = self.ground.options;
        let program = if self.peer.is_regent() {
            options.regent_binary(self.peer)?
        } else {
            options.frankenphp_binary()?
        };
        let text = self.parts().caddyfile(self.peer);
        let config = self.directory.join("Caddyfile");
        fs::write(&config, &text)?;
        let mut command = run_command(&program, &config, &self.php_settings()?);
        if self.peer.is_frankenphp() {
            for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
                command.env(variable, &self.directory);
            }
        }
        let mut daemon = Daemon::start("the server", command, &self.directory.join("output.log"))?;
        daemon.wait_until_ready(self.ground.interrupt, || listens(self.port))?;
        let software = vec![version_line(&program, "version")];
        let configuration = vec![("Caddyfile".to_owned(), self.ground.site.anonymize(&text))];
        Ok(self.server(software, configuration, vec![daemon]))
    }

    fn start_fpm(self) -> Result<Server> {
        let nginx = find("nginx").context("nginx is not installed")?;
        let (fpm, ini, extensions) = self.fpm()?;
        let socket = self.directory.join("php.sock");
        fs::write(self.directory.join("php.ini"), ini)?;
        let pool = self.parts().fpm_pool(&socket);
        let pool_file = self.directory.join("php-fpm.conf");
        fs::write(&pool_file, &pool)?;
        let mut command = Command::new(&fpm);
        command.arg("--nodaemonize").arg("--php-ini").arg(self.directory.join("php.ini"));
        command.arg("--fpm-config").arg(pool_file);
        command.env("PHP_INI_SCAN_DIR", format!("{extensions}{}", self.php_settings()?));
        let mut php = Daemon::start("php-fpm", command, &self.directory.join("php-fpm.out"))?;
        php.wait_until_ready(self.ground.interrupt, || UnixStream::connect(&socket).is_ok())?;

        let front = self.parts().nginx(&socket);
        let front_file = self.directory.join("nginx.conf");
        fs::write(&front_file, &front)?;
        let mut command = Command::new(&nginx);
        command.arg("-e").arg(self.directory.join("nginx.log")).arg("-p").arg(&self.directory);
        command.arg("-c").arg(front_file);
        let mut server = Daemon::start("nginx", command, &self.directory.join("nginx.out"))?;
        server.wait_until_ready(self.ground.interrupt, || listens(self.port))?;
        let kept = |text: &str| self.ground.site.anonymize(text);
        let software = vec![version_line(&nginx, "-v"), version_line(&fpm, "-v")];
        let configuration =
            vec![("nginx.conf".to_owned(), kept(&front)), ("php-fpm.conf".to_owned(), kept(&pool))];
        Ok(self.server(software, configuration, vec![server, php]))
    }

    /// The program, its php.ini, and the directory of the settings that its extensions come by, with a colon behind it.
    fn fpm(&self) -> Result<(PathBuf, &'static str, String)> {
        if self.peer == Peer::Fpm {
            let fpm = php_fpm().context("php-fpm is not installed")?;
            let (major, minor) = fpm.version;
            return Ok((fpm.path, "", format!("/etc/php/{major}.{minor}/fpm/conf.d:")));
        }
        let program = self.ground.options.other_fpm()?;
        let ini = if has_shared_opcache(&program) { "zend_extension = opcache\n" } else { "" };
        Ok((program, ini, String::new()))
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            application: self.application,
            directory: &self.directory,
            root: &self.root,
            port: self.port,
            threads: self.ground.options.threads,
        }
    }

    /// For `PHP_INI_SCAN_DIR`; what is read last wins.
    fn php_settings(&self) -> Result<String> {
        let scanned = self.ground.site.php_settings(&self.directory, None)?;
        let sessions = self.directory.join("sessions");
        fs::create_dir(&sessions)?;
        fs::set_permissions(&sessions, fs::Permissions::from_mode(0o777))?;
        let options = self.ground.options;
        let mut settings = options.settings.clone();
        if self.peer.is_other_regent() {
            settings.extend(options.other_settings.iter().cloned());
        }
        let text = configuration::php_ini(&self.directory, &settings);
        fs::write(self.directory.join("php.d/run.ini"), text)?;
        Ok(scanned)
    }

    fn server(
        self,
        software: Vec<String>,
        configuration: Vec<(String, String)>,
        daemons: Vec<Daemon>,
    ) -> Server {
        Server {
            peer: self.peer,
            port: self.port,
            application: self.application,
            software,
            configuration,
            daemons,
        }
    }
}

/// PHP has it built in since 8.5. Extensions lie in `lib/php/extensions/…` of the prefix.
fn has_shared_opcache(program: &Path) -> bool {
    let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let directories = fs::read_dir(prefix.join("lib/php/extensions")).into_iter().flatten().flatten();
    directories.into_iter().any(|directory| directory.path().join("opcache.so").is_file())
}

fn listens(port: u16) -> bool {
    TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcache_is_loaded_where_it_is_a_file() {
        let prefix = tempfile::tempdir().expect("a directory");
        let program = prefix.path().join("sbin/php-fpm");
        assert!(!has_shared_opcache(&program));
        let extensions = prefix.path().join("lib/php/extensions/no-debug-non-zts-20240924");
        fs::create_dir_all(&extensions).expect("made");
        fs::write(extensions.join("opcache.so"), "").expect("written");
        assert!(has_shared_opcache(&program));
    }
}
