//! What a shared cache may keep, and when it may use it (RFC 9111 §3, §4).

use crate::date;
use crate::directives::{self, Directives, Flags};
use crate::room::Full;
use http::{HeaderMap, HeaderName, StatusCode, header};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// A cache that guesses at a lifetime guesses this part of the age that the content has (RFC 9111 §4.2.2), and never more.
const HEURISTIC_PART: u32 = 10;
const HEURISTIC_MOST: Duration = Duration::from_secs(86_400);
/// No time of a response is longer.
const LONGEST: Duration = Duration::from_secs(1 << 40);

/// How responses are judged, but for what they say themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Lifetime of a response that says nothing of one; `None`: it is not stored.
    pub default_ttl: Option<Duration>,
    /// Of responses that say nothing of it.
    pub stale_while_revalidate: Duration,
    /// The same.
    pub stale_if_error: Duration,
    /// Whether lifetimes are guessed where there is a `Last-Modified` and nothing else.
    pub guesses: bool,
    /// Whether a client may ask for more than the cache would ask of itself, by `Cache-Control` of its request.
    pub obeys_clients: bool,
    /// Fields that count instead of `Cache-Control` (RFC 9213), the most important first.
    pub targeted: Vec<HeaderName>,
}

/// A response, and the request that it is for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub request: &'a HeaderMap,
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    /// When the request was handed on.
    pub asked: SystemTime,
    pub now: SystemTime,
}

/// What becomes of a response.
pub type Judged = Result<Terms, Ground>;

/// Why a response is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    NoStore,
    Private,
    SetCookie,
    /// The request has credentials, and the response does not say that it is for all.
    Authorization,
    /// It depends on everything.
    Vary,
    Status,
    /// Nothing says for how long.
    Lifetime,
    /// It is over when it comes, and cannot be asked about.
    Expired,
    /// It is compressed for the client that asked.
    Encoding,
    /// It is too large, or there is no room for it now.
    Size,
    /// It did not come whole.
    Broken,
    /// It was purged while it came.
    Purged,
}

impl Ground {
    /// Whether the next response of the URL is likely to be the same, whoever asks.
    pub fn is_of_the_url(self) -> bool {
        !matches!(self, Self::Authorization | Self::Encoding | Self::Broken | Self::Purged)
    }
}

impl From<Full> for Ground {
    fn from(_: Full) -> Self {
        Self::Size
    }
}

/// How long a stored response can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// When it came.
    since: SystemTime,
    /// Its age then.
    initial_age: Duration,
    lifetime: Duration,
    stale_while_revalidate: Duration,
    stale_if_error: Duration,
    /// `no-cache`: never without asking.
    always_validated: bool,
}

/// How a stored response can be used now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// As it is.
    Fresh,
    /// As it is, while a newer one is fetched.
    Refreshing,
    /// Not before whoever made it has been asked.
    Validated,
}

impl Policy {
    pub fn judge(&self, question: &Question<'_>) -> Judged {
        let Question { request, status, headers, now, .. } = *question;
        let targeted = self.targeted.iter().find_map(|name| Directives::targeted(headers, name));
        let is_targeted = targeted.is_some();
        let said = targeted.unwrap_or_else(|| Directives::of(headers));
        self.may_store(&said, request, status, headers)?;
        let lifetime = self.lifetime(&said, is_targeted, question).ok_or(Ground::Lifetime)?;
        let strict = said.has(Flags::MUST_REVALIDATE) || said.has(Flags::PROXY_REVALIDATE);
        let stale = |own: Option<Duration>, usual: Duration| match strict || said.has(Flags::NO_CACHE) {
            true => Duration::ZERO,
            false => own.unwrap_or(usual),
        };
        let terms = Terms {
            since: now,
            initial_age: initial_age(question),
            lifetime,
            stale_while_revalidate: stale(said.stale_while_revalidate, self.stale_while_revalidate),
            stale_if_error: stale(said.stale_if_error, self.stale_if_error),
            always_validated: said.has(Flags::NO_CACHE),
        };
        let can_be_asked_about =
            headers.contains_key(header::ETAG) || headers.contains_key(header::LAST_MODIFIED);
        let is_over = terms.always_validated || terms.age(now) >= lifetime;
        let outlives = said.stale_while_revalidate.is_some() || said.stale_if_error.is_some();
        if is_over && !can_be_asked_about && !outlives { Err(Ground::Expired) } else { Ok(terms) }
    }

    /// How a client's request can be answered with what is stored.
    pub fn reuse(&self, terms: &Terms, request: &HeaderMap, now: SystemTime) -> Reuse {
        let (age, lifetime) = (terms.age(now), terms.lifetime);
        let asks = if self.obeys_clients { Directives::of(request) } else { Directives::default() };
        let no_cache = asks.has(Flags::NO_CACHE) || (self.obeys_clients && is_pragma(request));
        let is_too_old = asks.max_age.is_some_and(|most| age > most);
        if terms.always_validated || no_cache || is_too_old {
            return Reuse::Validated;
        }
        if age + asks.min_fresh.unwrap_or_default() < lifetime {
            return Reuse::Fresh;
        }
        let over = age.saturating_sub(lifetime);
        match over < terms.stale_while_revalidate && asks.min_fresh.is_none() {
            true => Reuse::Refreshing,
            false => Reuse::Validated,
        }
    }

    /// Whether a client wants nothing that is not stored (RFC 9111 §5.2.1.7).
    pub fn is_only_if_cached(&self, request: &HeaderMap) -> bool {
        self.obeys_clients && Directives::of(request).has(Flags::ONLY_IF_CACHED)
    }

    fn may_store(
        &self,
        said: &Directives,
        request: &HeaderMap,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), Ground> {
        let is_understood = is_known(status);
        let must_understand = said.has(Flags::MUST_UNDERSTAND);
        if status.is_informational()
            || matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED)
            || must_understand && !is_understood
        {
            return Err(Ground::Status);
        }
        if said.has(Flags::NO_STORE) && !must_understand || Directives::of(request).has(Flags::NO_STORE) {
            return Err(Ground::NoStore);
        }
        if said.has(Flags::PRIVATE) {
            return Err(Ground::Private);
        }
        // Whatever it says of itself: a cookie is for one client.
        if headers.contains_key(header::SET_COOKIE) {
            return Err(Ground::SetCookie);
        }
        if request.contains_key(header::ACCEPT_ENCODING) && headers.contains_key(header::CONTENT_ENCODING) {
            return Err(Ground::Encoding);
        }
        let is_for_all =
            said.has(Flags::PUBLIC) || said.has(Flags::MUST_REVALIDATE) || said.s_maxage.is_some();
        if request.contains_key(header::AUTHORIZATION) && !is_for_all {
            return Err(Ground::Authorization);
        }
        let values = headers.get_all(header::VARY).iter();
        if values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).any(is_star) {
            return Err(Ground::Vary);
        }
        Ok(())
    }

    fn lifetime(&self, said: &Directives, is_targeted: bool, question: &Question<'_>) -> Option<Duration> {
        if let Some(lifetime) = said.s_maxage.or(said.max_age) {
            return Some(lifetime);
        }
        let headers = question.headers;
        if !is_targeted && headers.contains_key(header::EXPIRES) {
            let begin = date::of(headers, &header::DATE).unwrap_or(question.now);
            let expires = date::of(headers, &header::EXPIRES);
            return Some(expires.map_or(Duration::ZERO, |expires| date::between(begin, expires)));
        }
        if said.has(Flags::NO_CACHE) {
            return Some(Duration::ZERO);
        }
        let is_heuristic = is_kept_unasked(question.status) || said.has(Flags::PUBLIC);
        if let Some(lifetime) = self.default_ttl.filter(|_| is_heuristic) {
            return Some(lifetime);
        }
        self.guesses.then_some(()).filter(|()| is_heuristic)?;
        let modified = date::of(headers, &header::LAST_MODIFIED)?;
        Some((date::between(modified, question.now) / HEURISTIC_PART).min(HEURISTIC_MOST))
    }
}

impl Terms {
    /// RFC 9111 §4.2.3.
    pub fn age(&self, now: SystemTime) -> Duration {
        self.initial_age + date::between(self.since, now)
    }

    /// Seconds that are left of its lifetime; negative when that is over.
    pub fn ttl(&self, now: SystemTime) -> i64 {
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        seconds(self.lifetime).saturating_sub(seconds(self.age(now)))
    }

    /// Whether it may stand for an error of whoever was to make a newer one (RFC 5861 §4).
    pub fn may_replace_error(&self, now: SystemTime) -> bool {
        let over = self.age(now).saturating_sub(self.lifetime);
        self.age(now) < self.lifetime && !self.always_validated || over < self.stale_if_error
    }

    /// Until then it can be of use.
    pub fn is_over(&self, now: SystemTime) -> bool {
        self.age(now) >= self.lifetime + self.stale_while_revalidate.max(self.stale_if_error)
    }

    /// When the response came.
    pub(crate) fn since(&self) -> SystemTime {
        self.since
    }

    /// Whether one can reckon with them, wherever they come from.
    pub(crate) fn is_sound(&self) -> bool {
        let times = [self.initial_age, self.lifetime, self.stale_while_revalidate, self.stale_if_error];
        times.into_iter().all(|time| time <= LONGEST)
    }
}

fn initial_age(question: &Question<'_>) -> Duration {
    let apparent = date::of(question.headers, &header::DATE).map(|date| date::between(date, question.now));
    let said = question
        .headers
        .get(header::AGE)
        .and_then(|age| directives::delta_seconds(age.to_str().ok()?.split(',').next()?.trim()));
    let said = said.unwrap_or_default();
    apparent.unwrap_or_default().max(said + date::between(question.asked, question.now))
}

fn is_star(member: &[u8]) -> bool {
    member.trim_ascii() == b"*"
}

fn is_pragma(request: &HeaderMap) -> bool {
    !request.contains_key(header::CACHE_CONTROL)
        && request.get(header::PRAGMA).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"no-cache"))
}

/// What may be stored though nothing is said of a lifetime (RFC 9110 §15.1), but for what a script that fails may have meant
/// for one client.
fn is_kept_unasked(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 300 | 301 | 308 | 404 | 410)
}

/// Statuses whose rules this cache follows (RFC 9111 §5.2.2.3).
fn is_known(status: StatusCode) -> bool {
    is_kept_unasked(status) || matches!(status.as_u16(), 302 | 303 | 307 | 401 | 403 | 405 | 414 | 500..=504)
}

#[cfg(test)]
mod tests;
