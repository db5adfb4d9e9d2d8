//! What is measured.

use std::fmt;
use std::path::Path;
use std::process::Command;

use super::server::Proxy;
use super::upstream;
use crate::load::h2load;
use crate::samples;

pub type Sample = samples::Sample<Proxy, Case>;

/// A closed loop of requests over connections that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub connections: u32,
    pub exchange: Exchange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// 1 kB is the answer.
    Small,
    /// 100 kB are the answer.
    Large,
    /// 100 kB are sent, 1 kB is the answer.
    Upload,
}

impl Exchange {
    pub const ALL: [Self; 3] = [Self::Small, Self::Large, Self::Upload];
}

impl Case {
    pub fn command(self, port: u16, body: &Path) -> Command {
        let mut command = h2load::command(self.connections, 1);
        command.arg("--h1");
        if self.exchange == Exchange::Upload {
            command.arg(format!("--data={}", body.display()));
        }
        let path = match self.exchange {
            Exchange::Small => upstream::SMALL,
            Exchange::Large => upstream::LARGE,
            Exchange::Upload => upstream::UPLOAD,
        };
        command.arg(format!("http://127.0.0.1:{port}{path}"));
        command
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.exchange {
            Exchange::Small => "an answer of 1 kB",
            Exchange::Large => "an answer of 100 kB",
            Exchange::Upload => "a POST of 100 kB",
        };
        write!(f, "{what}, {}", self.connections)
    }
}
