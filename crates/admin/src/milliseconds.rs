//! Times in JSON are milliseconds: durations with three decimals, moments since 1970-01-01 UTC as whole numbers.

use serde::{Deserialize, Deserializer, Serializer, de::Error};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_micros() as f64 / 1e3)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(deserializer)? / 1e3).map_err(Error::custom)
}

/// Milliseconds since 1970; 0 for what lies before.
pub(crate) fn since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// For durations that may be missing.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Duration, Error, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let milliseconds = Option::<f64>::deserialize(deserializer)?;
        milliseconds.map(|ms| Duration::try_from_secs_f64(ms / 1e3)).transpose().map_err(Error::custom)
    }
}

/// For moments.
pub(crate) mod unix {
    use super::{Deserialize, Deserializer, Duration, Error, Serializer, SystemTime, UNIX_EPOCH};

    pub(crate) fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(super::since_1970(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
        let since = Duration::from_millis(u64::deserialize(deserializer)?);
        UNIX_EPOCH.checked_add(since).ok_or_else(|| Error::custom("a time beyond what the system can tell"))
    }
}

/// For moments that may be missing.
pub(crate) mod unix_optional {
    use super::{Deserialize, Deserializer, Duration, Error, Serializer, SystemTime, UNIX_EPOCH};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<SystemTime>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::unix::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        let since = Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis);
        let time = since.map(|since| UNIX_EPOCH.checked_add(since));
        time.map(|time| time.ok_or_else(|| Error::custom("a time beyond what the system can tell")))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Times {
        #[serde(with = "super")]
        wait: Duration,
        #[serde(with = "super::optional")]
        deadline: Option<Duration>,
        #[serde(with = "super::unix")]
        at: SystemTime,
    }

    #[test]
    fn times_survive_json() {
        let times = Times {
            wait: Duration::from_micros(3_207),
            deadline: None,
            at: UNIX_EPOCH + Duration::from_millis(1_790_337_784_123),
        };
        let json = serde_json::to_string(&times).unwrap();
        assert_eq!(json, r#"{"wait":3.207,"deadline":null,"at":1790337784123}"#);
        assert_eq!(serde_json::from_str::<Times>(&json).unwrap(), times);
    }

    #[test]
    fn impossible_times_are_errors() {
        for json in [r#"{"wait":-1,"deadline":null,"at":0}"#, r#"{"wait":0,"deadline":1e300,"at":0}"#] {
            serde_json::from_str::<Times>(json).unwrap_err();
        }
    }
}
