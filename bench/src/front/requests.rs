//! Requests over TLS, by h2load.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::case::{Answer, Figures, Load, Protocol};
use super::server::Server;
use crate::interrupt::Interrupt;
use crate::load::h2load;
use crate::site::{HELLO_PATH, LARGE_PATH, Site};

pub fn measure(
    load: &Load,
    server: &Server,
    duration: Duration,
    site: &Site,
    interrupt: &Interrupt,
) -> Result<Figures> {
    h2load::measure(command(load, server), duration, &site.path().join("h2load.log"), interrupt)
}

fn command(load: &Load, server: &Server) -> Command {
    let mut command = h2load::command(load.connections, load.streams);
    command.arg(format!("--connect-to=127.0.0.1:{}", server.port));
    if load.protocol == Protocol::Http1 {
        command.arg("--h1");
    }
    let target = match load.answer {
        Answer::Hello => server.front.target(HELLO_PATH, ""),
        Answer::Large(bytes, coding) => {
            if !coding.is_empty() {
                command.arg(format!("--header=accept-encoding: {coding}"));
            }
            server.front.target(LARGE_PATH, &format!("?bytes={bytes}"))
        }
    };
    command.arg(format!("https://localhost:{}{target}", server.port));
    command
}
