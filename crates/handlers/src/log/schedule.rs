//! When a log file is followed by a new one, however large it is.

use regent_config::LogRolling;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MINUTE: u64 = 60;
const DAY: u64 = 24 * 60 * MINUTE;

/// The first time behind `since`. `None`: only its size counts.
pub(super) fn next(rolling: &LogRolling, since: SystemTime) -> Option<SystemTime> {
    let after = rolling.interval.and_then(|interval| since.checked_add(interval));
    let at = rolling.at.iter().map(|minute| next_at(u64::from(*minute) * MINUTE, since)).min();
    [after, at].into_iter().flatten().min()
}

/// The next time when it is this second of a day, by UTC.
fn next_at(second: u64, since: SystemTime) -> SystemTime {
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let today = since / DAY * DAY + second;
    UNIX_EPOCH + Duration::from_secs(if today > since { today } else { today + DAY })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_time_that_comes_counts() {
        let rolling = |interval: Option<u64>, at: &[u16]| LogRolling {
            interval: interval.map(Duration::from_secs),
            at: at.to_vec(),
            ..LogRolling::default()
        };
        let noon = at(10 * DAY + DAY / 2);
        assert_eq!(next(&rolling(None, &[]), noon), None);
        assert_eq!(next(&rolling(Some(90), &[]), noon), Some(noon + Duration::from_secs(90)));
        assert_eq!(next(&rolling(None, &[0]), noon), Some(at(11 * DAY)));
        assert_eq!(next(&rolling(None, &[0, 13 * 60 + 30]), noon), Some(at(10 * DAY + 13 * 3600 + 1800)));
        // Not now once more.
        assert_eq!(next(&rolling(None, &[12 * 60]), noon), Some(at(11 * DAY + DAY / 2)));
        assert_eq!(next(&rolling(Some(DAY), &[0]), noon), Some(at(11 * DAY)));
        assert_eq!(next(&rolling(Some(60), &[0]), noon), Some(noon + Duration::from_secs(60)));
    }
}
