//! When what is tried: renewals, and orders that failed.

use crate::certificate::Validity;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// What lies between failures (certmagic's `retryIntervals`), in minutes; the last one repeats.
const RETRY_MINUTES: [i64; 25] =
    [1, 2, 2, 5, 10, 10, 10, 20, 20, 20, 20, 30, 30, 30, 30, 30, 30, 60, 60, 60, 120, 120, 180, 180, 360];
/// certmagic's `maxRetryDuration`. It then gives up until the next start; we go on once a day, since names are often put
/// in order late.
const GIVE_UP_AFTER: i64 = 30 * DAY;

/// Whatever the CA says, it is asked again no earlier and no later.
const ARI_INTERVAL: std::ops::RangeInclusive<i64> = MINUTE..=DAY;
/// After a failure (RFC 9773 §4.3.3).
pub(super) const ARI_RETRY: i64 = 6 * HOUR;

/// A new certificate that is due at once, as when the CA's clock or ours is wrong, is not replaced again and again.
const SUCCESS_HOLDS: i64 = HOUR;

/// The CA is asked when to renew within this time, whatever was said when the clock stood elsewhere.
pub(super) const LATEST_QUESTION: i64 = DAY;

/// Failures since the last success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Failures {
    count: usize,
    /// Seconds since 1970, as all times here.
    first: i64,
}

impl Failures {
    pub fn count(self) -> usize {
        self.count
    }

    /// Counts one, and says when the next try is due.
    pub fn add(&mut self, now: i64) -> i64 {
        if self.count == 0 {
            self.first = now;
        }
        self.count += 1;
        now + self.pause(now)
    }

    /// From the last of them to the next try; after a success, from that to the next order, whatever is due.
    pub fn pause(self, now: i64) -> i64 {
        match self.count.checked_sub(1) {
            None => SUCCESS_HOLDS,
            Some(_) if now - self.first > GIVE_UP_AFTER => DAY,
            Some(index) => RETRY_MINUTES[index.min(RETRY_MINUTES.len() - 1)] * MINUTE,
        }
    }
}

/// What the CA has said about when to renew (RFC 9773), as certmagic keeps it in the `json` beside the certificate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RenewalInfo {
    #[serde(rename = "suggestedWindow")]
    pub window: Window,
    #[serde(rename = "_retryAfter", with = "time::serde::rfc3339::option", default)]
    pub ask_again: Option<OffsetDateTime>,
    #[serde(rename = "_selectedTime", with = "time::serde::rfc3339")]
    pub selected: OffsetDateTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    #[serde(with = "time::serde::rfc3339")]
    pub start: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    pub end: OffsetDateTime,
}

impl RenewalInfo {
    /// `random`: evenly distributed. A moment that was chosen in the same window before is kept.
    pub fn new(window: Window, before: Option<&Self>, ask_after: i64, now: i64, random: u64) -> Self {
        let span = (window.end.unix_timestamp() - window.start.unix_timestamp()).max(1).unsigned_abs();
        let chosen = window.start.unix_timestamp() + i64::try_from(random % span).unwrap_or_default();
        let kept = before.filter(|before| before.window == window).map(|before| before.selected);
        let ask_after = ask_after.clamp(*ARI_INTERVAL.start(), *ARI_INTERVAL.end());
        Self {
            window,
            ask_again: OffsetDateTime::from_unix_timestamp(now + ask_after).ok(),
            selected: kept.unwrap_or_else(|| at(chosen)),
        }
    }

    /// In seconds since 1970.
    pub fn ask_at(&self) -> i64 {
        self.ask_again.map_or(0, OffsetDateTime::unix_timestamp)
    }
}

/// When to renew. What the CA says goes first; without it, and when its word cannot be right as only a twentieth of the
/// lifetime is left (certmagic's `certNeedsRenewal`), the lifetime counts.
pub(super) fn renewal_time(validity: Validity, info: Option<&RenewalInfo>) -> i64 {
    let lifetime = validity.until - validity.from;
    match info {
        Some(info) => info.selected.unix_timestamp().min(validity.until - lifetime / 20),
        None => validity.until - lifetime / 3,
    }
}

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(start: i64, end: i64) -> Window {
        Window { start: at(start), end: at(end) }
    }

    #[test]
    fn failures_are_tried_again_as_certmagic_does() {
        let mut failures = Failures::default();
        let mut now = 1_000_000;
        let mut waits = Vec::new();
        for _ in 0..27 {
            let next = failures.add(now);
            waits.push((next - now) / MINUTE);
            now = next;
        }
        assert_eq!(waits[..8], [1, 2, 2, 5, 10, 10, 10, 20]);
        assert_eq!(waits[24..], [360, 360, 360]);
        assert_eq!(failures.add(now + 31 * DAY) - now - 31 * DAY, DAY);
    }

    #[test]
    fn a_third_of_any_lifetime_is_left_without_word_of_the_ca() {
        assert_eq!(renewal_time(Validity { from: 0, until: 90 * DAY }, None), 60 * DAY);
        assert_eq!(renewal_time(Validity { from: 0, until: 6 * DAY }, None), 4 * DAY);
    }

    #[test]
    fn the_window_of_the_ca_goes_first_but_not_past_the_end() {
        let validity = Validity { from: 0, until: 100 * DAY };
        let info = |start, end| RenewalInfo::new(window(start, end), None, HOUR, 0, 0);
        assert_eq!(renewal_time(validity, Some(&info(DAY, 2 * DAY))), DAY);
        assert_eq!(renewal_time(validity, Some(&info(200 * DAY, 201 * DAY))), 95 * DAY);
    }

    #[test]
    fn a_chosen_moment_is_kept_as_long_as_the_window_is() {
        let first = RenewalInfo::new(window(0, 1000), None, HOUR, 0, 500);
        let second = RenewalInfo::new(window(0, 1000), Some(&first), HOUR, 10, 700);
        assert_eq!(second.selected, first.selected);
        let third = RenewalInfo::new(window(0, 2000), Some(&second), HOUR, 20, 700);
        assert_eq!(third.selected, at(700));
        assert_eq!(third.ask_at(), HOUR + 20);
    }

    #[test]
    fn what_certmagic_has_stored_is_read() {
        let json = r#"{"suggestedWindow":{"start":"2026-12-01T00:00:00Z","end":"2026-12-02T00:00:00Z"},
            "_uniqueIdentifier":"a.b","_retryAfter":"2026-11-01T06:00:00.123+01:00","_selectedTime":"2026-12-01T12:00:00Z"}"#;
        let info: RenewalInfo = serde_json::from_str(json).unwrap();
        assert_eq!(info.selected.unix_timestamp() - info.window.start.unix_timestamp(), 12 * HOUR);
    }

    proptest! {
        #[test]
        fn a_moment_is_in_its_window_and_asked_again_in_bounds(
            start in 0i64..4_000_000_000, length in -10i64..1_000_000, after in any::<i64>(), random: u64,
        ) {
            let info = RenewalInfo::new(window(start, start + length), None, after, 100, random);
            let selected = info.selected.unix_timestamp();
            prop_assert!(selected >= start && selected <= start + length.max(0));
            let again = info.ask_at();
            prop_assert!((100 + MINUTE..=100 + DAY).contains(&again));
        }
    }
}
