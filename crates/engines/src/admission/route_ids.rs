//! What routes are called in the metrics.

use regent_dispatch::routes::Route;
use regent_metrics::{PoolId, Registry, RouteId, Standing};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Routes whose ids one I/O thread remembers; beyond that it begins anew.
const REMEMBERED: usize = 2048;

/// The ids that one I/O thread knows, by the address of the route, which the value keeps alive.
#[derive(Default)]
pub struct RouteIds(FxHashMap<*const Route, Known>);

struct Known {
    route: Arc<Route>,
    id: RouteId,
    /// What the registry was told of the route.
    standing: Standing,
}

impl RouteIds {
    /// A route that has no name yet gets one once it returns, if there is room.
    pub fn get(&mut self, route: &Arc<Route>, registry: &Registry, pool: impl Fn() -> PoolId) -> RouteId {
        match self.0.get(&Arc::as_ptr(route)) {
            Some(known) if known.is_final() => known.id,
            _ => self.ask(route, registry, pool()),
        }
    }

    #[cold]
    fn ask(&mut self, route: &Arc<Route>, registry: &Registry, pool: PoolId) -> RouteId {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        let standing = if route.returns() { Standing::Returning } else { Standing::New };
        let id = registry.route(pool, route.name(), standing);
        self.0.insert(Arc::as_ptr(route), Known { route: Arc::clone(route), id, standing });
        id
    }
}

impl Known {
    /// Whether the registry would say nothing else now.
    fn is_final(&self) -> bool {
        !self.id.is_other() || self.standing == Standing::Returning || !self.route.returns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_dispatch::routes::Routes;
    use regent_metrics::Serves;
    use std::time::{Duration, Instant};

    #[test]
    fn a_route_is_other_until_it_returns() {
        let registry = Registry::new(Instant::now());
        let pool = registry.pool("classic", Serves::Classic);
        let start = Duration::from_secs(1_000);
        let routes = Routes::new(start);
        let mut ids = RouteIds::default();
        let mut id = |path: &str, now| ids.get(&routes.get(0, path, now), &registry, || pool);
        for letter in 'a'..='z' {
            id(&format!("/invented-{letter}"), start + Duration::from_secs(1));
        }
        assert_eq!(id("/real", start + Duration::from_secs(1)), pool.other());
        assert_eq!(id("/real", start + Duration::from_secs(2)), pool.other());
        let named = id("/real", start + Duration::from_secs(3));
        assert!(!named.is_other());
        assert_eq!(id("/real", start + Duration::from_secs(4)), named);
    }
}
