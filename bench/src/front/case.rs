//! What is measured, and what came of it.

use std::fmt;

use super::server::Front;
use crate::samples;

pub type Sample = samples::Sample<Front, Case>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Case {
    Handshakes(Handshake),
    Requests(Load),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// With a key exchange and a signature.
    Full,
    /// With a ticket of an earlier one.
    Resumed,
}

/// A closed loop of requests over connections that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    pub protocol: Protocol,
    pub connections: u32,
    /// Requests at once on each; 1 with HTTP/1.1.
    pub streams: u32,
    pub answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
    Http3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Hello,
    /// So many bytes of PHP, asked for with this `Accept-Encoding`; empty: none.
    Large(u32, &'static str),
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handshakes(Handshake::Full) => f.write_str("full handshakes"),
            Self::Handshakes(Handshake::Resumed) => f.write_str("resumed handshakes"),
            Self::Requests(load) => load.fmt(f),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Http1 => "HTTP/1.1",
            Protocol::Http2 => "HTTP/2",
            Protocol::Http3 => "HTTP/3",
        };
        match self.answer {
            Answer::Hello => write!(f, "hello world, {protocol}")?,
            Answer::Large(bytes, "") => write!(f, "{} kB of PHP, {protocol}", bytes / 1000)?,
            Answer::Large(bytes, coding) => write!(f, "{} kB of PHP, {protocol}, {coding}", bytes / 1000)?,
        }
        write!(f, ", {} × {}", self.connections, self.streams)
    }
}
