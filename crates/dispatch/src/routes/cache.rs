//! What one I/O thread remembers of the routes of paths.

use super::{Route, Routes};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Paths in a generation. Two generations are kept for each pool.
const GENERATION: usize = 512;
/// Longer paths are looked up each time, so that the cache's memory is bounded: 256 KiB of paths for each pool.
const MAX_PATH: usize = 256;

/// One I/O thread's look-ups: a known path costs one hash and no allocation.
///
/// Paths are kept in two generations. New ones go into the young; when that is full, it becomes the old one and what
/// the old one held is forgotten. A path that is found in the old moves to the young. So a flood of paths that never
/// come again costs little memory and does not push out the paths that do come.
#[derive(Debug)]
pub struct RouteCache {
    routes: Arc<Routes>,
    pools: Vec<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Box<str>, Arc<Route>, RandomState>,
    old: HashMap<Box<str>, Arc<Route>, RandomState>,
}

impl RouteCache {
    pub fn new(routes: Arc<Routes>) -> Self {
        Self { routes, pools: Vec::new() }
    }

    /// The route of a request. `path` as in the request line, percent-encoded.
    pub fn get(&mut self, pool: u16, path: &str, now: Duration) -> Arc<Route> {
        let index = usize::from(pool);
        if self.pools.len() <= index {
            self.pools.resize_with(index + 1, Generations::default);
        }
        let generations = &mut self.pools[index];
        if let Some(route) = generations.find(path) {
            route.see(now);
            return route;
        }
        let route = self.routes.get(pool, path, now);
        generations.keep(path, &route);
        route
    }
}

impl Generations {
    fn find(&mut self, path: &str) -> Option<Arc<Route>> {
        if let Some(route) = self.young.get(path) {
            return (!route.is_retired()).then(|| Arc::clone(route));
        }
        let (path, route) = self.old.remove_entry(path)?;
        let found = (!route.is_retired()).then(|| Arc::clone(&route));
        self.insert(path, route);
        found
    }

    /// What fell to the pool's overflow is not kept: there may be room for it later.
    fn keep(&mut self, path: &str, route: &Arc<Route>) {
        if path.len() <= MAX_PATH && !route.is_overflow() {
            self.insert(path.into(), Arc::clone(route));
        }
    }

    fn insert(&mut self, path: Box<str>, route: Arc<Route>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(path, route);
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_ROUTES;
    use super::*;
    use std::time::Duration;

    const START: Duration = Duration::from_secs(1_000);

    fn cached(now: Duration) -> (Arc<Routes>, RouteCache) {
        let routes = Arc::new(Routes::new(now));
        (Arc::clone(&routes), RouteCache::new(routes))
    }

    #[test]
    fn answers_as_the_table_does() {
        let now = START;
        let (routes, mut cache) = cached(now);
        for _ in 0..2 {
            assert!(Arc::ptr_eq(&cache.get(1, "/users/7", now), &routes.get(1, "/users/8", now)));
            assert_eq!(cache.get(0, "/users/7", now).pool(), 0);
        }
    }

    #[test]
    fn a_flood_of_paths_stays_bounded_and_leaves_the_busy_ones() {
        let now = START;
        let (_, mut cache) = cached(now);
        for number in 0..100_000 {
            cache.get(0, &format!("/users/{number}"), now);
            if number % 100 == 0 {
                cache.get(0, "/busy", now);
                assert!(cache.pools[0].young.contains_key("/busy"));
            }
        }
        let Generations { young, old } = &cache.pools[0];
        assert!(young.len() <= GENERATION && old.len() <= GENERATION);
    }

    #[test]
    fn long_paths_are_not_kept() {
        let now = START;
        let (_, mut cache) = cached(now);
        let path = format!("/{}", "x".repeat(10_000));
        assert_eq!(cache.get(0, &path, now).name(), "/*");
        assert!(cache.pools[0].young.is_empty());
    }

    #[test]
    fn a_route_that_made_room_is_asked_for_again() {
        let now = START;
        let (routes, mut cache) = cached(now);
        let first = cache.get(0, "/a", now);
        for number in 0..MAX_ROUTES as u32 {
            let letters =
                format!("{number:05}").bytes().map(|digit| char::from(digit + 49)).collect::<String>();
            routes.get(0, &letters, now);
        }
        let later = now + Duration::from_secs(61);
        routes.get(0, "/one-more", later);
        assert!(first.is_retired());
        let second = cache.get(0, "/a", later);
        assert!(!second.is_retired() && Arc::ptr_eq(&second, &routes.get(0, "/a", later)));
        assert!(Arc::ptr_eq(&second, &cache.get(0, "/a", later)));
    }

    #[test]
    fn a_route_that_made_room_is_not_found_in_the_old_generation() {
        let now = START;
        let (_, mut cache) = cached(now);
        let first = cache.get(0, "/a", now);
        (0..GENERATION).for_each(|number| drop(cache.get(0, &format!("/users/{number}"), now)));
        assert!(cache.pools[0].old.contains_key("/a"));
        first.retire();
        assert!(cache.pools[0].find("/a").is_none());
    }

    #[test]
    fn overflow_is_not_remembered() {
        let now = START;
        let (routes, mut cache) = cached(now);
        for number in 0..MAX_ROUTES as u32 {
            let letters =
                format!("{number:05}").bytes().map(|digit| char::from(digit + 49)).collect::<String>();
            routes.get(0, &letters, now);
        }
        assert_eq!(cache.get(0, "/late", now).name(), "other");
        let later = now + Duration::from_secs(61);
        assert_eq!(cache.get(0, "/late", later).name(), "/late");
    }
}
