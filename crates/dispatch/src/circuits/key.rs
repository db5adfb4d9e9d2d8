//! What a circuit is of.

use crate::routes::Route;

/// A circuit's name among those of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CircuitKey {
    pub pool: u16,
    /// The name of a route, or of a lane of the configuration; `None`: whatever the route.
    pub route: Option<Box<str>>,
    /// What runs, whatever the path: a script's file; empty where a pool runs one thing only. Routes of one name may be those
    /// of several sites.
    pub script: Box<[u8]>,
}

impl CircuitKey {
    /// For logs and labels; no two scripts have the same.
    pub fn script_name(&self) -> String {
        match std::str::from_utf8(&self.script) {
            Ok(name) => name.to_owned(),
            Err(_) => self.script.escape_ascii().to_string(),
        }
    }
}

/// All circuits that a request has to pass.
pub(super) fn of_request(route: &Route, code: &[u8]) -> impl Iterator<Item = CircuitKey> + use<> {
    of_route(route, code).into_iter().chain([of_script(route.pool(), code)])
}

/// `None`: its requests are those of many paths, which have only their script in common.
pub(super) fn of_route(route: &Route, code: &[u8]) -> Option<CircuitKey> {
    let name = || Some(route.name().into());
    route.has_own_name().then(|| CircuitKey { route: name(), ..of_script(route.pool(), code) })
}

pub(super) fn of_script(pool: u16, code: &[u8]) -> CircuitKey {
    CircuitKey { pool, route: None, script: code.into() }
}
