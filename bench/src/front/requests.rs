//! Requests over TLS, by h2load and, of HTTP/3, by oha.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Options;
use super::case::{Answer, Case, Load, Protocol};
use super::server::{Front, IDLE};
use crate::interrupt::Interrupt;
use crate::load::figures::Figures;
use crate::load::{h2load, oha};
use crate::samples::Running;
use crate::site::{HELLO_PATH, LARGE_PATH, Site};

pub fn measure(
    load: &Load,
    server: &Running<Front>,
    options: &Options,
    site: &Site,
    interrupt: &Interrupt,
) -> Result<Figures> {
    let duration = options.duration;
    if load.protocol == Protocol::Http3 {
        let program = options.oha()?.context("HTTP/3 is measured by --oha")?;
        let url = format!("https://localhost:{}{}", server.port, target(load, server.server));
        return oha::measure(program, load.connections, &url, duration, interrupt);
    }
    h2load::measure(command(load, server), duration, &site.path().join("h2load.log"), interrupt)
}

/// What a load takes beyond its duration.
pub fn time_to_end(case: &Case) -> Duration {
    match case {
        Case::Requests(Load { protocol: Protocol::Http3, .. }) => IDLE,
        _ => Duration::ZERO,
    }
}

fn command(load: &Load, server: &Running<Front>) -> Command {
    let mut command = h2load::command(load.connections, load.streams);
    command.arg(format!("--connect-to=127.0.0.1:{}", server.port));
    if load.protocol == Protocol::Http1 {
        command.arg("--h1");
    }
    if let Answer::Large(_, coding) = load.answer
        && !coding.is_empty()
    {
        command.arg(format!("--header=accept-encoding: {coding}"));
    }
    command.arg(format!("https://localhost:{}{}", server.port, target(load, server.server)));
    command
}

fn target(load: &Load, front: Front) -> String {
    match load.answer {
        Answer::Hello => front.target(HELLO_PATH, ""),
        Answer::Large(bytes, _) => front.target(LARGE_PATH, &format!("?bytes={bytes}")),
    }
}
