//! What a cache did with a request (RFC 9211).

use crate::policy::Ground;
use http::{HeaderName, HeaderValue, StatusCode};
use std::fmt::{self, Display, Formatter};

/// A member of the field `Cache-Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStatus {
    /// Answered with what is stored, for so many seconds more; negative: it is stale.
    Hit { ttl: i64, waiting: Waiting, tier: Tier },
    Forwarded {
        why: Forwarded,
        /// What came back, if that is not what was sent.
        status: Option<StatusCode>,
        outcome: Result<(), Detail>,
        waiting: Waiting,
    },
}

/// Where a stored response was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tier {
    #[default]
    Memory,
    Disk,
}

/// Whether a request has waited for the fetch of another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Waiting {
    #[default]
    Not,
    Collapsed,
}

/// Why a request was handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarded {
    /// The cache is not for it.
    Bypass,
    Method,
    /// The client wanted a newer one.
    Request,
    UriMiss,
    /// There are only responses for other requests.
    VaryMiss,
    Stale,
}

/// More about a response that was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Ground(Ground),
    /// Why it was not even judged.
    Passed(&'static str),
}

impl CacheStatus {
    pub const FIELD: HeaderName = HeaderName::from_static("cache-status");

    pub fn hit(ttl: i64) -> Self {
        Self::Hit { ttl, waiting: Waiting::Not, tier: Tier::Memory }
    }

    /// The same of a response that was there.
    pub fn hit_in(tier: Tier, ttl: i64) -> Self {
        Self::Hit { ttl, waiting: Waiting::Not, tier }
    }

    pub fn passed(why: Forwarded, reason: &'static str) -> Self {
        let outcome = Err(Detail::Passed(reason));
        Self::Forwarded { why, status: None, outcome, waiting: Waiting::Not }
    }

    pub fn value(&self) -> HeaderValue {
        HeaderValue::try_from(self.to_string()).expect("invariant: it is graphic ASCII")
    }

    /// In a word, for logs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Hit { ttl, .. } if *ttl > 0 => "hit",
            Self::Hit { .. } => "stale",
            Self::Forwarded { why: Forwarded::Bypass | Forwarded::Method, .. } => "pass",
            Self::Forwarded { .. } => "miss",
        }
    }
}

impl Display for CacheStatus {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Regent")?;
        let waiting = match self {
            Self::Hit { ttl, waiting, tier } => {
                write!(f, "; hit; ttl={ttl}")?;
                if *tier == Tier::Disk {
                    f.write_str("; detail=disk")?;
                }
                waiting
            }
            Self::Forwarded { why, status, outcome, waiting } => {
                write!(f, "; fwd={}", why.name())?;
                if let Some(status) = status {
                    write!(f, "; fwd-status={}", status.as_u16())?;
                }
                match outcome {
                    Ok(()) => f.write_str("; stored")?,
                    Err(detail) => write!(f, "; detail={}", detail.name())?,
                }
                waiting
            }
        };
        if *waiting == Waiting::Collapsed { f.write_str("; collapsed") } else { Ok(()) }
    }
}

impl Forwarded {
    fn name(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::Request => "request",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Stale => "stale",
        }
    }
}

impl Detail {
    /// A token.
    fn name(self) -> &'static str {
        match self {
            Self::Passed(reason) => reason,
            Self::Ground(ground) => ground.name(),
        }
    }
}

impl Ground {
    /// A token of RFC 9651.
    fn name(self) -> &'static str {
        match self {
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::SetCookie => "set-cookie",
            Self::Authorization => "authorization",
            Self::Vary => "vary",
            Self::Status => "status",
            Self::Lifetime => "no-lifetime",
            Self::Expired => "expired",
            Self::Encoding => "encoding",
            Self::Size => "size",
            Self::Broken => "broken",
            Self::Purged => "purged",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_as_the_rfc_has_them() {
        let forwarded = |status, outcome, waiting| {
            CacheStatus::Forwarded { why: Forwarded::Stale, status, outcome, waiting }.to_string()
        };
        assert_eq!(CacheStatus::hit(-3).to_string(), "Regent; hit; ttl=-3");
        assert_eq!(CacheStatus::hit_in(Tier::Disk, 3).to_string(), "Regent; hit; ttl=3; detail=disk");
        assert_eq!(
            forwarded(Some(StatusCode::NOT_MODIFIED), Ok(()), Waiting::Collapsed),
            "Regent; fwd=stale; fwd-status=304; stored; collapsed"
        );
        assert_eq!(
            forwarded(None, Err(Detail::Ground(Ground::SetCookie)), Waiting::Not),
            "Regent; fwd=stale; detail=set-cookie"
        );
        assert_eq!(
            CacheStatus::passed(Forwarded::Bypass, "cookie").to_string(),
            "Regent; fwd=bypass; detail=cookie"
        );
    }
}
