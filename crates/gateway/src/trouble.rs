//! Why a request has no answer of an engine's.

use crate::target::Target;
use http::{StatusCode, header};
use regent_dispatch::admission::Reason;
use regent_engines::{InFlight, Refused, Shed};
use regent_handlers::Failure;
use regent_wire::{ReadError, SubmitError};
use std::time::Duration;

/// Bytes of a site's `env` beside which an engine has room for every request that the server takes.
const MOST_ENV: usize = 64 * 1024;
pub(crate) const LARGE_ENVIRONMENT: &str = "the `env` of its site is more than an engine has room for";

/// Why there is no answer of an engine's.
pub(crate) enum Trouble {
    Upload(StatusCode),
    Shed(Shed),
    GivenUp,
    Refused(Refused),
    /// It has run for longer than it may.
    Overdue,
    Engine(ReadError),
    /// The fields of its response are more than `max_response_header` allows.
    Header,
    /// The site's `env` is more than there is room for.
    Environment,
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// What it is that a slot has no room for: a site whose `env` alone has more than is kept for all that no client sends is to blame
/// itself.
pub(crate) fn too_large(refused: Refused, target: &impl Target) -> Trouble {
    let env = target.delivery().env.iter().map(|(name, value)| name.len() + value.len());
    match refused {
        Refused::Submit(SubmitError::HeadTooLarge) if env.sum::<usize>() > MOST_ENV => Trouble::Environment,
        refused => Trouble::Refused(refused),
    }
}

pub(crate) fn refusal(refused: Refused, in_flight: &InFlight) -> Failure {
    match refused {
        Refused::NoSlot | Refused::Submit(SubmitError::QueueFull) => {
            in_flight.shed(Reason::QueueFull);
            unavailable(Duration::from_secs(1))
        }
        Refused::Submit(SubmitError::HeadTooLarge) => {
            in_flight.refused();
            Failure::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        }
        Refused::Submit(SubmitError::Corrupt) | Refused::Ended => {
            in_flight.lost();
            Failure::new(StatusCode::BAD_GATEWAY)
        }
    }
}

pub(crate) fn unavailable(retry_after: Duration) -> Failure {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE).with_field(header::RETRY_AFTER, whole_seconds(retry_after))
}

/// Who comes earlier would be refused again.
fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_again_as_told_is_not_too_early() {
        for (milliseconds, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (2730, 3)] {
            assert_eq!(whole_seconds(Duration::from_millis(milliseconds)), seconds);
        }
    }
}
