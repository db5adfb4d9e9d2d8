//! The names of pools and routes, bounded in number and length, whatever a configuration or a client comes up with.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Further pools are counted together, as `other`.
pub const MAX_POOLS: usize = 128;
/// Routes that have figures of their own, of all pools. Further ones are counted as `other` of their pool. Each is about
/// 14 KiB of what [`render`](crate::render) writes.
pub const MAX_ROUTES: usize = 256;
/// Of them, so many are named when they are first asked for, so that the first requests to a server are seen by name.
const NAMED_AT_ONCE: usize = 8;
/// The routes with a name, and `other` of each pool.
pub(crate) const ROUTE_SLOTS: usize = MAX_ROUTES + MAX_POOLS;
/// What has no figures of its own.
pub(crate) const OTHER: &str = "other";

/// In bytes. Longer names end in an ellipsis; if they agree up to there they are one.
const LONGEST_NAME: usize = 120;

/// A pool of a [`Registry`](crate::Registry); of no meaning to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolId(u16);

impl PoolId {
    /// The route of requests that have none.
    pub fn other(self) -> RouteId {
        RouteId { pool: self, slot: MAX_ROUTES as u16 + self.0 }
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A route of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RouteId {
    pool: PoolId,
    slot: u16,
}

impl RouteId {
    pub fn pool(self) -> PoolId {
        self.pool
    }

    /// Whether it is what has no figures of its own.
    pub fn is_other(self) -> bool {
        self.slot() >= MAX_ROUTES
    }

    /// Less than [`ROUTE_SLOTS`].
    pub(crate) fn slot(self) -> usize {
        usize::from(self.slot)
    }
}

/// What is known of a route that asks for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A client may have made it up.
    New,
    /// It was asked for again and again.
    Returning,
}

/// Whom a pool serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// Classic requests to PHP.
    Classic,
    /// Requests to a worker, whose script this is.
    Worker(PathBuf),
    /// Requests to a native service.
    Service,
}

impl Serves {
    pub(crate) fn worker(&self) -> Option<&Path> {
        match self {
            Self::Worker(file) => Some(file),
            Self::Classic | Self::Service => None,
        }
    }
}

/// Names are added and never removed, so that a worker that comes back goes on with its figures; those of no configuration are not
/// shown. So what anybody makes up must not have one.
#[derive(Default)]
pub(crate) struct Names {
    pools: Vec<Pool>,
    ids: HashMap<(PoolId, String), RouteId>,
}

#[derive(Clone)]
pub(crate) struct Pool {
    pub id: PoolId,
    pub name: String,
    pub serves: Serves,
    /// In the order in which they came; `other` is the first.
    pub routes: Vec<(RouteId, String)>,
}

impl Names {
    pub fn pool(&mut self, name: &str, serves: Serves) -> PoolId {
        let name = clipped(name);
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.name == name) {
            pool.serves = serves;
            return pool.id;
        }
        if self.pools.len() >= MAX_POOLS - 1 && name != OTHER {
            return self.pool(OTHER, Serves::Classic);
        }
        let id = PoolId(self.pools.len() as u16);
        let routes = vec![(id.other(), OTHER.to_owned())];
        self.pools.push(Pool { id, name, serves, routes });
        id
    }

    /// `other` for a route that has no name, be it for now.
    pub fn route(&mut self, pool: PoolId, name: &str, standing: Standing) -> RouteId {
        let key = (pool, clipped(name));
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let names = match standing {
            Standing::New => NAMED_AT_ONCE,
            Standing::Returning => MAX_ROUTES,
        };
        if self.ids.len() >= names || key.1 == OTHER {
            return pool.other();
        }
        let id = RouteId { pool, slot: self.ids.len() as u16 };
        self.pools[pool.index()].routes.push((id, key.1.clone()));
        self.ids.insert(key, id);
        id
    }

    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }
}

fn clipped(name: &str) -> String {
    if name.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    const ELLIPSIS: char = '…';
    let mut end = LONGEST_NAME - ELLIPSIS.len_utf8();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use Standing::{New, Returning};
    use std::collections::HashSet;

    #[test]
    fn a_name_has_one_id() {
        let mut names = Names::default();
        let (classic, worker) = (
            names.pool("classic", Serves::Classic),
            names.pool("api", Serves::Worker("/app/api.php".into())),
        );
        assert_eq!(names.pool("classic", Serves::Classic), classic);
        assert_ne!(names.route(classic, "/", New), names.route(worker, "/", New));
        assert_eq!(names.route(worker, "/", New), names.route(worker, "/", Returning));
    }

    #[test]
    fn routes_beyond_the_bound_are_others_of_their_pool() {
        let mut names = Names::default();
        let (a, b) = (names.pool("a", Serves::Classic), names.pool("b", Serves::Service));
        let routes: HashSet<_> =
            (0..MAX_ROUTES).map(|n| names.route(a, &n.to_string(), Returning).slot()).collect();
        assert_eq!(routes.len(), MAX_ROUTES);
        assert_eq!(
            (names.route(a, "more", Returning), names.route(b, "more", Returning)),
            (a.other(), b.other())
        );
        assert_ne!(a.other(), b.other());
        assert_eq!(names.route(a, "7", New).pool(), a);
    }

    #[test]
    fn a_hundred_thousand_invented_paths_have_no_names() {
        let mut names = Names::default();
        let pool = names.pool("classic", Serves::Classic);
        let first = names.route(pool, "/", New);
        for path in 0..100_000 {
            names.route(pool, &format!("/w{path}"), New);
        }
        assert_eq!(names.pools()[0].routes.len(), NAMED_AT_ONCE + 1);
        assert!(names.route(pool, "/real", New).is_other());
        let real = names.route(pool, "/real", Returning);
        assert!(!real.is_other());
        assert_eq!(
            (names.route(pool, "/real", New), names.route(pool, "/", New)),
            (real, first),
            "they stay"
        );
    }

    #[test]
    fn pools_beyond_the_bound_are_one() {
        let mut names = Names::default();
        let pools: Vec<_> =
            (0..MAX_POOLS + 10).map(|n| names.pool(&n.to_string(), Serves::Service)).collect();
        assert_eq!(pools.iter().collect::<HashSet<_>>().len(), MAX_POOLS);
        assert_eq!(pools[MAX_POOLS - 1], pools[MAX_POOLS + 9]);
        assert!(pools[MAX_POOLS + 9].other().slot() < ROUTE_SLOTS);
    }

    #[test]
    fn other_is_other() {
        let mut names = Names::default();
        let pool = names.pool("classic", Serves::Classic);
        assert_eq!(names.route(pool, OTHER, Returning), pool.other());
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let long = "ü".repeat(500);
        let name = clipped(&long);
        assert!(name.len() <= LONGEST_NAME && name.ends_with("ü…"));
        assert_eq!(clipped(&long[..LONGEST_NAME]), &long[..LONGEST_NAME]);
    }
}
