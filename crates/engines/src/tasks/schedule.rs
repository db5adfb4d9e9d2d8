//! The next time of a schedule.

use regent_config::{DaysBy, Schedule};
use std::time::{Duration, SystemTime};
use time::{Date, OffsetDateTime};

/// Leap years, and a weekday of the 29th of February, come within so many days.
const MOST_DAYS: usize = 366 * 29;

/// How long it is until the next minute that fits, after this time. `None`: there is none.
pub(super) fn until_next(schedule: &Schedule, now: SystemTime) -> Option<Duration> {
    let now = OffsetDateTime::from(now).to_offset(time::UtcOffset::UTC);
    let mut date = now.date();
    let mut first = u32::from(now.hour()) * 60 + u32::from(now.minute()) + 1;
    for _ in 0..MOST_DAYS {
        if fits_day(schedule, date)
            && let Some(minute) = (first..24 * 60).find(|minute| fits_minute(schedule, *minute))
        {
            let (hour, minute) = (u8::try_from(minute / 60).ok()?, u8::try_from(minute % 60).ok()?);
            let next = date.with_hms(hour, minute, 0).ok()?.assume_utc();
            return (next - now).try_into().ok();
        }
        date = date.next_day()?;
        first = 0;
    }
    None
}

fn fits_day(schedule: &Schedule, date: Date) -> bool {
    let day = schedule.days >> date.day() & 1 == 1;
    let weekday = schedule.weekdays >> date.weekday().number_days_from_sunday() & 1 == 1;
    let month = schedule.months >> u8::from(date.month()) & 1 == 1;
    month
        && match schedule.days_by {
            DaysBy::Both => day && weekday,
            DaysBy::Either => day || weekday,
        }
}

/// Of the day.
fn fits_minute(schedule: &Schedule, minute: u32) -> bool {
    schedule.hours >> (minute / 60) & 1 == 1 && schedule.minutes >> (minute % 60) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const ANY: Schedule = Schedule {
        minutes: u64::MAX,
        hours: u32::MAX,
        days: u32::MAX,
        months: u16::MAX,
        weekdays: u8::MAX,
        days_by: DaysBy::Both,
    };

    fn next(schedule: Schedule, after: OffsetDateTime) -> Option<OffsetDateTime> {
        until_next(&schedule, after.into()).map(|wait| after + wait)
    }

    #[test]
    fn minutes_hours_and_days() {
        let monday = datetime!(2026-05-04 15:02:31.5 UTC);
        assert_eq!(next(ANY, monday), Some(datetime!(2026-05-04 15:03 UTC)));
        let quarter = Schedule { minutes: 1 | 1 << 15, ..ANY };
        assert_eq!(next(quarter, datetime!(2026-05-04 15:15 UTC)), Some(datetime!(2026-05-04 16:00 UTC)));
        let nightly = Schedule { minutes: 1 << 30, hours: 1 << 3, ..ANY };
        assert_eq!(next(nightly, monday), Some(datetime!(2026-05-05 03:30 UTC)));
        let first_or_friday =
            Schedule { days: 2, weekdays: 1 << 5, minutes: 1, hours: 1, days_by: DaysBy::Either, ..ANY };
        assert_eq!(next(first_or_friday, monday), Some(datetime!(2026-05-08 00:00 UTC)));
        let leap = Schedule { days: 1 << 29, months: 1 << 2, ..nightly };
        assert_eq!(next(leap, monday), Some(datetime!(2028-02-29 03:30 UTC)));
        assert_eq!(next(Schedule { days: 1 << 31, months: 1 << 2, ..ANY }, monday), None);
    }
}
