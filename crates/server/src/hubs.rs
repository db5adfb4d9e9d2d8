//! The Mercure hubs, from one configuration to the next.

use regent_config::{HubHistory, JwtKey, MercureHub};
use regent_mercure::{Anonymous, HistoryOptions, Hub, HubError, HubOptions, Key, Subscriptions};
use std::sync::{Arc, Mutex, PoisonError};

/// All hubs that run. One that the next configuration has too goes on with its subscribers and its history.
#[derive(Default)]
pub(crate) struct Hubs(Mutex<Vec<Arc<Hub>>>);

impl Hubs {
    /// Those of a configuration, by their ids: the ones that run, and new ones.
    pub fn open(&self, hubs: &[MercureHub]) -> Result<Vec<Arc<Hub>>, HubError> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = |hub: &MercureHub| {
            let options = options(hub);
            if let Some(hub) = running.iter().find(|hub| *hub.options() == options) {
                return Ok(Arc::clone(hub));
            }
            let hub = Arc::new(Hub::open(options)?);
            running.push(Arc::clone(&hub));
            Ok(hub)
        };
        hubs.iter().map(open).collect()
    }

    /// Closes all hubs that this configuration does not have; their subscribers come again.
    pub fn keep_only(&self, hubs: &[MercureHub]) {
        let kept: Vec<_> = hubs.iter().map(options).collect();
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|hub| {
            let is_kept = kept.contains(hub.options());
            if !is_kept {
                hub.close();
            }
            is_kept
        });
    }
}

fn options(hub: &MercureHub) -> HubOptions {
    HubOptions {
        publisher: hub.publisher.as_ref().map(key),
        subscriber: hub.subscriber.as_ref().map(key),
        anonymous: if hub.anonymous { Anonymous::Allowed } else { Anonymous::Refused },
        subscriptions: if hub.subscriptions { Subscriptions::Shown } else { Subscriptions::Hidden },
        cors_origins: hub.cors_origins.clone(),
        publish_origins: hub.publish_origins.clone(),
        cookie_name: hub.cookie_name.clone(),
        history: match hub.history {
            HubHistory::None => HistoryOptions::None,
            HubHistory::Memory => HistoryOptions::Memory { size: 0 },
        },
        heartbeat: hub.heartbeat,
        write_timeout: hub.write_timeout,
        dispatch_timeout: hub.dispatch_timeout,
    }
}

fn key(key: &JwtKey) -> Key {
    Key { secret: key.key.0.clone(), algorithm: key.algorithm.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(cookie_name: &str) -> MercureHub {
        MercureHub { cookie_name: cookie_name.into(), ..MercureHub::default() }
    }

    #[test]
    fn a_hub_goes_on_as_long_as_configurations_have_it() {
        let hubs = Hubs::default();
        let first = hubs.open(&[hub("a"), hub("b")]).unwrap();
        let second = hubs.open(&[hub("c"), hub("b")]).unwrap();
        assert!(Arc::ptr_eq(&first[1], &second[1]) && !Arc::ptr_eq(&first[0], &second[0]));
        hubs.keep_only(&[hub("c"), hub("b")]);
        let third = hubs.open(&[hub("a"), hub("b")]).unwrap();
        assert!(Arc::ptr_eq(&first[1], &third[1]) && !Arc::ptr_eq(&first[0], &third[0]));
    }
}
