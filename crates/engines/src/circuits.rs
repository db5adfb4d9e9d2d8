//! The circuits of an engine, as its I/O threads and its supervisor share them: what kills engines again and again is
//! refused for a while. Who is refused is [`regent_dispatch::circuits`]' to say.

mod boots;

use crate::plan::PoolPlan;
use regent_config::Circuit;
use regent_dispatch::circuits::{
    BootCircuits, CircuitFigures, CircuitKey, CircuitRules, Circuits, Entry, Refusal, Suspect, Ticket,
};
use regent_dispatch::routes::Route;
use regent_wire::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The circuits of all pools of an engine. While all are closed a request costs one load.
pub struct CircuitBreaker {
    /// `None`: nothing is ever refused.
    circuits: Option<Mutex<State>>,
    /// Whether one of them is not closed.
    is_open: AtomicBool,
    /// Names of the pools, for the log.
    pools: Vec<String>,
}

struct State {
    requests: Circuits,
    boots: BootCircuits,
}

/// A request that was let through an open circuit to see what comes of it. Dropped before it has ended well, it makes room
/// for another.
pub struct Probe {
    breaker: Arc<CircuitBreaker>,
    ticket: Ticket,
    has_ended: AtomicBool,
}

/// Whether a request may go on.
pub(crate) enum Passage {
    Free,
    Probe(Arc<Probe>),
    Refused(Refusal),
}

impl CircuitBreaker {
    pub(crate) fn new(rules: Option<Circuit>, pools: &[PoolPlan]) -> Arc<Self> {
        let circuits = rules.map(of_configuration).map(|rules| {
            Mutex::new(State { requests: Circuits::new(rules), boots: BootCircuits::new(rules) })
        });
        let pools = pools.iter().map(|pool| pool.name.clone()).collect();
        Arc::new(Self { circuits, is_open: AtomicBool::new(false), pools })
    }

    /// Asks for a request that has come. `code` as in its [`Aim`](crate::Aim).
    pub(crate) fn ask(self: &Arc<Self>, route: &Route, code: &[u8]) -> Passage {
        let Some(mut circuits) = self.open_circuits() else { return Passage::Free };
        let now = clock::now();
        if let Some(refusal) = circuits.boots.refuses(route.pool(), now) {
            return Passage::Refused(refusal);
        }
        match circuits.requests.ask(route, code, now) {
            Entry::Pass => Passage::Free,
            Entry::Refuse(refusal) => Passage::Refused(refusal),
            Entry::Probe(ticket) => {
                drop(circuits);
                ticket.circuits().for_each(|circuit| self.log_probe(circuit));
                let breaker = Arc::clone(self);
                Passage::Probe(Arc::new(Probe { breaker, ticket, has_ended: AtomicBool::new(false) }))
            }
        }
    }

    /// Whether a request that waits would be refused by now.
    pub(crate) fn refuses(&self, route: &Route, code: &[u8]) -> Option<Refusal> {
        let (circuits, now) = (self.open_circuits()?, clock::now());
        circuits.boots.refuses(route.pool(), now).or_else(|| circuits.requests.refuses(route, code, now))
    }

    /// An engine has died in which these requests ran. Returns whether a circuit has opened: requests that wait may be of it.
    pub(crate) fn died(&self, running: &[Suspect], killer: Option<usize>) -> bool {
        let Some(circuits) = &self.circuits else { return false };
        let mut circuits = lock(circuits);
        let openings = circuits.requests.died(running, killer, clock::now());
        self.note_openness(&circuits);
        drop(circuits);
        for opening in &openings {
            let (pool, route, script) = self.named(&opening.circuit);
            tracing::error!(
                pool, route, script, pause = ?opening.pause,
                "a circuit is open: its requests have killed the engine, and get 503 until one is let through to see"
            );
        }
        !openings.is_empty()
    }

    /// Those that are not closed.
    pub fn figures(&self) -> Vec<CircuitFigures> {
        let Some(circuits) = self.open_circuits() else { return Vec::new() };
        let now = clock::now();
        let boots: Vec<CircuitFigures> = circuits.boots.figures(now).collect();
        let mut figures = circuits.requests.figures(now);
        // A worker has one script, whose circuit may be open for other reasons too.
        figures.retain(|figures| boots.iter().all(|boot| boot.circuit != figures.circuit));
        figures.extend(boots);
        figures
    }

    fn ended_well(&self, ticket: &Ticket) {
        let Some(mut circuits) = self.open_circuits() else { return };
        let closed = circuits.requests.ended_well(ticket);
        self.note_openness(&circuits);
        drop(circuits);
        for circuit in &closed {
            let (pool, route, script) = self.named(circuit);
            tracing::info!(
                pool,
                route,
                script,
                "a circuit is closed: the request that was let through has ended well"
            );
        }
    }

    fn give_back(&self, ticket: &Ticket) {
        if let Some(mut circuits) = self.open_circuits() {
            circuits.requests.give_back(ticket, clock::now());
        }
    }

    fn log_probe(&self, circuit: &CircuitKey) {
        let (pool, route, script) = self.named(circuit);
        tracing::info!(
            pool,
            route,
            script,
            "a request is let through an open circuit to see what comes of it"
        );
    }

    fn named<'a>(&'a self, circuit: &'a CircuitKey) -> (&'a str, &'a str, String) {
        let pool = self.pools.get(usize::from(circuit.pool)).map_or("", String::as_str);
        (pool, circuit.route.as_deref().unwrap_or_default(), circuit.script_name())
    }

    /// `None`: all are closed.
    fn open_circuits(&self) -> Option<MutexGuard<'_, State>> {
        if self.is_open.load(Ordering::Acquire) { self.circuits.as_ref().map(lock) } else { None }
    }

    fn note_openness(&self, circuits: &State) {
        let are_closed = circuits.requests.are_closed() && circuits.boots.are_closed();
        self.is_open.store(!are_closed, Ordering::Release);
    }
}

impl Probe {
    /// Whether it would tell nothing any more.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.breaker.open_circuits()?.requests.refuses_probe(&self.ticket, clock::now())
    }

    /// Its script has ended, and the engine lives.
    pub(crate) fn ended_well(&self) {
        if !self.has_ended.swap(true, Ordering::Relaxed) {
            self.breaker.ended_well(&self.ticket);
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if !*self.has_ended.get_mut() {
            self.breaker.give_back(&self.ticket);
        }
    }
}

/// A thread that panics while it counts leaves a table that is whole.
fn lock(circuits: &Mutex<State>) -> MutexGuard<'_, State> {
    circuits.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_configuration(circuit: Circuit) -> CircuitRules {
    let Circuit { failures, within, pause, max_pause } = circuit;
    CircuitRules { failures, within, pause, max_pause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_dispatch::routes::Routes;
    use std::time::Duration;

    fn breaker(rules: Option<Circuit>) -> (Arc<CircuitBreaker>, Arc<Route>) {
        let routes = Routes::new(clock::now());
        (CircuitBreaker::new(rules, &[]), routes.get(0, "/bad", clock::now()))
    }

    /// After a pause that is over at once.
    fn opened() -> (Arc<CircuitBreaker>, Arc<Route>) {
        let rules = Circuit { failures: 1, pause: Duration::ZERO, ..Circuit::default() };
        let (breaker, route) = breaker(Some(rules));
        assert!(breaker.died(&[Suspect { route: Arc::clone(&route), code: Box::default() }], Some(0)));
        (breaker, route)
    }

    fn probe(breaker: &Arc<CircuitBreaker>, route: &Route) -> Arc<Probe> {
        match breaker.ask(route, b"") {
            Passage::Probe(probe) => probe,
            Passage::Free | Passage::Refused(_) => panic!("one is to be let through"),
        }
    }

    #[test]
    fn a_probe_that_ends_well_closes_the_circuit() {
        let (breaker, route) = opened();
        assert_eq!(breaker.figures().len(), 1);
        probe(&breaker, &route).ended_well();
        assert!(matches!(breaker.ask(&route, b""), Passage::Free) && breaker.figures().is_empty());
    }

    #[test]
    fn a_probe_of_which_nothing_is_known_makes_room_for_another() {
        let (breaker, route) = opened();
        for _ in 0..3 {
            drop(probe(&breaker, &route));
            assert!(breaker.is_open.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn who_waits_is_refused_when_it_opens() {
        let rules = Circuit { failures: 1, ..Circuit::default() };
        let (breaker, route) = breaker(Some(rules));
        assert_eq!(breaker.refuses(&route, b""), None);
        breaker.died(&[Suspect { route: Arc::clone(&route), code: Box::default() }], Some(0));
        let refusal = breaker.refuses(&route, b"").expect("it is open");
        assert!(refusal.retry_after <= rules.pause);
    }

    #[test]
    fn switched_off_it_refuses_nothing() {
        let (breaker, route) = breaker(None);
        for _ in 0..100 {
            assert!(!breaker.died(&[Suspect { route: Arc::clone(&route), code: Box::default() }], Some(0)));
        }
        assert!(matches!(breaker.ask(&route, b""), Passage::Free));
    }
}
