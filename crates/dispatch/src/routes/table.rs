//! All routes of the server.

use super::name::OTHER;
use super::{Origin, Route, RouteName};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Names that clients can make, over all pools. Each costs about 300 bytes here, and labels in the metrics.
pub const MAX_ROUTES: usize = 512;
/// Scripts whose new routes have a history of their own; a site of more has them in one.
const MAX_SCRIPTS: usize = 256;
/// Looking for such names takes a while; a flood of new names must not make it the server's work.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// All routes of the server, shared by its I/O threads. See [`RouteCache`](super::RouteCache) for fast look-ups.
#[derive(Debug)]
pub struct Routes {
    epoch: Duration,
    table: RwLock<Table>,
}

#[derive(Debug)]
struct Table {
    pools: Vec<HashMap<RouteName, Arc<Route>>>,
    /// Of those, names that come from paths.
    from_paths: usize,
    /// By pool and script.
    shared: HashMap<(u16, Box<[u8]>), Arc<Route>>,
    swept: Duration,
}

impl Routes {
    /// `now`: what times of the routes count from.
    pub fn new(now: Duration) -> Self {
        let table = Table { pools: Vec::new(), from_paths: 0, shared: HashMap::new(), swept: now };
        Self { epoch: now, table: RwLock::new(table) }
    }

    /// The route of a request. `path` as in the request line, percent-encoded.
    pub fn get(&self, pool: u16, path: &str, now: Duration) -> Arc<Route> {
        let name = RouteName::of_path(path);
        let known = self.read().settled(pool, name.as_str(), now);
        let route = known.unwrap_or_else(|| self.write().find_or_add(pool, name, self.epoch, now));
        route.see(now);
        route
    }

    /// The route of a lane that the configuration names; such routes always have room.
    pub fn lane(&self, pool: u16, name: &str) -> Arc<Route> {
        let name = RouteName::of_lane(name);
        // Known from its second request on: those must not take turns at the table.
        let known = self.read().find(pool, name.as_str());
        known.unwrap_or_else(|| self.write().given(pool, name, Origin::Configuration, self.epoch))
    }

    /// What the new routes of a script have in common, and what its requests count as when the table is full. `script`:
    /// what tells the scripts of a pool apart; the server's choice, not the client's.
    pub fn shared(&self, pool: u16, script: &[u8], now: Duration) -> Arc<Route> {
        let key = (pool, Box::from(script));
        let known = self.read().shared.get(&key).cloned();
        let route = known.unwrap_or_else(|| self.write().find_or_share(key, self.epoch, now));
        route.see(now);
        route
    }

    /// Every route there is now, in no particular order.
    pub fn all(&self) -> Vec<Arc<Route>> {
        let table = self.read();
        table.pools.iter().flat_map(HashMap::values).chain(table.shared.values()).cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// What can be said without a change of the table. A flood of new names gets its `other` here, side by side.
    fn settled(&self, pool: u16, name: &str, now: Duration) -> Option<Arc<Route>> {
        let overflows = || if self.is_full() && !self.may_sweep(now) { self.find(pool, OTHER) } else { None };
        self.find(pool, name).or_else(overflows)
    }

    fn find(&self, pool: u16, name: &str) -> Option<Arc<Route>> {
        self.pools.get(usize::from(pool))?.get(name).cloned()
    }

    fn find_or_add(&mut self, pool: u16, name: RouteName, epoch: Duration, now: Duration) -> Arc<Route> {
        // Another thread may have been faster.
        if let Some(route) = self.find(pool, name.as_str()) {
            return route;
        }
        if self.is_full() && self.may_sweep(now) {
            self.make_room(now);
        }
        if self.is_full() {
            return self.given(pool, RouteName::other(), Origin::Overflow, epoch);
        }
        self.from_paths += 1;
        self.add(Route::new(name, pool, Origin::Path, epoch))
    }

    fn find_or_share(&mut self, key: (u16, Box<[u8]>), epoch: Duration, now: Duration) -> Arc<Route> {
        let pool = key.0;
        if self.shared.len() >= MAX_SCRIPTS && self.may_sweep(now) {
            self.make_room(now);
        }
        if self.shared.len() >= MAX_SCRIPTS && !self.shared.contains_key(&key) {
            return self.given(pool, RouteName::other(), Origin::Overflow, epoch);
        }
        let new = || Arc::new(Route::new(RouteName::other(), pool, Origin::Script, epoch));
        // Another thread may have been faster.
        Arc::clone(self.shared.entry(key).or_insert_with(new))
    }

    fn given(&mut self, pool: u16, name: RouteName, origin: Origin, epoch: Duration) -> Arc<Route> {
        self.find(pool, name.as_str()).unwrap_or_else(|| self.add(Route::new(name, pool, origin, epoch)))
    }

    fn add(&mut self, route: Route) -> Arc<Route> {
        let pool = usize::from(route.pool);
        if self.pools.len() <= pool {
            self.pools.resize_with(pool + 1, HashMap::new);
        }
        let route = Arc::new(route);
        self.pools[pool].insert(route.name.clone(), Arc::clone(&route));
        route
    }

    fn is_full(&self) -> bool {
        self.from_paths >= MAX_ROUTES
    }

    fn may_sweep(&self, now: Duration) -> bool {
        now.saturating_sub(self.swept) >= SWEEP_INTERVAL
    }

    fn make_room(&mut self, now: Duration) {
        self.swept = now;
        for routes in &mut self.pools {
            let before = routes.len();
            routes.retain(|_, route| keep(route, now));
            self.from_paths -= before - routes.len();
        }
        self.shared.retain(|_, route| keep(route, now));
    }
}

/// Threads that still hold a route that is not kept see that it is retired, and ask again.
fn keep(route: &Route, now: Duration) -> bool {
    let keep = !route.may_make_room(now);
    if !keep {
        route.retire();
    }
    keep
}

#[cfg(test)]
mod tests {
    use super::super::{UNSEEN, UNSEEN_AGAIN};
    use super::*;

    const START: Duration = Duration::from_secs(1_000);
    const EPOCH: Duration = Duration::from_secs(990);

    /// With routes that return.
    fn fill(routes: &Routes, now: Duration) {
        for before in [2, 1, 0] {
            for number in 0..MAX_ROUTES {
                routes.get(0, &word(number), now - Duration::from_secs(before));
            }
        }
    }

    /// A path that is nothing but letters.
    fn word(number: usize) -> String {
        let digits = number.to_string();
        digits
            .bytes()
            .fold("/w".to_owned(), |word, digit| word + &char::from(digit - b'0' + b'a').to_string())
    }

    #[test]
    fn a_route_is_one_and_the_same_for_all_its_paths() {
        let now = START;
        let routes = Routes::new(EPOCH);
        let first = routes.get(0, "/users/1", now);
        assert!(Arc::ptr_eq(&first, &routes.get(0, "/users/2?x=1", now)));
        assert_eq!((first.name(), first.pool()), ("/users/*", 0));
        assert!(!Arc::ptr_eq(&first, &routes.get(1, "/users/1", now)), "pools have routes of their own");
        assert_eq!(routes.all().len(), 2);
    }

    #[test]
    fn what_is_new_in_a_full_table_is_other() {
        let now = START;
        let routes = Routes::new(EPOCH);
        fill(&routes, now);
        let other = routes.get(0, "/new", now);
        assert_eq!(other.name(), "other");
        assert!(Arc::ptr_eq(&other, &routes.get(0, "/newer", now)));
        assert_eq!(routes.get(3, "/new", now).pool(), 3);
        assert_eq!(routes.get(0, &word(7), now).name(), word(7));
        assert_eq!(routes.lane(0, "reports").name(), "reports");
        assert_eq!(routes.all().len(), MAX_ROUTES + 3);
    }

    #[test]
    fn a_script_has_one_shared_route_however_many_paths_lead_to_it() {
        let now = START;
        let routes = Routes::new(now);
        let shared = |pool, script: &str| routes.shared(pool, script.as_bytes(), now);
        assert!(Arc::ptr_eq(&shared(0, "/a/index.php"), &shared(0, "/a/index.php")));
        assert!(!Arc::ptr_eq(&shared(0, "/a/index.php"), &shared(0, "/b/index.php")));
        assert!(!Arc::ptr_eq(&shared(0, "/a/index.php"), &shared(1, "/a/index.php")));
        assert_eq!((shared(1, "/a/index.php").name(), shared(1, "/a/index.php").pool()), ("other", 1));
    }

    #[test]
    fn scripts_are_bounded_too_and_make_room() {
        let now = START;
        let routes = Routes::new(now);
        let script = |number: usize, now| routes.shared(0, number.to_string().as_bytes(), now);
        let first = script(0, now);
        (1..MAX_SCRIPTS).for_each(|number| drop(script(number, now)));
        assert!(Arc::ptr_eq(&script(MAX_SCRIPTS, now), &script(MAX_SCRIPTS + 1, now)));
        assert!(Arc::ptr_eq(&script(0, now), &first));
        let later = now + UNSEEN + SEEN_SLACK;
        assert!(!Arc::ptr_eq(&script(MAX_SCRIPTS, later), &script(MAX_SCRIPTS + 1, later)));
        assert!(first.is_retired());
    }

    #[test]
    fn names_that_nobody_asks_for_make_room() {
        let now = START;
        let routes = Routes::new(EPOCH);
        fill(&routes, now);
        let lane = routes.lane(0, "reports");
        let used = routes.get(0, &word(1), now);
        used.let_in();
        let later = now + UNSEEN + SEEN_SLACK;
        let recent = routes.get(0, &word(2), later);
        let stale = routes.get(0, &word(3), now);
        assert_eq!(routes.get(0, "/new", later).name(), "/new");
        assert!(stale.is_retired());
        assert!(!used.is_retired() && !recent.is_retired() && !lane.is_retired());
        assert_eq!(routes.all().len(), 4);
    }

    const SEEN_SLACK: Duration = Duration::from_millis(200);

    #[test]
    fn a_flood_of_names_sweeps_once_a_second() {
        let now = START;
        let routes = Routes::new(EPOCH);
        fill(&routes, now);
        let later = now + Duration::from_millis(59_900);
        assert_eq!(routes.get(0, "/new", later).name(), "other", "nothing was unseen for a minute yet");
        let soon = later + Duration::from_millis(900);
        assert_eq!(routes.get(0, "/new", soon).name(), "other", "the last sweep was just now");
        assert_eq!(routes.get(0, "/new", later + SWEEP_INTERVAL).name(), "/new");
    }

    #[test]
    fn a_route_returns_that_is_asked_for_again_and_again() {
        let routes = Routes::new(START);
        let later = |ms| START + Duration::from_millis(ms);
        let route = routes.get(0, "/a", later(1_000));
        (1_000..1_090).for_each(|ms| route.see(later(ms)));
        assert!(!route.returns(), "it was one moment");
        [1_200, 1_400, 2_900].into_iter().for_each(|ms| route.see(later(ms)));
        assert!(!route.returns(), "it was not long enough");
        route.see(later(3_000));
        assert!(route.returns());
        assert!(routes.lane(0, "reports").returns(), "the configuration names it");
    }

    #[test]
    fn what_is_invented_does_not_keep_a_route_out_that_returns() {
        let routes = Routes::new(START);
        for number in 0..10_000 {
            routes.get(0, &word(number), START + Duration::from_micros(number as u64));
        }
        let later = START + UNSEEN_AGAIN + Duration::from_millis(200);
        assert_eq!(routes.get(0, "/real", later).name(), "/real");
        assert_eq!(routes.all().len(), 2, "it and other");
    }

    #[test]
    fn many_threads_make_one_route() {
        let now = START;
        let routes = Routes::new(EPOCH);
        let found: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| routes.get(0, "/a", now))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|route| Arc::ptr_eq(route, &found[0])));
        assert_eq!(routes.all().len(), 1);
    }
}
