//! The Mercure hubs, from one configuration to the next.

use regent_config::{self as config, HubHistory, JwtKey, MercureHub};
use regent_engines::{Published, UpdateSink};
use regent_mercure::{Anonymous, HistoryOptions, Hub, HubError, HubOptions, Key, Publication, Subscriptions};
use regent_redis::{Address, Place, RedisServer, RedisTls, Sentinels};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All hubs that run. One that the next configuration has too goes on with its subscribers and its history.
#[derive(Default)]
pub struct Hubs(Mutex<Running>);

#[derive(Default)]
struct Running {
    hubs: Vec<(u64, Arc<Hub>)>,
    /// No number is given twice: an engine may still have one of a configuration before.
    next_number: u64,
}

/// Those of one configuration, by their ids.
pub struct OpenHubs {
    pub hubs: Vec<Arc<Hub>>,
    /// What engines call them.
    pub numbers: Vec<u64>,
}

impl Hubs {
    /// Those of a configuration: the ones that run, and new ones. Blocks while a history is read.
    pub fn open(&self, hubs: &[MercureHub]) -> Result<OpenHubs, HubError> {
        let wanted: Vec<_> = hubs.iter().map(options).collect();
        let mut running = self.running();
        let mut opened = OpenHubs { hubs: Vec::new(), numbers: Vec::new() };
        for options in &wanted {
            let known = running.hubs.iter().find(|(_, hub)| hub.options() == options).cloned();
            let (number, hub) = match known {
                Some(known) => known,
                None => running.add(options, &wanted)?,
            };
            opened.numbers.push(number);
            opened.hubs.push(hub);
        }
        Ok(opened)
    }

    /// Closes all hubs that this configuration does not have; their subscribers come again, and a new hub that keeps its
    /// history at the same place takes it over.
    pub fn keep_only(&self, hubs: &[MercureHub]) {
        let kept: Vec<_> = hubs.iter().map(options).collect();
        let mut running = self.running();
        let is_kept = |(_, hub): &(u64, Arc<Hub>)| kept.contains(hub.options());
        let (stay, go) = running.hubs.drain(..).partition::<Vec<_>, _>(is_kept);
        stay.iter().for_each(|(_, hub)| hub.succeed());
        go.iter().for_each(|(_, hub)| hub.close());
        running.hubs = stay;
    }

    /// Ends the connections of all subscribers. Nothing opens hubs after that; scripts that still run can publish.
    pub fn close(&self) -> Vec<Arc<Hub>> {
        let hubs: Vec<_> = self.running().hubs.iter().map(|(_, hub)| Arc::clone(hub)).collect();
        hubs.iter().for_each(|hub| hub.close());
        hubs
    }

    /// Where engines put the updates of scripts.
    pub fn sink(self: &Arc<Self>) -> UpdateSink {
        let hubs = Arc::downgrade(self);
        UpdateSink(Arc::new(move |update| {
            if let Some(hubs) = hubs.upgrade() {
                hubs.publish(update);
            }
        }))
    }

    /// The script has been answered already: what goes wrong is for the log.
    fn publish(&self, update: Published) {
        let hub = self
            .running()
            .hubs
            .iter()
            .find(|(number, _)| *number == update.hub)
            .map(|(_, hub)| Arc::clone(hub));
        let Published { topics, data, private, id, kind, retry, .. } = update;
        let publication = Publication { topics, data, private, id: Some(id), kind, retry };
        match hub.map(|hub| hub.publish(publication)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => tracing::warn!(%error, "an update of a script could not be published"),
            None => {
                tracing::warn!("an update of a script came too late: its hub has gone with the configuration")
            }
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// `wanted`: what the next configuration has; of others, one may have the history that this hub is to have.
    fn add(&mut self, options: &HubOptions, wanted: &[HubOptions]) -> Result<(u64, Arc<Hub>), HubError> {
        let is_left = |hub: &&(u64, Arc<Hub>)| !wanted.contains(hub.1.options());
        let has_same = |hub: &&(u64, Arc<Hub>)| is_same_place(&hub.1.options().history, &options.history);
        let hub = Arc::new(match self.hubs.iter().filter(is_left).find(has_same) {
            Some((_, before)) => Hub::open_after(before, options.clone())?,
            None => Hub::open(options.clone())?,
        });
        self.next_number += 1;
        self.hubs.push((self.next_number, Arc::clone(&hub)));
        Ok((self.next_number, hub))
    }
}

/// What hubs share is in Redis, from where each reads it.
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
            HubHistory::File { path, size, .. } => HistoryOptions::File { path: path.clone(), size: *size },
            HubHistory::Redis { server, stream, size } => {
                HistoryOptions::Shared { server: redis(server), stream: stream.clone(), size: *size }
            }
        },
        heartbeat: hub.heartbeat,
        write_timeout: hub.write_timeout,
        dispatch_timeout: hub.dispatch_timeout,
    }
}

fn redis(server: &config::RedisServer) -> RedisServer {
    RedisServer {
        place: match &server.place {
            config::RedisPlace::Servers(addresses) => Place::OneOf(redis_addresses(addresses)),
            config::RedisPlace::Sentinels(sentinels) => Place::ToldBy(Sentinels {
                addresses: redis_addresses(&sentinels.addresses),
                primary: sentinels.master_name.clone(),
                username: sentinels.username.clone(),
                password: sentinels.password.as_ref().map(|password| password.0.clone()),
            }),
            config::RedisPlace::Cluster(addresses) => Place::Cluster(redis_addresses(addresses)),
        },
        username: server.username.clone(),
        password: server.password.as_ref().map(|password| password.0.clone()),
        database: server.database,
        timeout: server.timeout,
        tls: server.tls.as_ref().map(|verification| match verification {
            config::RedisTls::SystemRoots => RedisTls::SystemRoots,
            config::RedisTls::Roots(file) => RedisTls::Roots(file.clone()),
            config::RedisTls::Insecure => RedisTls::Insecure,
        }),
    }
}

fn redis_addresses(addresses: &[config::RedisAddress]) -> Vec<Address> {
    addresses.iter().map(|address| Address { host: address.host.clone(), port: address.port }).collect()
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
        let first = hubs.open(&[hub("a"), hub("b")]).unwrap().hubs;
        let second = hubs.open(&[hub("c"), hub("b")]).unwrap().hubs;
        assert!(Arc::ptr_eq(&first[1], &second[1]) && !Arc::ptr_eq(&first[0], &second[0]));
        hubs.keep_only(&[hub("c"), hub("b")]);
        let third = hubs.open(&[hub("a"), hub("b")]).unwrap().hubs;
        assert!(Arc::ptr_eq(&first[1], &third[1]) && !Arc::ptr_eq(&first[0], &third[0]));
    }
}
