//! What is behind the proxies: an nginx that answers with files, and reads what is posted before it answers.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::interrupt::Interrupt;
use crate::peers::configurations;
use crate::peers::free_port;
use crate::peers::programs::{find, version_line};
use crate::samples::listens;
use crate::site::{STATIC_PATH, Site, StaticFile};
use crate::supervise::Daemon;

pub const SMALL: &str = "/1k.txt";
pub const LARGE: &str = "/100k.txt";
pub const UPLOAD: &str = "/upload";

/// Ends with this value.
pub struct Upstream {
    pub port: u16,
    pub software: String,
    pub configuration: String,
    _daemon: Daemon,
}

pub fn start(site: &Site, interrupt: &Interrupt) -> Result<Upstream> {
    let program = find("nginx").context("nginx is not installed")?;
    let (directory, port) = (site.server_directory("upstream")?, free_port(1)?);
    // `mirror` is what has a body read: a file that is posted to is refused, and the refusal is another answer, but
    // all of that comes after it.
    let http = format!(
        "    open_file_cache max=16;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root \"{root}\";
        client_body_buffer_size 128k;
        location = {UPLOAD} {{
            mirror /nothing;
            error_page 405 =200 {SMALL};
        }}
        location = /nothing {{
            internal;
            return 204;
        }}
    }}
",
        root = site.file(STATIC_PATH).display(),
    );
    // The location is a file, so that posting to it is refused.
    fs::write(site.file(STATIC_PATH).join(UPLOAD.trim_start_matches('/')), "")?;
    let text = configurations::nginx(&directory, &http);
    let config = directory.join("nginx.conf");
    fs::write(&config, &text)?;
    let mut command = Command::new(&program);
    command.arg("-e").arg(directory.join("nginx.log")).arg("-p").arg(&directory).arg("-c").arg(config);
    let mut daemon = Daemon::start("nginx", command, &directory.join("server.out"))?;
    daemon.wait_until_ready(interrupt, || listens(port))?;
    let (software, configuration) = (version_line(&program, "-v"), site.anonymize(&text));
    Ok(Upstream { port, software, configuration, _daemon: daemon })
}

/// The file that is posted.
pub fn body(site: &Site) -> Result<PathBuf> {
    let path = site.path().join("body");
    fs::write(&path, StaticFile::Medium.content())?;
    Ok(path)
}
