//! Workers whose scripts kill their engine while they boot.

use super::{CircuitBreaker, State, lock};
use regent_dispatch::circuits::{BootBlame, Booting, CircuitKey, Opening, Phase};
use regent_wire::clock;

impl CircuitBreaker {
    /// What the circuit of a worker's boot does; `None`: it is booted as any other.
    pub(crate) fn boot_phase(&self, pool: usize) -> Option<Phase> {
        self.open_circuits()?.boots.phase(u16::try_from(pool).ok()?)
    }

    /// An engine has died while these workers booted. `served`: as in [`Self::note_served`]. Returns whether a circuit has opened:
    /// requests that wait may be of it.
    pub(crate) fn died_at_boot(
        &self,
        booting: &[Booting],
        blame: BootBlame,
        served: impl FnOnce() -> Vec<u16>,
    ) -> bool {
        let openings = self.change(|circuits| {
            let openings = circuits.boots.died(booting, blame, clock::now());
            if !openings.is_empty() {
                circuits.boots.note_served(served());
            }
            openings
        });
        openings.iter().flatten().for_each(|opening| self.log_boot(opening));
        openings.is_some_and(|openings| !openings.is_empty())
    }

    /// A worker that is to be booted to see what comes of it.
    pub(crate) fn next_trial(&self) -> Option<CircuitKey> {
        let trial = self.open_circuits()?.boots.next_trial(clock::now())?;
        let (pool, _, script) = self.named(&trial);
        tracing::info!(pool, script, "a worker whose circuit is open is booted to see what comes of it");
        Some(trial)
    }

    /// These pools have threads that take requests. Returns whether some that wait may be refused by that.
    pub(crate) fn note_served(&self, served: impl FnOnce() -> Vec<u16>) -> bool {
        if self.open_circuits().is_none_or(|circuits| circuits.boots.are_closed()) {
            return false;
        }
        self.change(|circuits| circuits.boots.note_served(served())).unwrap_or(false)
    }

    /// Nothing is known of what was booted to see: its engine has died of something else.
    pub(crate) fn give_back_trial(&self) {
        self.change(|circuits| circuits.boots.give_back_trial(clock::now()));
    }

    /// What was booted to see could not serve.
    pub(crate) fn trial_failed(&self) {
        let opening = self.change(|circuits| circuits.boots.trial_failed(clock::now())).flatten();
        opening.iter().for_each(|opening| self.log_boot(opening));
    }

    /// The threads of this worker have come to the end of their boot.
    pub(crate) fn booted(&self, pool: usize) {
        let Ok(pool) = u16::try_from(pool) else { return };
        let closed = self.change(|circuits| circuits.boots.booted(pool)).flatten();
        if let Some(circuit) = &closed {
            let (pool, _, script) = self.named(circuit);
            tracing::info!(pool, script, "a circuit is closed: the worker has booted");
        }
    }

    /// Other code may be there: all workers that are refused may be tried.
    pub(crate) fn end_boot_pauses(&self) {
        self.change(|circuits| circuits.boots.end_pauses(clock::now()));
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        let mut circuits = lock(self.circuits.as_ref()?);
        let result = change(&mut circuits);
        self.note_openness(&circuits);
        Some(result)
    }

    fn log_boot(&self, opening: &Opening) {
        let (pool, _, script) = self.named(&opening.circuit);
        tracing::error!(
            pool, script, pause = ?opening.pause,
            "a circuit is open: this worker kills the engine while it boots, is not booted until its pause is over, and its \
             requests get 503"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::Circuit;
    use regent_dispatch::routes::Routes;

    #[test]
    fn a_worker_that_kills_at_its_boot_is_refused_until_it_has_booted() {
        let rules = Circuit { failures: 1, pause: std::time::Duration::ZERO, ..Circuit::default() };
        let breaker = CircuitBreaker::new(Some(rules), &[]);
        let routes = Routes::new(clock::now());
        let (worker, other) = (routes.get(1, "/", clock::now()), routes.get(0, "/", clock::now()));
        let booting = [Booting { pool: 1, script: (*b"/w.php").into() }];
        assert!(breaker.died_at_boot(&booting, BootBlame::Known, Vec::new));
        assert_eq!((breaker.boot_phase(1), breaker.boot_phase(0)), (Some(Phase::Open), None));
        let is_refused = |route| breaker.refuses(route, b"/w.php").is_some();
        assert!(is_refused(&worker) && !is_refused(&other));
        assert_eq!(breaker.next_trial().map(|trial| trial.pool), Some(1));
        assert!(is_refused(&worker), "no request is a trial");
        breaker.booted(1);
        assert!(!is_refused(&worker) && breaker.figures().is_empty());
    }
}
