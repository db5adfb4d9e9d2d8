//! What is measured, and what came of it.

use std::fmt;

use super::application::Application;
use super::peer::Peer;
use crate::load::figures::Figures;
use crate::usage::Usage;

/// A closed loop of requests over so many connections that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub application: Application,
    pub connections: u32,
}

/// One server, one case, one round.
#[derive(Clone, Debug)]
pub struct Sample {
    pub peer: Peer,
    pub case: Case,
    pub round: u32,
    pub figures: Figures,
    pub usage: Usage,
}

impl Sample {
    /// Of all processes of the server, in ms for each request.
    pub fn cpu_ms(&self) -> Option<f64> {
        self.usage.cpu_us_per_request.map(|microseconds| microseconds / 1e3)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} ", self.application, self.connections)?;
        f.write_str(if self.connections == 1 { "connection" } else { "connections" })
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, case, round, figures, .. } = self;
        write!(f, "round {round}, {case}, {peer}: {:.0}/s", figures.per_second)?;
        if let Some(cpu) = self.cpu_ms() {
            write!(f, ", {cpu:.2} ms of CPU time each")?;
        }
        match figures.failed {
            0 => Ok(()),
            failed => write!(f, ", {failed} failed"),
        }
    }
}
