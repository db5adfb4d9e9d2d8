//! Why a request has no response of an upstream's.

use crate::fastcgi::Fault;
use http::{HeaderValue, StatusCode, header};
use regent_handlers::Failure;
use std::io;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The client's: its body is too large, too slow, or broke off.
    #[error("the request's body could not be read ({0})")]
    Upload(StatusCode),
    /// RFC 5842 §7.2.
    #[error("the request goes round in a circle: an upstream leads back to this server")]
    Loop,
    #[error("`{0}` is no address of an upstream")]
    Address(String),
    /// Nothing of the request was sent.
    #[error("cannot connect to {upstream}: {cause}")]
    Dial { upstream: String, cause: io::Error },
    /// The upstream may have seen the request, or a part of it.
    #[error("{upstream} broke the exchange off: {cause}")]
    Broken { upstream: String, cause: hyper::Error },
    #[error("{upstream} did not respond within {} ms", after.as_millis())]
    Silent { upstream: String, after: Duration },
    #[error("{upstream} gave no response of FastCGI that can be used: {cause}")]
    FastCgi { upstream: String, cause: Fault },
    #[error("the path of the request, or the root for it, names no script ({0})")]
    Script(StatusCode),
    /// All are unhealthy, or have as many requests as they may have.
    #[error("no upstream is available")]
    Unavailable,
    #[error("the `rewrite` of `reverse_proxy` made no URI ({0})")]
    Rewrite(StatusCode),
    /// RFC 9110 §7.8: what was not asked for.
    #[error("{upstream} has switched to a protocol that nobody asked it for")]
    Switched { upstream: String },
    /// RFC 6455 §4.1.
    #[error("{upstream} has agreed to WebSocket without an answer to the key of the handshake")]
    Handshake { upstream: String },
}

impl Trouble {
    pub fn failure(&self) -> Failure {
        let failure = Failure::new(self.status());
        match self {
            Self::Upload(_) => failure.with_field(header::CONNECTION, HeaderValue::from_static("close")),
            _ => failure,
        }
    }

    /// For spans: why, in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Upload(_) => "request_body",
            Self::Loop => "loop",
            Self::Address(_) => "address",
            Self::Dial { .. } => "connect",
            Self::Broken { .. } => "broken",
            Self::Silent { .. } => "timeout",
            Self::FastCgi { .. } => "fastcgi",
            Self::Script(_) => "script",
            Self::Unavailable => "unavailable",
            Self::Rewrite(_) => "rewrite",
            Self::Switched { .. } => "switched",
            Self::Handshake { .. } => "handshake",
        }
    }

    /// Whether no upstream is to blame.
    pub fn is_clients(&self) -> bool {
        matches!(self, Self::Upload(_) | Self::Script(_))
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Upload(status) | Self::Rewrite(status) | Self::Script(status) => *status,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Address(_) | Self::Switched { .. } | Self::Handshake { .. } => StatusCode::BAD_GATEWAY,
            Self::Dial { cause, .. } if is_timeout(cause) => StatusCode::GATEWAY_TIMEOUT,
            Self::Dial { .. } => StatusCode::BAD_GATEWAY,
            Self::Broken { cause, .. } if io_cause(cause).is_some_and(is_timeout) => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::Broken { .. } => StatusCode::BAD_GATEWAY,
            Self::Silent { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::FastCgi { cause, .. } if cause.is_timeout() => StatusCode::GATEWAY_TIMEOUT,
            Self::FastCgi { .. } => StatusCode::BAD_GATEWAY,
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

/// The error of the connection below, if that is the cause.
fn io_cause(error: &hyper::Error) -> Option<&io::Error> {
    let mut cause = std::error::Error::source(error)?;
    loop {
        match cause.downcast_ref::<io::Error>() {
            Some(error) => return Some(error),
            None => cause = cause.source()?,
        }
    }
}
