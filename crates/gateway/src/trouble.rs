//! Why a request has no answer of an engine's.

use http::StatusCode;
use regent_engines::{Refused, Shed};
use regent_wire::ReadError;

/// Why there is no answer of an engine's.
pub(crate) enum Trouble {
    Upload(StatusCode),
    Shed(Shed),
    GivenUp,
    Refused(Refused),
    /// It has run for longer than it may.
    Overdue,
    Engine(ReadError),
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}
