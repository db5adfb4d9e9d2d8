//! Proxies in front of one upstream.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use super::{Options, upstream};
use crate::interrupt::Interrupt;
use crate::load::h2load;
use crate::packages::Program;
use crate::peers::configurations;
use crate::peers::free_port;
use crate::peers::programs::{find, version_line};
use crate::samples::{Running, listens};
use crate::site::{Site, StaticFile};
use crate::supervise::{Daemon, run_to_end};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Proxy {
    Regent,
    Nginx,
    Caddy,
}

/// What is started.
struct Prepared {
    program: PathBuf,
    command: Command,
    version: &'static str,
    configuration: String,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regent => "Regent",
            Self::Nginx => "nginx",
            Self::Caddy => "Caddy",
        })
    }
}

/// What the run needs of the machine.
pub fn programs() -> Vec<Program> {
    vec![
        Program::named("h2load", h2load::PACKAGE),
        Program::named("nginx", "nginx"),
        Program::named("curl", "curl"),
    ]
}

pub fn start(
    proxy: Proxy,
    options: &Options,
    site: &Site,
    upstream: u16,
    interrupt: &Interrupt,
) -> Result<Running<Proxy>> {
    let (directory, port) = (site.server_directory(&proxy.to_string().to_lowercase())?, free_port(1)?);
    let kept = options.most_connections();
    let prepared = match proxy {
        Proxy::Regent => {
            let program = options.regent_binary()?;
            caddyfile(program, &["run"], &directory, &caddy_text(&directory, port, upstream, kept))?
        }
        Proxy::Caddy => {
            let program = options.caddy_binary()?;
            let arguments = ["run", "--adapter", "caddyfile"];
            caddyfile(program, &arguments, &directory, &caddy_text(&directory, port, upstream, kept))?
        }
        Proxy::Nginx => nginx(&directory, port, upstream, kept)?,
    };
    let mut daemon = Daemon::start(&proxy.to_string(), prepared.command, &directory.join("output.log"))?;
    daemon.wait_until_ready(interrupt, || listens(port))?;
    let server = Running {
        server: proxy,
        port,
        software: vec![version_line(&prepared.program, prepared.version)],
        configuration: vec![("configuration".to_owned(), site.anonymize(&prepared.configuration))],
        daemons: vec![daemon],
    };
    check(&server, site, interrupt)?;
    Ok(server)
}

fn caddyfile(program: PathBuf, arguments: &[&str], directory: &Path, text: &str) -> Result<Prepared> {
    let config = directory.join("Caddyfile");
    fs::write(&config, text)?;
    let mut command = Command::new(&program);
    command.args(arguments).arg("--config").arg(&config);
    Ok(Prepared { program, command, version: "version", configuration: text.to_owned() })
}

/// Both read the same file. As many connections are kept as there are clients; each I/O thread of Regent has its own.
fn caddy_text(directory: &Path, port: u16, upstream: u16, kept: u32) -> String {
    format!(
        "{{\n\tadmin off\n\tauto_https off\n\tskip_install_trust\n\tstorage file_system \"{}\"\n}}\n\n\
         http://127.0.0.1:{port} {{\n\tbind 127.0.0.1\n\treverse_proxy 127.0.0.1:{upstream} {{\n\
         \t\ttransport http {{\n\t\t\tkeepalive_idle_conns_per_host {kept}\n\t\t}}\n\t}}\n}}\n",
        directory.join("storage").display(),
    )
}

/// Buffers hold what is measured, so that nothing is written to a file.
fn nginx(directory: &Path, port: u16, upstream: u16, kept: u32) -> Result<Prepared> {
    let program = find("nginx").context("nginx is not installed")?;
    let http = format!(
        "    upstream behind {{
        server 127.0.0.1:{upstream};
        keepalive {kept};
        keepalive_requests 1000000000;
        keepalive_timeout 3600s;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        client_body_buffer_size 128k;
        location / {{
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_buffers 16 8k;
        }}
    }}
"
    );
    let text = configurations::nginx(directory, &http);
    let config = directory.join("nginx.conf");
    fs::write(&config, &text)?;
    let mut command = Command::new(&program);
    command.arg("-e").arg(directory.join("nginx.log")).arg("-p").arg(directory).arg("-c").arg(config);
    Ok(Prepared { program, command, version: "-v", configuration: text })
}

/// That it answers right, whatever is sent.
fn check(server: &Running<Proxy>, site: &Site, interrupt: &Interrupt) -> Result<()> {
    let ask = |arguments: &[&str], path: &str| -> Result<String> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "10", "--output", "/dev/null"]).args(arguments);
        curl.args(["--write-out", "%{http_code} %{size_download} %{size_upload}"]);
        curl.arg(format!("http://127.0.0.1:{}{path}", server.port));
        let (status, output) = run_to_end(curl, Duration::from_secs(15), interrupt)?;
        ensure!(status.success(), "curl failed ({status}) at {path}");
        Ok(output)
    };
    let (small, large) = (StaticFile::Small.bytes(), StaticFile::Medium.bytes());
    let body = format!("@{}", upstream::body(site)?.display());
    for (arguments, path, expected) in [
        (&[][..], upstream::SMALL, format!("200 {small} 0")),
        (&[], upstream::LARGE, format!("200 {large} 0")),
        (&["--data-binary", &body], upstream::UPLOAD, format!("200 {small} {large}")),
    ] {
        let answer = ask(arguments, path)?;
        ensure!(answer == expected, "{path} is answered with {answer:?} instead of {expected:?}");
    }
    Ok(())
}
