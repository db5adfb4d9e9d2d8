//! Why a connection ended badly.

use crate::h3::code;
use quinn::{ConnectionError, VarInt};

/// Why a connection ended before its time. Its client has been told, if it can be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// What came is not HTTP/3, by its error code (RFC 9114 §8.1).
    #[error("the client broke HTTP/3: error {0:#x}")]
    Protocol(u64),
    /// What came is allowed, but not so often.
    #[error("the client sent more of what costs a server more than a client than one has use for")]
    Flood,
    /// The client did not say how it speaks HTTP/3, or takes nothing of what it has to know.
    #[error("the client stopped in the middle of the connection's beginning or end")]
    Stalled,
    /// The connection below failed, or the client ended it with an error.
    #[error("the connection broke off: {0}")]
    Lost(#[source] ConnectionError),
}

impl Failure {
    pub(super) fn of(code: VarInt) -> Self {
        if code == code::EXCESSIVE_LOAD { Self::Flood } else { Self::Protocol(code.into_inner()) }
    }
}

/// The end of a connection by its client, or by time.
pub(super) fn end(error: ConnectionError) -> Result<(), Failure> {
    match error {
        // Some say 0, which is no code of HTTP/3.
        ConnectionError::ApplicationClosed(closed)
            if closed.error_code == code::NO_ERROR || closed.error_code == VarInt::from_u32(0) =>
        {
            Ok(())
        }
        ConnectionError::TimedOut | ConnectionError::LocallyClosed => Ok(()),
        error => Err(Failure::Lost(error)),
    }
}
