//! Certificates, and how they stand.

use crate::milliseconds;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

const DAY: i64 = 24 * 3600;

/// A certificate that is served, or a name that is still without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The name that it is for; of a file, all of them, with commas.
    pub name: String,
    /// Who has signed it; of a public CA that has not yet, the URL of its directory.
    pub issuer: String,
    pub source: CertificateSource,
    /// `None`: there is none yet.
    #[serde(with = "milliseconds::unix_optional", rename = "not_after_unix_ms")]
    pub not_after: Option<SystemTime>,
    /// Whole days until then, negative afterwards.
    pub days_left: Option<i64>,
    /// Why the last order failed; `None` after a success.
    pub last_error: Option<String>,
    /// When it is renewed or ordered again; `None`: not by the server.
    #[serde(with = "milliseconds::unix_optional", rename = "next_try_unix_ms")]
    pub next_try: Option<SystemTime>,
}

/// Where a certificate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateSource {
    Files,
    /// The local CA.
    Internal,
    /// A public CA.
    Acme,
}

/// The response to `GET /regent/certificates`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateList {
    pub certificates: Vec<Certificate>,
}

/// Whole days from one moment to another, rounded down.
pub fn days_between(now: SystemTime, then: SystemTime) -> i64 {
    let seconds = match then.duration_since(now) {
        Ok(left) => i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        Err(over) => i64::try_from(over.duration().as_secs()).unwrap_or(i64::MAX).saturating_neg(),
    };
    seconds.div_euclid(DAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn days_are_rounded_down() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        assert_eq!(days_between(now, now + hours(47)), 1);
        assert_eq!(days_between(now, now + hours(48)), 2);
        assert_eq!(days_between(now, now), 0);
        assert_eq!(days_between(now, now - hours(1)), -1);
    }
}
