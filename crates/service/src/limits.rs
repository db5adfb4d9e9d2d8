//! What a listening address takes of a request's body.

use regent_config::{ServerOptions, timeout};
use regent_exchange::{BodyLimits, BodyTimeouts};

/// Of the requests to a listening address.
pub fn body_limits(options: &ServerOptions) -> BodyLimits {
    let patience = BodyTimeouts {
        silence: timeout(options.timeouts.read_body),
        rate: options.limits.min_body_rate,
        whole: None,
    };
    BodyLimits { patience, size: options.limits.max_body_size }
}
