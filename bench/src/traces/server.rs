//! The same server with and without traces, and a collector that takes them all.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Options;
use crate::interrupt::Interrupt;
use crate::peers::configurations;
use crate::peers::programs::{find, version_line};
use crate::peers::{free_port, run_command};
use crate::samples::{Running, listens};
use crate::site::{Site, WORKER_PATH};
use crate::supervise::Daemon;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Without the directive.
    Off,
    /// With it, and none is sampled.
    None,
    OnePercent,
    All,
}

impl Sampling {
    pub const ALL: [Self; 4] = [Self::Off, Self::None, Self::OnePercent, Self::All];

    /// As `OTEL_TRACES_SAMPLER_ARG` has it.
    fn part(self) -> &'static str {
        match self {
            Self::Off | Self::None => "0",
            Self::OnePercent => "0.01",
            Self::All => "1",
        }
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "without tracing",
            Self::None => "0 % sampled",
            Self::OnePercent => "1 % sampled",
            Self::All => "100 % sampled",
        })
    }
}

/// An nginx that takes whatever it is sent. Ends with this value.
pub struct Collector {
    pub port: u16,
    log: PathBuf,
    _daemon: Daemon,
}

impl Collector {
    pub fn start(site: &Site, interrupt: &Interrupt) -> Result<Self> {
        let program = find("nginx").context("nginx is not installed")?;
        let (directory, port) = (site.server_directory("collector")?, free_port(1)?);
        let log = directory.join("access.log");
        let http = format!(
            "    server {{
        listen 127.0.0.1:{port};
        access_log \"{}\";
        client_max_body_size 0;
        client_body_buffer_size 1m;
        default_type application/x-protobuf;
        return 200 \"\";
    }}
",
            log.display()
        );
        let config = directory.join("nginx.conf");
        fs::write(&config, configurations::nginx(&directory, &http))?;
        let mut command = Command::new(&program);
        command.arg("-e").arg(directory.join("nginx.log")).arg("-p").arg(&directory).arg("-c").arg(config);
        let mut daemon = Daemon::start("nginx", command, &directory.join("server.out"))?;
        daemon.wait_until_ready(interrupt, || listens(port))?;
        Ok(Self { port, log, _daemon: daemon })
    }

    /// An error if nobody has sent anything, since then something else was measured.
    pub fn check(&self) -> Result<()> {
        let taken = fs::read_to_string(&self.log)?;
        ensure!(taken.contains("/v1/traces"), "the collector has got no traces");
        Ok(())
    }
}

pub fn start(
    sampling: Sampling,
    options: &Options,
    site: &Site,
    collector: u16,
    interrupt: &Interrupt,
) -> Result<Running<Sampling>> {
    let (program, port) = (options.regent_binary()?, free_port(1)?);
    let directory = site.server_directory("regent-traces")?;
    let threads = options.threads;
    let tracing = if sampling == Sampling::Off { "" } else { "\ttracing\n" };
    let text = format!(
        "{{\n\tadmin off\n\tregent {{\n\t\tnum_threads {}\n\t\tworker {{\n\t\t\tfile \"{}\"\n\t\t\tnum {threads}\n\t\t}}\n\
         \t}}\n}}\n\nhttp://127.0.0.1:{port} {{\n\tbind 127.0.0.1\n{tracing}\troot * \"{}\"\n\tphp_server\n}}\n",
        threads * 2,
        site.file(WORKER_PATH).display(),
        site.document_root().display(),
    );
    let config = directory.join("Caddyfile");
    fs::write(&config, &text)?;
    let mut command = run_command(&program, &config, &site.php_settings(&directory, None)?);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{collector}"));
    command.env("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
    command.env("OTEL_TRACES_SAMPLER_ARG", sampling.part());
    let mut daemon = Daemon::start("regent", command, &directory.join("output.log"))?;
    daemon.wait_until_ready(interrupt, || listens(port))?;
    Ok(Running {
        server: sampling,
        port,
        software: vec![version_line(&program, "version")],
        configuration: vec![("Caddyfile".to_owned(), site.anonymize(&text))],
        daemons: vec![daemon],
    })
}
