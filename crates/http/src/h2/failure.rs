//! Why a connection ended badly.

use ::h2::Reason;
use std::fmt;
use std::io;

/// Why a connection ended before its time. Its client has been told, if it can be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// What came is not HTTP/2, or too much of what costs a server more than a client.
    #[error("the client broke HTTP/2: {0}")]
    Protocol(#[source] ::h2::Error),
    /// What came is allowed, but not so often.
    #[error("the client sent more {0} than one has use for")]
    Flood(Flood),
    #[error("the client stopped in the middle of {0}")]
    Stalled(Stalled),
    /// The client ended the connection with an error code.
    #[error("the client gave up: {0}")]
    Abandoned(#[source] ::h2::Error),
    /// The stream below failed, or ended in the middle of something.
    #[error("the connection broke off: {0}")]
    Io(#[source] io::Error),
}

/// What a client sent too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    /// Streams that the client reset, or was to blame for that the server did (CVE-2023-44487, CVE-2025-8671).
    Resets,
    /// `PING`, `SETTINGS`, `PRIORITY`, and frames of unknown types (CVE-2019-9512, CVE-2019-9515).
    ControlFrames,
}

/// What a client did not go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stalled {
    /// The preface and the first `SETTINGS`.
    Preface,
    /// A header block.
    Head,
    /// Taking what was sent.
    Reading,
}

/// Who made a connection fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    Client,
    Server,
}

impl Failure {
    pub fn blame(&self) -> Blame {
        match self {
            // These say that what the server sent was wrong.
            Self::Abandoned(error) if !matches!(error.reason(), Some(Reason::NO_ERROR | Reason::CANCEL)) => {
                Blame::Server
            }
            _ => Blame::Client,
        }
    }
}

impl From<::h2::Error> for Failure {
    fn from(error: ::h2::Error) -> Self {
        match error {
            error if error.is_remote() => Self::Abandoned(error),
            error if error.is_io() => {
                Self::Io(error.into_io().unwrap_or_else(|| io::ErrorKind::Other.into()))
            }
            error => Self::Protocol(error),
        }
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Resets => "resets",
            Self::ControlFrames => "control frames",
        })
    }
}

impl fmt::Display for Stalled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Preface => "the preface",
            Self::Head => "a request's head",
            Self::Reading => "a response",
        })
    }
}
