//! How often clients may ask.

use super::{MatcherSet, Template};
use serde::Serialize;
use std::time::Duration;

/// One `rate_limit` directive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RateLimit {
    /// The one that lets most through comes first: what it refuses does not count in the others.
    pub zones: Vec<RateZone>,
    /// Up to this part of the wait is added to it by chance, so that not all come back at once. 0: none.
    pub jitter: f64,
    /// Whether the log has the key of whoever is refused.
    pub log_key: bool,
}

/// A zone: so many requests of a key in any stretch of so much time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RateZone {
    /// Directives of the same name count together.
    pub name: String,
    /// One of them must fit, or the request does not count; none at all: every request counts.
    pub matchers: Vec<MatcherSet>,
    /// Requests with the same value count together.
    pub key: Template,
    /// Longer than 0.
    pub window: Duration,
    /// From 1 to [`Self::MOST_EVENTS`].
    pub events: u32,
    /// So many bits of a key that is an address of IPv4 count; 32: all.
    pub ipv4_prefix: u8,
    /// The same of IPv6; 128: all.
    pub ipv6_prefix: u8,
}

impl RateZone {
    /// The time of each is remembered.
    pub const MOST_EVENTS: u32 = 100_000;
}
