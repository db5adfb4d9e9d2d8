//! What a route says of the bodies of its requests (`request_body`).

use bytes::Bytes;
use regent_exchange::BodyLimits;
use std::time::Duration;

/// What holds for the body of a request, as far as its route says.
#[derive(Debug, Clone, Default)]
pub struct BodyRules {
    /// Bytes.
    pub max_size: Option<u64>,
    /// In which it has to come.
    pub read_timeout: Option<Duration>,
    /// Longest time without a byte.
    pub silence: Option<Duration>,
    /// Bytes a second.
    pub min_rate: Option<u64>,
    /// Takes the place of the one that the client sends.
    pub replaced_by: Option<Bytes>,
}

impl BodyRules {
    /// The limits of the server, with those of the route instead where it has some.
    pub fn over(&self, limits: BodyLimits) -> BodyLimits {
        let mut limits = limits;
        limits.size = self.max_size.or(limits.size);
        limits.patience.silence = self.silence.unwrap_or(limits.patience.silence);
        limits.patience.rate = self.min_rate.unwrap_or(limits.patience.rate);
        limits.patience.whole = self.read_timeout.or(limits.patience.whole);
        limits
    }
}
