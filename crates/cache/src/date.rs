//! Dates of HTTP fields, in seconds since 1970.

use http::{HeaderMap, HeaderName};
use std::time::{Duration, SystemTime};

/// A date that cannot be read is as none; one before 1970 is its beginning.
pub(crate) fn of(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    let text = headers.get(name)?.to_str().ok()?;
    httpdate::parse_http_date(text).ok()
}

/// Zero where it would be negative.
pub(crate) fn between(earlier: SystemTime, later: SystemTime) -> Duration {
    later.duration_since(earlier).unwrap_or_default()
}
