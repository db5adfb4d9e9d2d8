//! What is measured.

use std::fmt;
use std::process::Command;

use super::server::Keeper;
use crate::load::h2load;
use crate::samples;

pub type Sample = samples::Sample<Keeper, Case>;

/// A closed loop of requests for the front page over so many connections that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub connections: u32,
}

impl Case {
    pub fn command(self, port: u16) -> Command {
        let mut command = h2load::command(self.connections, 1);
        command.arg("--h1").arg(format!("http://127.0.0.1:{port}/"));
        command
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connections.fmt(f)
    }
}
