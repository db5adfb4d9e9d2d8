//! Servers with TLS on one port, with one certificate, and the same PHP pool behind each.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use super::Options;
use super::case::{Case, Load, Protocol};
use crate::interrupt::Interrupt;
use crate::load::h2load;
use crate::packages::Program;
use crate::peers::configurations::{self, fastcgi_parameters, fixed_fpm};
use crate::peers::programs::{find, php_fpm, version_line};
use crate::peers::{free_port, run_command};
use crate::samples::{Running, listens};
use crate::site::{HELLO_PATH, LARGE_PATH, Site, WORKER_PATH};
use crate::supervise::{Daemon, run_to_end};

/// Of gzip, on all servers. (Regent's default; nginx's is 1, Caddy's 5.)
const GZIP_LEVEL: u8 = 5;
/// After which Regent and Caddy end a silent connection: oha waits for that.
pub const IDLE: Duration = Duration::from_secs(3);
/// To make a certificate.
const OPENSSL_TIME: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Front {
    /// Regent with a worker script
    Worker,
    /// Regent, a fresh PHP request for each
    Classic,
    /// nginx in front of php-fpm
    Nginx,
    /// Caddy in front of php-fpm
    Caddy,
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Worker => "Regent worker",
            Self::Classic => "Regent classic",
            Self::Nginx => "nginx + php-fpm",
            Self::Caddy => "Caddy + php-fpm",
        })
    }
}

impl Front {
    fn is_regent(self) -> bool {
        matches!(self, Self::Worker | Self::Classic)
    }

    /// Whether it speaks the protocol: Debian's nginx has no HTTP/3.
    pub fn has(self, case: &Case) -> bool {
        let is_http3 = matches!(case, Case::Requests(Load { protocol: Protocol::Http3, .. }));
        self != Self::Nginx || !is_http3
    }

    /// The path of a script, with a query.
    pub fn target(self, script: &str, query: &str) -> String {
        let name = script.trim_start_matches('/').trim_end_matches(".php");
        match self {
            Self::Worker if script == HELLO_PATH => format!("{WORKER_PATH}{query}"),
            Self::Worker => format!("{WORKER_PATH}/{name}{query}"),
            _ => format!("{script}{query}"),
        }
    }
}

/// What the run needs of the machine.
pub fn programs(fronts: &[Front]) -> Vec<Program> {
    let mut programs = vec![Program::named("h2load", h2load::PACKAGE), Program::named("openssl", "openssl")];
    if fronts.contains(&Front::Nginx) {
        programs.push(Program::named("nginx", "nginx"));
    }
    if fronts.iter().any(|front| !front.is_regent()) {
        programs.push(Program { package: "php-fpm", is_there: php_fpm().is_some() });
    }
    programs
}

/// What all servers have in common.
pub struct Ground<'a> {
    site: &'a Site,
    options: &'a Options,
    interrupt: &'a Interrupt,
    certificate: PathBuf,
    key: PathBuf,
}

impl<'a> Ground<'a> {
    /// Makes a certificate for `localhost` with a key of P-256.
    pub fn prepare(site: &'a Site, options: &'a Options, interrupt: &'a Interrupt) -> Result<Self> {
        let (certificate, key) = (site.path().join("site.crt"), site.path().join("site.key"));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        openssl.args(["-days", "30", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
        openssl.arg("-out").arg(&certificate).arg("-keyout").arg(&key).stderr(Stdio::null());
        let (status, _) = run_to_end(openssl, OPENSSL_TIME, interrupt)?;
        ensure!(status.success(), "openssl could not make a certificate ({status})");
        // Servers that were started by root read it as another user.
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644))?;
        Ok(Self { site, options, interrupt, certificate, key })
    }
}

pub fn start(front: Front, ground: &Ground<'_>) -> Result<Running<Front>> {
    let server = match front {
        Front::Worker | Front::Classic => start_regent(front, ground)?,
        Front::Nginx | Front::Caddy => start_before_fpm(front, ground)?,
    };
    check(&server, ground)?;
    Ok(server)
}

fn start_regent(front: Front, ground: &Ground<'_>) -> Result<Running<Front>> {
    let (program, port) = (ground.options.regent_binary()?, free_port(1)?);
    let name = if front == Front::Worker { "regent-worker" } else { "regent-classic" };
    let directory = ground.site.server_directory(name)?;
    let threads = ground.options.threads;
    let pool = match front {
        Front::Worker => format!(
            "num_threads {}\n\t\tworker {{\n\t\t\tfile \"{}\"\n\t\t\tnum {threads}\n\t\t}}",
            threads + 1,
            ground.site.file(WORKER_PATH).display()
        ),
        _ => format!("num_threads {threads}"),
    };
    let text = format!(
        "{{\n{}\tregent {{\n\t\t{pool}\n\t}}\n}}\n\n{}",
        caddy_options(&directory),
        caddy_site(ground, port, "php_server"),
    );
    let config = directory.join("Caddyfile");
    fs::write(&config, &text)?;
    let command = run_command(&program, &config, &ground.site.php_settings(&directory, None)?);
    let mut regent = Daemon::start("regent", command, &directory.join("output.log"))?;
    regent.wait_until_ready(ground.interrupt, || listens(port))?;
    Ok(Running {
        server: front,
        port,
        software: vec![version_line(&program, "version")],
        configuration: vec![("Caddyfile".to_owned(), ground.site.anonymize(&text))],
        daemons: vec![regent],
    })
}

fn start_before_fpm(front: Front, ground: &Ground<'_>) -> Result<Running<Front>> {
    let fpm = php_fpm().context("php-fpm is not installed")?;
    let name = if front == Front::Nginx { "nginx" } else { "caddy" };
    let directory = ground.site.server_directory(name)?;
    let (socket, port) = (directory.join("php.sock"), free_port(1)?);
    fs::write(directory.join("php.ini"), fpm.opcache_line())?;
    let pool = fixed_fpm(&directory, &socket, ground.options.threads);
    fs::write(directory.join("php-fpm.conf"), &pool)?;
    let mut command = Command::new(&fpm.path);
    command.arg("--nodaemonize").arg("--php-ini").arg(directory.join("php.ini"));
    command.arg("--fpm-config").arg(directory.join("php-fpm.conf"));
    command.env("PHP_INI_SCAN_DIR", ground.site.php_settings(&directory, None)?);
    let mut php = Daemon::start("php-fpm", command, &directory.join("php-fpm.out"))?;
    php.wait_until_ready(ground.interrupt, || UnixStream::connect(&socket).is_ok())?;
    let (program, text, command) = match front {
        Front::Nginx => nginx(ground, &directory, &socket, port)?,
        _ => caddy(ground, &directory, &socket, port)?,
    };
    let mut server = Daemon::start(name, command, &directory.join("server.out"))?;
    server.wait_until_ready(ground.interrupt, || listens(port))?;
    let version = if front == Front::Nginx { "-v" } else { "version" };
    let kept = |text: &str| ground.site.anonymize(text);
    Ok(Running {
        server: front,
        port,
        software: vec![version_line(&program, version), version_line(&fpm.path, "-v")],
        configuration: vec![(name.to_owned(), kept(&text)), ("php-fpm.conf".to_owned(), kept(&pool))],
        daemons: vec![server, php],
    })
}

fn nginx(
    ground: &Ground<'_>,
    directory: &Path,
    socket: &Path,
    port: u16,
) -> Result<(PathBuf, String, Command)> {
    let program = find("nginx").context("nginx is not installed")?;
    let text = nginx_configuration(ground, directory, socket, port);
    let config = directory.join("nginx.conf");
    fs::write(&config, &text)?;
    let mut command = Command::new(&program);
    command.arg("-e").arg(directory.join("nginx.log")).arg("-p").arg(directory).arg("-c").arg(config);
    Ok((program, text, command))
}

fn caddy(
    ground: &Ground<'_>,
    directory: &Path,
    socket: &Path,
    port: u16,
) -> Result<(PathBuf, String, Command)> {
    let program = fs::canonicalize(ground.options.caddy_binary()?)?;
    let handler = format!("php_fastcgi unix/{}", socket.display());
    let text = format!("{{\n{}}}\n\n{}", caddy_options(directory), caddy_site(ground, port, &handler));
    let config = directory.join("Caddyfile");
    fs::write(&config, &text)?;
    let mut command = Command::new(&program);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&config);
    Ok((program, text, command))
}

fn caddy_options(directory: &Path) -> String {
    format!(
        "\tadmin off\n\tauto_https off\n\tskip_install_trust\n\tdefault_sni localhost\n\tstorage file_system \"{}\"\n\
         \tservers {{\n\t\ttimeouts {{\n\t\t\tidle {}s\n\t\t}}\n\t}}\n",
        directory.join("storage").display(),
        IDLE.as_secs(),
    )
}

fn caddy_site(ground: &Ground<'_>, port: u16, handler: &str) -> String {
    format!(
        "https://localhost:{port} {{\n\tbind 127.0.0.1\n\ttls \"{}\" \"{}\"\n\troot * \"{}\"\n\tencode {{\n\t\tgzip {GZIP_LEVEL}\n\t}}\n\
         \t{handler}\n}}\n",
        ground.certificate.display(),
        ground.key.display(),
        ground.site.document_root().display(),
    )
}

/// Tickets are nginx's own.
fn nginx_configuration(ground: &Ground<'_>, directory: &Path, socket: &Path, port: u16) -> String {
    let http = format!(
        "    gzip on;
    gzip_comp_level {GZIP_LEVEL};
    gzip_types text/plain text/html;
    upstream php {{
        server \"unix:{socket}\";
    }}
    server {{
        listen 127.0.0.1:{port} ssl http2 backlog=4096;
        ssl_certificate \"{certificate}\";
        ssl_certificate_key \"{key}\";
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:bench:10m;
        root \"{root}\";
        location ~ \\.php$ {{
            fastcgi_pass php;
{parameters}            fastcgi_param HTTPS $https;
        }}
    }}
",
        socket = socket.display(),
        certificate = ground.certificate.display(),
        key = ground.key.display(),
        root = ground.site.document_root().display(),
        parameters = fastcgi_parameters(),
    );
    configurations::nginx(directory, &http)
}

/// That it speaks what is measured, and answers right, compressed and not.
fn check(server: &Running<Front>, ground: &Ground<'_>) -> Result<()> {
    let ask = |arguments: &[&str], target: &str| -> Result<String> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--insecure", "--max-time", "10"]).args(arguments);
        curl.args(["--resolve", &format!("localhost:{}:127.0.0.1", server.port)]);
        curl.arg(format!("https://localhost:{}{target}", server.port));
        let (status, output) = run_to_end(curl, Duration::from_secs(15), ground.interrupt)?;
        ensure!(status.success(), "curl failed ({status}) at {target}");
        Ok(output)
    };
    let hello = server.server.target(HELLO_PATH, "");
    for (option, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let answer = ask(&[option, "--write-out", " %{http_code} %{http_version}"], &hello)?;
        let expected = format!(" 200 {version}");
        ensure!(answer.ends_with(&expected), "{hello} is answered with {answer:?} instead of …{expected:?}");
    }
    let large = server.server.target(LARGE_PATH, "?bytes=20000");
    let size = ["--output", "/dev/null", "--write-out", "%{size_download}"];
    ensure!(ask(&size, &large)? == "20000", "{large} has not the size that was asked for");
    let coded: u64 = ask(&[&size[..], &["--header", "accept-encoding: gzip"]].concat(), &large)?.parse()?;
    ensure!(coded < 10_000, "{large} is not compressed");
    Ok(())
}
