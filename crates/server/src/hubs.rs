//! The Mercure hubs, from one configuration to the next.

use regent_config::{HubHistory, JwtKey, MercureHub};
use regent_mercure::{Anonymous, HistoryOptions, Hub, HubError, HubOptions, Key, Subscriptions};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All hubs that run. One that the next configuration has too goes on with its subscribers and its history.
#[derive(Default)]
pub(crate) struct Hubs(Mutex<Vec<Arc<Hub>>>);

impl Hubs {
    /// Those of a configuration, by their ids: the ones that run, and new ones. Blocks while a history is read.
    pub fn open(&self, hubs: &[MercureHub]) -> Result<Vec<Arc<Hub>>, HubError> {
        let wanted: Vec<_> = hubs.iter().map(options).collect();
        let mut running = self.running();
        let mut opened = Vec::with_capacity(wanted.len());
        for options in &wanted {
            if let Some(hub) = running.iter().find(|hub| hub.options() == options) {
                opened.push(Arc::clone(hub));
                continue;
            }
            let is_left = |hub: &&Arc<Hub>| !wanted.contains(hub.options());
            let has_same = |hub: &&Arc<Hub>| is_same_place(&hub.options().history, &options.history);
            let before = running.iter().filter(is_left).find(has_same);
            let hub = Arc::new(match before {
                Some(before) => Hub::open_after(before, options.clone())?,
                None => Hub::open(options.clone())?,
            });
            running.push(Arc::clone(&hub));
            opened.push(hub);
        }
        Ok(opened)
    }

    /// Closes all hubs that this configuration does not have; their subscribers come again, and a new hub that keeps its
    /// history at the same place takes it over.
    pub fn keep_only(&self, hubs: &[MercureHub]) {
        let kept: Vec<_> = hubs.iter().map(options).collect();
        let mut running = self.running();
        let (stay, go) = running.drain(..).partition::<Vec<_>, _>(|hub| kept.contains(hub.options()));
        stay.iter().for_each(|hub| hub.succeed());
        go.iter().for_each(|hub| hub.close());
        *running = stay;
    }

    /// Ends the connections of all subscribers. Nothing opens hubs after that.
    pub fn close(&self) -> Vec<Arc<Hub>> {
        let hubs = std::mem::take(&mut *self.running());
        hubs.iter().for_each(|hub| hub.close());
        hubs
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<Hub>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_same_place(one: &HistoryOptions, other: &HistoryOptions) -> bool {
    match (one, other) {
        (HistoryOptions::Memory, HistoryOptions::Memory) => true,
        (HistoryOptions::File { path: one, .. }, HistoryOptions::File { path: other, .. }) => one == other,
        _ => false,
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
        history: match &hub.history {
            HubHistory::None => HistoryOptions::None,
            HubHistory::Memory => HistoryOptions::Memory,
            HubHistory::File { path, size } => HistoryOptions::File { path: path.clone(), size: *size },
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
