//! Servers with WordPress, without a cache and with one.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use super::Options;
use super::stampede;
use crate::apps::application::Prepared;
use crate::apps::configuration::php_ini;
use crate::apps::peer::fpm_programs;
use crate::interrupt::Interrupt;
use crate::load::h2load;
use crate::packages::Program;
use crate::peers::configurations::{fastcgi_parameters, fixed_fpm, nginx};
use crate::peers::programs::{find, php_fpm, version_line};
use crate::peers::{free_port, run_command};
use crate::samples::{Running, listens};
use crate::site::Site;
use crate::supervise::{Daemon, run_to_end};

/// What keeps the page, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Keeper {
    /// Regent without a cache
    Uncached,
    /// Regent's cache in memory
    Memory,
    /// Regent's cache where the page is too large for memory, and comes from the disk each time
    Disk,
    /// nginx and the distribution's php-fpm without a cache
    Nginx,
    /// The same with fastcgi_cache
    NginxCache,
}

/// What all servers have in common.
pub struct Ground<'a> {
    pub site: &'a Site,
    pub options: &'a Options,
    pub interrupt: &'a Interrupt,
}

impl Keeper {
    /// The same server without a cache.
    pub fn uncached(self) -> Self {
        match self {
            Self::Uncached | Self::Memory | Self::Disk => Self::Uncached,
            Self::Nginx | Self::NginxCache => Self::Nginx,
        }
    }

    pub fn is_nginx(self) -> bool {
        self.uncached() == Self::Nginx
    }

    pub fn keeps(self) -> bool {
        self != self.uncached()
    }

    /// What an answer out of the cache says of itself, and one that is not.
    fn mark(self) -> &'static str {
        match self {
            Self::Uncached | Self::Nginx => "HTTP/1.1 200",
            Self::Memory => "cache-status: regent; hit; ttl=",
            Self::Disk => "; detail=disk",
            Self::NginxCache => "x-cache: hit",
        }
    }
}

impl fmt::Display for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uncached => "Regent",
            Self::Memory => "Regent, cache in memory",
            Self::Disk => "Regent, cache on the disk",
            Self::Nginx => "nginx + php-fpm",
            Self::NginxCache => "nginx + php-fpm, fastcgi_cache",
        })
    }
}

/// What the run needs of the machine.
pub fn programs(keepers: &[Keeper]) -> Vec<Program> {
    let mut programs = vec![Program::named("h2load", h2load::PACKAGE), Program::named("curl", "curl")];
    if keepers.iter().any(|keeper| keeper.is_nginx()) {
        programs.push(Program::named("nginx", "nginx"));
        programs.extend(fpm_programs());
    }
    programs
}

pub fn start(keeper: Keeper, prepared: &Prepared, ground: &Ground<'_>) -> Result<Running<Keeper>> {
    let directory = ground.site.server_directory(&format!("{keeper:?}").to_lowercase())?;
    let root = root_of(&directory);
    prepared.copy_to(&root)?;
    stampede::count_runs(&root)?;
    let place = Place { keeper, ground, directory, root, port: free_port(1)? };
    if keeper.is_nginx() { place.start_nginx() } else { place.start_regent() }
}

/// That the page comes from where it should.
pub fn check(server: &Running<Keeper>, ground: &Ground<'_>) -> Result<()> {
    let mut curl = Command::new("curl");
    curl.args([
        "--silent",
        "--show-error",
        "--max-time",
        "30",
        "--output",
        "/dev/null",
        "--dump-header",
        "-",
    ]);
    curl.arg(format!("http://127.0.0.1:{}/", server.port));
    let (status, head) = run_to_end(curl, Duration::from_secs(35), ground.interrupt)?;
    let mark = server.server.mark();
    let is_right = status.success() && head.to_lowercase().contains(&mark.to_lowercase());
    ensure!(is_right, "its front page should say `{mark}`:\n{head}");
    Ok(())
}

/// Where the application of a server is.
fn root_of(directory: &Path) -> PathBuf {
    directory.join("application")
}

/// Where a server is to be made.
struct Place<'a> {
    keeper: Keeper,
    ground: &'a Ground<'a>,
    directory: PathBuf,
    root: PathBuf,
    port: u16,
}

impl Place<'_> {
    fn start_regent(self) -> Result<Running<Keeper>> {
        let program = self.ground.options.regent_binary()?;
        let text = self.caddyfile();
        let config = self.directory.join("Caddyfile");
        fs::write(&config, &text)?;
        let command = run_command(&program, &config, &self.php_settings()?);
        let mut daemon = Daemon::start("the server", command, &self.directory.join("output.log"))?;
        daemon.wait_until_ready(self.ground.interrupt, || listens(self.port))?;
        let software = vec![version_line(&program, "version")];
        Ok(self.running(software, &[("Caddyfile", &text)], vec![daemon]))
    }

    fn caddyfile(&self) -> String {
        // The front page has some ten thousand bytes.
        let memory = match self.keeper {
            Keeper::Disk => format!(
                "\tcache {{\n\t\tlargest_object 1KiB\n\t\tdisk \"{}\" 1GiB\n\t}}\n",
                self.directory.join("cache").display()
            ),
            _ => String::new(),
        };
        let cache = if self.keeper.keeps() { "\tcache {\n\t\tpreset wordpress\n\t}\n" } else { "" };
        format!(
            "{{\n\tadmin off\n\tauto_https off\n{memory}\tregent {{\n\t\tnum_threads {}\n\t}}\n}}\n\n\
             http://:{} {{\n\tbind 127.0.0.1\n\troot * \"{}\"\n{cache}\tphp_server\n}}\n",
            self.ground.options.threads,
            self.port,
            self.root.display(),
        )
    }

    fn start_nginx(self) -> Result<Running<Keeper>> {
        let nginx = find("nginx").context("nginx is not installed")?;
        let fpm = php_fpm().context("php-fpm is not installed")?;
        let socket = self.directory.join("php.sock");
        fs::write(self.directory.join("php.ini"), "")?;
        let pool = fixed_fpm(&self.directory, &socket, self.ground.options.threads);
        let pool_file = self.directory.join("php-fpm.conf");
        fs::write(&pool_file, &pool)?;
        let mut command = Command::new(&fpm.path);
        command.arg("--nodaemonize").arg("--php-ini").arg(self.directory.join("php.ini"));
        command.arg("--fpm-config").arg(pool_file);
        let (major, minor) = fpm.version;
        let scanned = format!("/etc/php/{major}.{minor}/fpm/conf.d:{}", self.php_settings()?);
        command.env("PHP_INI_SCAN_DIR", scanned);
        let mut php = Daemon::start("php-fpm", command, &self.directory.join("php-fpm.out"))?;
        php.wait_until_ready(self.ground.interrupt, || UnixStream::connect(&socket).is_ok())?;

        let front = self.nginx_conf(&socket);
        let front_file = self.directory.join("nginx.conf");
        fs::write(&front_file, &front)?;
        let mut command = Command::new(&nginx);
        command.arg("-e").arg(self.directory.join("nginx.log")).arg("-p").arg(&self.directory);
        command.arg("-c").arg(front_file);
        let mut server = Daemon::start("nginx", command, &self.directory.join("nginx.out"))?;
        server.wait_until_ready(self.ground.interrupt, || listens(self.port))?;
        let software = vec![version_line(&nginx, "-v"), version_line(&fpm.path, "-v")];
        Ok(self.running(software, &[("nginx.conf", &front), ("php-fpm.conf", &pool)], vec![server, php]))
    }

    /// Its cache does what the preset does for visitors: a minute, one more while it is fetched anew, one request for all, and
    /// no page for who is logged in or has commented.
    fn nginx_conf(&self, socket: &Path) -> String {
        let (zone, cache) = match self.keeper {
            Keeper::NginxCache => (
                format!(
                    "    fastcgi_cache_path \"{}\" levels=1:2 keys_zone=pages:16m max_size=1g inactive=60m use_temp_path=off;
    map $http_cookie $passes {{
        default 0;
        \"~wordpress_logged_in_|wordpress_sec_|wp-postpass_|comment_author_\" 1;
    }}
",
                    self.directory.join("cache").display()
                ),
                "            fastcgi_cache pages;
            fastcgi_cache_key $scheme$host$request_uri;
            fastcgi_cache_valid 200 301 404 1m;
            fastcgi_cache_use_stale updating error timeout http_500 http_503;
            fastcgi_cache_background_update on;
            fastcgi_cache_lock on;
            fastcgi_cache_lock_timeout 10s;
            fastcgi_cache_lock_age 10s;
            fastcgi_cache_bypass $passes;
            fastcgi_no_cache $passes;
            add_header X-Cache $upstream_cache_status;
",
            ),
            _ => (String::new(), ""),
        };
        let http = format!(
            "{zone}    fastcgi_buffers 32 16k;
    fastcgi_buffer_size 32k;
    open_file_cache max=1000;
    open_file_cache_valid 2s;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root \"{root}\";
        index index.php;
        location / {{
            try_files $uri /index.php$is_args$args;
        }}
        location ~ \\.php$ {{
            fastcgi_pass \"unix:{socket}\";
{cache}{parameters}        }}
    }}
",
            port = self.port,
            root = self.root.display(),
            socket = socket.display(),
            parameters = fastcgi_parameters(),
        );
        nginx(&self.directory, &http)
    }

    /// For `PHP_INI_SCAN_DIR`; what is read last wins.
    fn php_settings(&self) -> Result<String> {
        let scanned = self.ground.site.php_settings(&self.directory, None)?;
        let sessions = self.directory.join("sessions");
        fs::create_dir(&sessions)?;
        fs::set_permissions(&sessions, fs::Permissions::from_mode(0o777))?;
        fs::write(self.directory.join("php.d/run.ini"), php_ini(&self.directory, &[]))?;
        Ok(scanned)
    }

    fn running(
        self,
        software: Vec<String>,
        configuration: &[(&str, &str)],
        daemons: Vec<Daemon>,
    ) -> Running<Keeper> {
        let kept = |(name, text): &(&str, &str)| ((*name).to_owned(), self.ground.site.anonymize(text));
        Running {
            server: self.keeper,
            port: self.port,
            software,
            configuration: configuration.iter().map(kept).collect(),
            daemons,
        }
    }
}
