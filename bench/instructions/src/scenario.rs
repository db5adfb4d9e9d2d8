//! What is asked for, and which processes work on it.

use std::fmt;

use clap::ValueEnum;

/// One kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Scenario {
    /// A text of the configuration.
    Respond,
    /// The same, over a connection of its own.
    Connection,
    /// A static file of 1 KiB.
    File,
    /// A PHP script of its own life.
    Classic,
    /// A request to a PHP worker.
    Worker,
}

/// A program whose instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Process {
    /// `regent`
    Server,
    /// `regent-php`
    Engine,
}

/// What a stored number is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Figure {
    pub process: Process,
    pub scenario: Scenario,
}

impl Scenario {
    pub const ALL: [Self; 5] = [Self::Respond, Self::Connection, Self::File, Self::Classic, Self::Worker];

    /// The processes that have to do with it.
    pub fn processes(self) -> &'static [Process] {
        match self {
            Self::Respond | Self::Connection | Self::File => &[Process::Server],
            Self::Classic | Self::Worker => &[Process::Server, Process::Engine],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Respond => "respond",
            Self::Connection => "connection",
            Self::File => "file",
            Self::Classic => "classic",
            Self::Worker => "worker",
        }
    }
}

impl Process {
    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Engine => "engine",
        }
    }
}

impl Figure {
    /// Its name in the stored file.
    pub fn key(self) -> String {
        format!("{}-{}", self.process.name(), self.scenario.name())
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.process.name(), self.scenario.name())
    }
}
