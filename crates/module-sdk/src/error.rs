//! Why a handler has no answer.

use crate::abi;
use std::ffi::c_int;
use std::fmt;
use std::io;

/// What handlers return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a handler has no answer. Every [`std::error::Error`] becomes one by `?`: it is answered with 500, and its text is
/// logged, not sent.
pub struct Error(Kind);

enum Kind {
    Refused { status: u16, reason: String },
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Nobody waits for the answer any more, so there is nothing to say.
#[derive(Debug)]
struct Gone;

impl Error {
    /// An answer with this status, 400 to 599, as a problem document (RFC 9457) that tells the client the reason.
    pub fn refused(status: u16, reason: impl Into<String>) -> Self {
        Self(Kind::Refused { status, reason: reason.into() })
    }

    /// 400: the client sent something wrong.
    pub fn bad_request(reason: impl Into<String>) -> Self {
        Self::refused(400, reason)
    }

    /// 404: there is no such thing.
    pub fn not_found(reason: impl Into<String>) -> Self {
        Self::refused(404, reason)
    }

    /// 500, and this text in the log.
    pub fn failed(text: impl Into<String>) -> Self {
        Self(Kind::Failed(text.into().into()))
    }

    /// Whether the client has gone, or the server has given the request up.
    pub fn is_gone(&self) -> bool {
        match &self.0 {
            Kind::Refused { .. } => false,
            Kind::Failed(error) => {
                error.is::<Gone>()
                    || error.downcast_ref().and_then(io::Error::get_ref).is_some_and(|e| e.is::<Gone>())
            }
        }
    }

    /// The status and the reason for the client, if it is a refusal.
    pub(crate) fn refusal(&self) -> Option<(u16, &str)> {
        match &self.0 {
            Kind::Refused { status, reason } => Some((*status, reason)),
            Kind::Failed(_) => None,
        }
    }

    pub(crate) fn missing(what: impl fmt::Display) -> Self {
        Self::bad_request(format!("{what} is missing"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Refused { reason, .. } => f.write_str(reason),
            Kind::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Refused { status, reason } => write!(f, "refused with {status}: {reason}"),
            Kind::Failed(error) => write!(f, "{error:?}"),
        }
    }
}

// `Error` is no `std::error::Error` itself, as `anyhow::Error` is none, or this could not be.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self(Kind::Failed(Box::new(error)))
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody waits for the answer any more")
    }
}

impl std::error::Error for Gone {}

/// What a call of the host returned, as a result. `call` says which.
pub(crate) fn check(status: c_int, call: fmt::Arguments<'_>) -> Result<()> {
    match status {
        abi::OK => Ok(()),
        abi::GONE => Err(Gone.into()),
        abi::TOO_LATE => {
            Err(Error::failed(format!("{call} comes too late: the answer has begun, or init is over")))
        }
        abi::INVALID => Err(Error::failed(format!("{call} cannot be used"))),
        other => Err(Error::failed(format!("{call} failed with status {other}"))),
    }
}

/// The same for `std::io`'s traits.
pub(crate) fn check_io(status: c_int) -> io::Result<()> {
    match status {
        abi::OK => Ok(()),
        abi::GONE => Err(io::Error::new(io::ErrorKind::BrokenPipe, Gone)),
        other => Err(io::Error::other(format!("the host answered with status {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_being_gone_is_seen_through_io_errors() {
        let io: Error = check_io(abi::GONE).unwrap_err().into();
        assert!(io.is_gone());
        assert!(check(abi::GONE, format_args!("writing")).unwrap_err().is_gone());
        assert!(!Error::from(check_io(abi::ERROR).unwrap_err()).is_gone());
        assert!(!Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).is_gone(), "another pipe");
    }

    #[test]
    fn only_refusals_are_for_the_client() {
        assert_eq!(Error::not_found("no note 7").refusal(), Some((404, "no note 7")));
        let error: Error = "x".parse::<i32>().unwrap_err().into();
        assert_eq!(error.refusal(), None);
        assert_eq!(error.to_string(), "invalid digit found in string");
    }
}
