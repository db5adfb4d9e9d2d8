//! Workers whose scripts kill their engine while they boot. No request runs then, so no circuit of requests knows of it, and
//! every engine would die of them at once, for all other pools too: what has killed so often is not booted for a while, and
//! what it would answer is refused.
//!
//! After the pause one worker at a time is booted to see, in an engine that serves nobody yet: see `supervisor/trials.rs`
//! of `regent-engines`.

use super::circuit::{Circuit, CircuitRules, Phase, Verdict};
use super::{CircuitFigures, CircuitKey, Opening, Refusal, key};
use std::collections::BTreeMap;
use std::time::Duration;

/// The circuits of the workers of an engine.
#[derive(Debug)]
pub struct BootCircuits {
    rules: CircuitRules,
    /// By pool.
    circuits: BTreeMap<u16, BootCircuit>,
    /// What booted in the last unexplained death.
    suspects: Vec<u16>,
}

/// A worker that booted when an engine died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booting {
    pub pool: u16,
    /// Its file.
    pub script: Box<[u8]>,
}

/// Who is to blame for a death, of those that booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootBlame {
    /// Only one of them, which is known.
    Killer,
    /// One of them, or nothing that they did.
    Suspects,
}

#[derive(Debug)]
struct BootCircuit {
    key: CircuitKey,
    circuit: Circuit,
}

impl BootCircuits {
    pub fn new(rules: CircuitRules) -> Self {
        Self { rules, circuits: BTreeMap::new(), suspects: Vec::new() }
    }

    /// Whether all workers are booted.
    pub fn are_closed(&self) -> bool {
        self.circuits.values().all(|boot| boot.circuit.is_closed())
    }

    /// What a worker's circuit does; `None`: it is closed.
    pub fn phase(&self, pool: u16) -> Option<Phase> {
        self.circuits.get(&pool)?.circuit.phase().map(|(phase, _)| phase)
    }

    /// Whether requests to this pool are refused.
    pub fn refuses(&self, pool: u16, now: Duration) -> Option<Refusal> {
        let boot = self.circuits.get(&pool)?;
        Some(Refusal { circuit: boot.key.clone(), retry_after: boot.circuit.left(now)? })
    }

    /// An engine has died in which no request is to blame and these workers booted, each named once.
    pub fn died(&mut self, booting: &[Booting], blame: BootBlame, now: Duration) -> Vec<Opening> {
        let guilty = match blame {
            BootBlame::Killer => {
                self.suspects.clear();
                booting.to_vec()
            }
            BootBlame::Suspects => self.accuse(booting),
        };
        guilty.into_iter().filter_map(|worker| self.count(worker, now)).collect()
    }

    /// A worker that is to be booted to see, by the end of its pause. One at a time.
    pub fn next_trial(&mut self, now: Duration) -> Option<CircuitKey> {
        let is = |boot: &BootCircuit, wanted| boot.circuit.phase().is_some_and(|(phase, _)| phase == wanted);
        if self.circuits.values().any(|boot| is(boot, Phase::Probing)) {
            return None;
        }
        let mut open = self.circuits.values_mut().filter(|boot| is(boot, Phase::Open));
        open.find_map(|boot| match boot.circuit.ask(now) {
            Verdict::Probe(_) => Some(boot.key.clone()),
            Verdict::Pass | Verdict::Refuse(_) => None,
        })
    }

    /// What was booted to see could not serve: it is open again, for longer.
    pub fn trial_failed(&mut self, now: Duration) -> Option<Opening> {
        let boot = self.circuits.values_mut().find(|boot| {
            boot.circuit.phase().is_some_and(|(phase, _)| phase == Phase::Probing)
        })?;
        let pause = boot.circuit.death(now, "", self.rules.failures, &self.rules)?;
        Some(Opening { circuit: boot.key.clone(), pause })
    }

    /// The worker has booted, and the engine lives.
    pub fn booted(&mut self, pool: u16) -> Option<CircuitKey> {
        let boot = self.circuits.get(&pool).filter(|boot| !boot.circuit.is_closed())?;
        let key = boot.key.clone();
        self.circuits.remove(&pool);
        Some(key)
    }

    /// All that are open may be tried now: there may be other code.
    pub fn end_pauses(&mut self, now: Duration) {
        self.circuits.values_mut().for_each(|boot| boot.circuit.end_pause(now));
    }

    /// Those that are not closed, by pool.
    pub fn figures(&self, now: Duration) -> impl Iterator<Item = CircuitFigures> {
        self.circuits.values().filter_map(move |boot| {
            let (phase, pause) = boot.circuit.phase()?;
            let left = boot.circuit.left(now).unwrap_or_default();
            Some(CircuitFigures { circuit: boot.key.clone(), phase, pause, left })
        })
    }

    /// The one that was booted to see; the only one that booted; otherwise those that also booted in the death before. A
    /// worker that boots slowly beside one that kills is among them, and closes its circuit when it is tried alone.
    fn accuse(&mut self, booting: &[Booting]) -> Vec<Booting> {
        let now = booting.iter().map(|worker| worker.pool).collect();
        let before = std::mem::replace(&mut self.suspects, now);
        let is_tried = |worker: &&Booting| self.phase(worker.pool) == Some(Phase::Probing);
        if let Some(tried) = booting.iter().find(is_tried) {
            return vec![tried.clone()];
        }
        let is_alone = booting.len() == 1;
        booting.iter().filter(|worker| is_alone || before.contains(&worker.pool)).cloned().collect()
    }

    fn count(&mut self, worker: Booting, now: Duration) -> Option<Opening> {
        let Booting { pool, script } = worker;
        let boot = self.circuits.entry(pool).or_insert_with(|| BootCircuit {
            key: key::of_script(pool, &script),
            circuit: Circuit::default(),
        });
        let pause = boot.circuit.death(now, "", self.rules.failures, &self.rules)?;
        Some(Opening { circuit: boot.key.clone(), pause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: CircuitRules = CircuitRules {
        failures: 3,
        within: Duration::from_secs(60),
        pause: Duration::from_secs(10),
        max_pause: Duration::from_secs(30),
    };

    fn at(second: u64) -> Duration {
        Duration::from_secs(1000 + second)
    }

    fn booting(pools: &[u16]) -> Vec<Booting> {
        pools.iter().map(|pool| Booting { pool: *pool, script: (*b"/w.php").into() }).collect()
    }

    fn kill(circuits: &mut BootCircuits, pools: &[u16], blame: BootBlame, second: u64) -> Vec<u16> {
        circuits.died(&booting(pools), blame, at(second)).iter().map(|opening| opening.circuit.pool).collect()
    }

    /// That of pool 1, since second 2.
    fn opened() -> BootCircuits {
        let mut circuits = BootCircuits::new(RULES);
        let openings: Vec<_> =
            (0..3).map(|second| kill(&mut circuits, &[1], BootBlame::Killer, second)).collect();
        assert_eq!(openings, [vec![], vec![], vec![1]]);
        circuits
    }

    #[test]
    fn what_kills_again_and_again_is_refused_alone() {
        let circuits = opened();
        let refusal = circuits.refuses(1, at(5)).unwrap();
        assert_eq!((refusal.retry_after, &*refusal.circuit.script), (Duration::from_secs(7), &b"/w.php"[..]));
        assert_eq!((circuits.refuses(0, at(5)), circuits.refuses(2, at(5))), (None, None));
        assert_eq!(circuits.figures(at(5)).count(), 1);
    }

    #[test]
    fn deaths_that_are_far_apart_open_nothing() {
        let mut circuits = BootCircuits::new(RULES);
        assert!((0..10).all(|n| kill(&mut circuits, &[1], BootBlame::Killer, 31 * n).is_empty()));
        assert!(circuits.are_closed());
    }

    #[test]
    fn after_the_pause_it_is_tried_and_each_failure_doubles_the_pause() {
        let mut circuits = opened();
        assert_eq!(circuits.next_trial(at(11)), None);
        assert_eq!(circuits.next_trial(at(12)).unwrap().pool, 1);
        assert_eq!(circuits.next_trial(at(13)), None, "it is being tried");
        assert!(circuits.refuses(1, at(13)).is_some());
        assert_eq!(circuits.trial_failed(at(14)).unwrap().pause, Duration::from_secs(20));
        assert_eq!(circuits.next_trial(at(33)), None);
        assert!(circuits.next_trial(at(34)).is_some());
        assert_eq!(kill(&mut circuits, &[1, 2], BootBlame::Suspects, 35), [1], "and 2 is not to blame");
        assert!(circuits.next_trial(at(64)).is_none() && circuits.next_trial(at(65)).is_some());
        assert_eq!(circuits.booted(1).unwrap().pool, 1);
        assert!(circuits.are_closed() && circuits.refuses(1, at(65)).is_none());
    }

    #[test]
    fn they_are_tried_one_at_a_time() {
        let mut circuits = opened();
        (0..3).for_each(|second| drop(kill(&mut circuits, &[2], BootBlame::Killer, second)));
        assert_eq!(circuits.next_trial(at(20)).unwrap().pool, 1);
        assert_eq!(circuits.next_trial(at(20)), None);
        circuits.booted(1);
        assert_eq!(circuits.next_trial(at(20)).unwrap().pool, 2);
    }

    #[test]
    fn of_several_suspects_those_are_blamed_that_booted_in_two_deaths() {
        let mut circuits = BootCircuits::new(RULES);
        let deaths = [&[1, 2][..], &[1, 3], &[1, 2], &[1, 4]];
        let openings = deaths.into_iter().zip(0..);
        let opened: Vec<_> =
            openings.flat_map(|(pools, at)| kill(&mut circuits, pools, BootBlame::Suspects, at)).collect();
        assert_eq!(opened, [1]);
        let mut circuits = BootCircuits::new(RULES);
        let alone: Vec<_> =
            (0..3).flat_map(|second| kill(&mut circuits, &[7], BootBlame::Suspects, second)).collect();
        assert_eq!(alone, [7]);
    }

    #[test]
    fn other_code_is_tried_at_once() {
        let mut circuits = opened();
        circuits.end_pauses(at(4));
        assert!(circuits.next_trial(at(4)).is_some());
    }
}
