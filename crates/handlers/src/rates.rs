//! The zones of `rate_limit`, which go on from one configuration to the next.

mod recent;
mod zone;

pub(crate) use zone::{Rate, Refused, Zone};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The zones of configurations that are in use, by name.
#[derive(Default)]
pub struct RateZones(Mutex<BTreeMap<String, Weak<Zone>>>);

/// What a zone has come to since it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneFigures {
    pub zone: String,
    /// Requests that counted, and those that were refused.
    pub requests: u64,
    pub declined: u64,
    /// Those that something is remembered of.
    pub keys: u64,
}

impl RateZones {
    /// A zone of this name, which another configuration may have too, with room for keys that have so many events.
    pub(crate) fn open(&self, name: &str, events: u32) -> Arc<Zone> {
        let mut zones = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        zones.retain(|_, zone| zone.strong_count() > 0);
        if let Some(zone) = zones.get(name).and_then(Weak::upgrade) {
            zone.make_room(events);
            return zone;
        }
        let zone = Arc::new(Zone::new(name, events));
        zones.insert(name.to_owned(), Arc::downgrade(&zone));
        zone
    }

    pub fn figures(&self) -> Vec<ZoneFigures> {
        let zones = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        zones.values().filter_map(Weak::upgrade).map(|zone| zone.figures()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_zone_goes_on_as_long_as_a_configuration_has_it() {
        let zones = RateZones::default();
        let (rate, now) = (Rate { events: 1, window: Duration::from_secs(60) }, Instant::now());
        let before = zones.open("a", 1);
        assert_eq!(before.take("key", rate, now), Ok(()));
        let after = zones.open("a", 1);
        drop(before);
        assert!(after.take("key", rate, now).is_err());
        let figures = ZoneFigures { zone: "a".into(), requests: 2, declined: 1, keys: 1 };
        assert_eq!(zones.figures(), [figures]);
        drop(after);
        assert_eq!(zones.open("a", 1).take("key", rate, now), Ok(()));
    }
}
