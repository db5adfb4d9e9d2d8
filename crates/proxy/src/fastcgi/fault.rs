//! What can be wrong with a FastCGI server.

use std::io;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the connection ended before the response did")]
    Cut,
    #[error("what it sends is no FastCGI: {0}")]
    Record(&'static str),
    #[error("its response has no head that can be passed on: {0}")]
    Head(&'static str),
    /// `protocolStatus` of the end of a request.
    #[error("it has refused the request (protocol status {0})")]
    Refused(u8),
    /// The client's body could not be read.
    #[error("the request's body broke off")]
    Upload,
}

impl Fault {
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::TimedOut)
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Io(error) => error,
            fault => Self::other(fault),
        }
    }
}
