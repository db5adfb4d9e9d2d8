//! The zones of `rate_limit` in the whole configuration.

use crate::model::RateZone;
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::collections::BTreeMap;

/// By name, with the place where each is first.
#[derive(Default)]
pub(crate) struct RateZones(BTreeMap<String, (RateZone, Token)>);

impl RateZones {
    /// Zones of a name count together, so that they have to be the same. A snippet brings them into several sites.
    pub fn add(&mut self, zone: &RateZone, name: &Token) -> Result<(), Error> {
        match self.0.get(&zone.name) {
            Some((known, first)) if known != zone => {
                let message = format!(
                    "the zone `{}` is another one in {}, line {}: give one of them another name, or let them be the same",
                    zone.name,
                    first.span.source_name(),
                    first.span.line()
                );
                Err(error(name, message))
            }
            Some(_) => Ok(()),
            None => {
                self.0.insert(zone.name.clone(), (zone.clone(), name.clone()));
                Ok(())
            }
        }
    }
}
