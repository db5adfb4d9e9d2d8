//! What requests are counted under: server, handler and host.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hosts that no site names get no more labels of their own than this, in the whole life of the server: they are what clients
/// write.
pub const MAX_OBSERVED_HOSTS: usize = 1000;
/// Bytes of a host's name (RFC 1035 section 2.3.4); a longer one is none.
const LONGEST_HOST: usize = 253;
/// All other hosts, as Caddy calls them.
const OTHER: &str = "_other";

/// A server, a handler and, with [`HostLabel::Shown`], a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(u32);

impl ScopeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether series are by host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostLabel {
    Absent,
    Shown,
}

/// Which hosts have series of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts<'a> {
    /// None: there is no label for it.
    Together,
    /// These, in lower case; all others are one.
    Named(&'a [String]),
    /// These, and what clients come up with, up to [`MAX_OBSERVED_HOSTS`].
    All(&'a [String]),
}

/// Under what the requests of a listening address are counted.
pub struct HttpLabels {
    /// Of a host that has no scope of its own.
    others: ScopeId,
    named: HashMap<Box<str>, ScopeId>,
    /// `None`: hosts that are not named have none.
    observed: Option<Place>,
}

/// Server and handler.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    server: Arc<str>,
    handler: &'static str,
}

/// What an id stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Scope {
    pub server: Arc<str>,
    pub handler: &'static str,
    pub host: Option<Arc<str>>,
}

/// All that there ever were: they stay when the configuration changes, as series of Prometheus do.
#[derive(Default)]
pub(crate) struct Scopes {
    known: Mutex<Known>,
    observed: AtomicUsize,
}

#[derive(Default)]
struct Known {
    list: Vec<Scope>,
    ids: HashMap<Scope, ScopeId>,
}

impl Scopes {
    pub fn labels(&self, server: &str, handler: &'static str, hosts: Hosts<'_>) -> HttpLabels {
        let place = Place { server: server.into(), handler };
        let mut known = self.hold();
        let (others, named) = match hosts {
            Hosts::Together => (None, &[][..]),
            Hosts::Named(named) | Hosts::All(named) => (Some(OTHER), named),
        };
        HttpLabels {
            others: known.id(place.scope(others)),
            named: named
                .iter()
                .map(|host| (host.as_str().into(), known.id(place.scope(Some(host)))))
                .collect(),
            observed: matches!(hosts, Hosts::All(_)).then_some(place),
        }
    }

    /// Whether no further host can be observed. It stays so.
    fn are_full(&self) -> bool {
        self.observed.load(Relaxed) >= MAX_OBSERVED_HOSTS
    }

    fn observe(&self, labels: &HttpLabels, place: &Place, host: &str) -> ScopeId {
        let (mut known, scope) = (self.hold(), place.scope(Some(host)));
        if let Some(id) = known.ids.get(&scope) {
            return *id;
        }
        // Changed under the lock alone.
        if self.are_full() {
            return labels.others;
        }
        self.observed.fetch_add(1, Relaxed);
        known.id(scope)
    }

    fn hosts_at(&self, place: &Place) -> HashMap<Box<str>, ScopeId> {
        let known = self.hold();
        let is_there = |scope: &Scope| scope.server == place.server && scope.handler == place.handler;
        let hosts = known.ids.iter().filter(|(scope, _)| is_there(scope));
        hosts.filter_map(|(scope, id)| Some((scope.host.as_deref()?.into(), *id))).collect()
    }

    pub fn all(&self) -> Vec<Scope> {
        self.hold().list.clone()
    }

    fn hold(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn id(&mut self, scope: Scope) -> ScopeId {
        if let Some(id) = self.ids.get(&scope) {
            return *id;
        }
        let id = ScopeId(
            u32::try_from(self.list.len()).expect("invariant: names of four billion scopes need more memory"),
        );
        self.list.push(scope.clone());
        self.ids.insert(scope, id);
        id
    }
}

impl Place {
    fn scope(&self, host: Option<&str>) -> Scope {
        Scope { server: Arc::clone(&self.server), handler: self.handler, host: host.map(Into::into) }
    }
}

/// Scopes of hosts that a thread has seen, by the scope of all other hosts of their address.
#[derive(Default)]
pub(super) struct SeenHosts(HashMap<ScopeId, Seen>);

#[derive(Default)]
struct Seen {
    hosts: HashMap<Box<str>, ScopeId>,
    /// No other host gets a scope any more.
    is_complete: bool,
}

impl SeenHosts {
    /// Locks the first time that a thread sees a host, as long as there is room for it, and allocates then.
    pub fn scope(&mut self, scopes: &Scopes, labels: &HttpLabels, host: &str) -> ScopeId {
        if let Some(named) = labels.named.get(host) {
            return *named;
        }
        let Some(place) = &labels.observed else { return labels.others };
        if host.is_empty() || host.len() > LONGEST_HOST {
            return labels.others;
        }
        let seen = self.0.entry(labels.others).or_default();
        if !seen.is_complete && scopes.are_full() {
            *seen = Seen { hosts: scopes.hosts_at(place), is_complete: true };
        }
        if let Some(scope) = seen.hosts.get(host) {
            return *scope;
        }
        if seen.is_complete {
            return labels.others;
        }
        let scope = scopes.observe(labels, place, host);
        if scope != labels.others {
            seen.hosts.insert(host.into(), scope);
        }
        scope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hosts: &[&str]) -> Vec<String> {
        hosts.iter().map(|host| (*host).to_owned()).collect()
    }

    fn host(scopes: &Scopes, id: ScopeId) -> Option<String> {
        scopes.all()[id.index()].host.as_deref().map(str::to_owned)
    }

    #[test]
    fn without_the_label_all_hosts_are_one() {
        let (scopes, mut seen) = (Scopes::default(), SeenHosts::default());
        let labels = scopes.labels("srv0", "subroute", Hosts::Together);
        let found = seen.scope(&scopes, &labels, "a.test");
        assert_eq!(found, seen.scope(&scopes, &labels, "b.test"));
        assert_eq!(host(&scopes, found), None);
    }

    #[test]
    fn hosts_of_no_site_are_one() {
        let (scopes, mut seen) = (Scopes::default(), SeenHosts::default());
        let labels = scopes.labels("srv0", "subroute", Hosts::Named(&names(&["a.test"])));
        let mut found = |name| host(&scopes, seen.scope(&scopes, &labels, name));
        assert_eq!(found("a.test").as_deref(), Some("a.test"));
        assert_eq!(found("b.test").as_deref(), Some("_other"));
        assert_eq!(found("").as_deref(), Some("_other"));
    }

    #[test]
    fn what_clients_come_up_with_is_bounded_over_all_addresses_and_threads() {
        let scopes = Scopes::default();
        let first = scopes.labels("srv0", "subroute", Hosts::All(&names(&["a.test"])));
        let second = scopes.labels("srv1", "subroute", Hosts::All(&[]));
        let mut threads = [SeenHosts::default(), SeenHosts::default()];
        for number in 0..MAX_OBSERVED_HOSTS {
            let name = format!("{number}.test");
            let scope = threads[0].scope(&scopes, &first, &name);
            assert_eq!(host(&scopes, scope), Some(name.clone()));
            assert_eq!(threads[1].scope(&scopes, &first, &name), scope);
        }
        let beyond = threads[0].scope(&scopes, &second, "more.test");
        assert_eq!(host(&scopes, beyond).as_deref(), Some("_other"));
        assert_eq!(host(&scopes, threads[0].scope(&scopes, &first, "7.test")).as_deref(), Some("7.test"));
        assert_eq!(scopes.all().len(), MAX_OBSERVED_HOSTS + 3);
    }

    #[test]
    fn a_name_that_is_too_long_is_none() {
        let (scopes, mut seen) = (Scopes::default(), SeenHosts::default());
        let labels = scopes.labels("srv0", "subroute", Hosts::All(&[]));
        let scope = seen.scope(&scopes, &labels, &"x".repeat(254));
        assert_eq!(host(&scopes, scope).as_deref(), Some("_other"));
    }

    #[test]
    fn a_scope_stays_the_same_in_the_next_configuration() {
        let scopes = Scopes::default();
        let first = scopes.labels("srv0", "subroute", Hosts::Together);
        scopes.labels("srv1", "subroute", Hosts::Together);
        assert_eq!(scopes.labels("srv0", "subroute", Hosts::Together).others, first.others);
    }
}
