//! Times as values of templates.
//!
//! A time is a map with the fields that Go's methods without arguments have (`.Year`, `.Unix`), and what it takes to make
//! the time again.

use crate::arguments::{Map, int_of, string};
use crate::go_time;
use gotmpl::Value;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use std::sync::Arc;

/// The key that says what a map stands for.
pub(crate) const KIND: &str = "\0kind";
const TIME: &str = "time";
const NANOSECONDS: &str = "\0nanoseconds";
const ZONE: &str = "\0zone";

pub(crate) fn value(time: &ZonedDateTime) -> Value {
    let mut map = Map::new();
    let zone = time.time_zone().iana_name().map_or_else(|| time.offset().to_string(), str::to_owned);
    let timestamp = time.timestamp();
    let nanoseconds = i64::try_from(timestamp.as_nanosecond()).unwrap_or(i64::MAX);
    let int = |number: i64| Value::Int(number);
    for (key, field) in [
        (KIND, string(TIME)),
        (NANOSECONDS, string(timestamp.as_nanosecond().to_string())),
        (ZONE, string(zone)),
        ("Year", int(time.year().into())),
        ("Month", string(go_time::month_name(time.month()))),
        ("Day", int(time.day().into())),
        ("Hour", int(time.hour().into())),
        ("Minute", int(time.minute().into())),
        ("Second", int(time.second().into())),
        ("Nanosecond", int(time.subsec_nanosecond().into())),
        ("Weekday", string(go_time::weekday_name(time.weekday()))),
        ("YearDay", int(time.day_of_year().into())),
        ("Unix", int(timestamp.as_second())),
        ("UnixMilli", int(nanoseconds / 1_000_000)),
        ("UnixNano", int(nanoseconds)),
        ("String", string(go_time::format(time, go_time::PRINTED))),
    ] {
        map.insert(key.into(), field);
    }
    if time.time_zone() != &TimeZone::UTC {
        let utc = time.with_time_zone(TimeZone::UTC);
        map.insert("UTC".into(), value(&utc));
    }
    Value::Map(Arc::new(map))
}

/// The time that a value is; `None` if it is none.
pub(crate) fn of_value(value: &Value) -> Option<ZonedDateTime> {
    let Value::Map(map) = value else { return None };
    if map.get(KIND)?.as_str()? != TIME {
        return None;
    }
    let nanoseconds = map.get(NANOSECONDS)?.as_str()?.parse().ok()?;
    let zone = zone(map.get(ZONE)?.as_str()?);
    Some(Timestamp::from_nanosecond(nanoseconds).ok()?.to_zoned_datetime(zone))
}

/// As sprig's `date` takes it: a time, or seconds since 1970.
pub(crate) fn of_any(value: &Value, now: Timestamp) -> ZonedDateTime {
    if let Some(time) = of_value(value) {
        return time;
    }
    let seconds = match value {
        Value::Int(_) | Value::Uint(_) => Timestamp::from_second(int_of(value)).ok(),
        _ => None,
    };
    seconds.unwrap_or(now).to_zoned_datetime(local_zone())
}

pub(crate) fn local_zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// The zone of this name; UTC if there is none, as in sprig.
pub(crate) fn zone(name: &str) -> TimeZone {
    match name {
        "Local" => local_zone(),
        "" | "UTC" => TimeZone::UTC,
        _ => TimeZone::get(name)
            .ok()
            .or_else(|| go_time::offset(name).map(TimeZone::fixed))
            .unwrap_or(TimeZone::UTC),
    }
}
