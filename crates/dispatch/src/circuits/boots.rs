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
    /// What booted in the last death of which nobody is known to be the reason.
    suspects: Vec<u16>,
    /// Pools whose requests are not refused whatever their circuit says: threads that booted before answer them.
    served: Vec<u16>,
}

/// A worker that booted when an engine died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booting {
    pub pool: u16,
    /// Its file.
    pub script: Box<[u8]>,
}

/// What is known of a death beside who booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootBlame {
    /// Its reason: the one that is named, or a request if none is.
    Known,
    /// No request ran.
    Alone,
    /// Requests ran too, or it was killed from outside.
    Anybody,
}

#[derive(Debug)]
struct BootCircuit {
    key: CircuitKey,
    circuit: Circuit,
    /// Of its last trial.
    round: u64,
}

impl BootCircuits {
    pub fn new(rules: CircuitRules) -> Self {
        Self { rules, circuits: BTreeMap::new(), suspects: Vec::new(), served: Vec::new() }
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
        let boot = self.circuits.get(&pool).filter(|_| !self.served.contains(&pool))?;
        Some(Refusal { circuit: boot.key.clone(), retry_after: boot.circuit.left(now)? })
    }

    /// These pools have threads that take requests. Returns whether others had before: what waits for them may be refused.
    pub fn note_served(&mut self, served: Vec<u16>) -> bool {
        let before = std::mem::replace(&mut self.served, served);
        before.iter().any(|pool| !self.served.contains(pool))
    }

    /// An engine has died while these workers booted, each named once.
    pub fn died(&mut self, booting: &[Booting], blame: BootBlame, now: Duration) -> Vec<Opening> {
        let guilty = match blame {
            BootBlame::Known => {
                self.suspects.clear();
                booting.to_vec()
            }
            BootBlame::Alone | BootBlame::Anybody => self.accuse(booting, blame),
        };
        let is_one = guilty.len() == 1;
        let mut openings: Vec<Opening> =
            guilty.into_iter().filter_map(|worker| self.count(worker, now)).collect();
        // Some are innocent, and a trial of each shows it: they are not to wait for that.
        for opening in openings.iter_mut().filter(|_| !is_one) {
            opening.pause = Duration::ZERO;
            self.circuits
                .get_mut(&opening.circuit.pool)
                .into_iter()
                .for_each(|boot| boot.circuit.end_pause(now));
        }
        openings
    }

    /// A worker that is to be booted to see, by the end of its pause. One at a time.
    pub fn next_trial(&mut self, now: Duration) -> Option<CircuitKey> {
        let is = |boot: &BootCircuit, wanted| boot.circuit.phase().is_some_and(|(phase, _)| phase == wanted);
        if self.circuits.values().any(|boot| is(boot, Phase::Probing)) {
            return None;
        }
        let mut open = self.circuits.values_mut().filter(|boot| is(boot, Phase::Open));
        open.find_map(|boot| match boot.circuit.ask(now) {
            Verdict::Probe(round) => {
                boot.round = round;
                Some(boot.key.clone())
            }
            Verdict::Pass | Verdict::Refuse(_) => None,
        })
    }

    /// What was booted to see could not serve: it is open again, for longer.
    pub fn trial_failed(&mut self, now: Duration) -> Option<Opening> {
        let rules = self.rules;
        let boot = self.tried()?;
        let pause = boot.circuit.death(now, "", rules.failures, &rules)?;
        Some(Opening { circuit: boot.key.clone(), pause })
    }

    /// Nothing is known of what was booted to see: its engine has died of something else. It may be tried again.
    pub fn give_back_trial(&mut self, now: Duration) {
        if let Some(boot) = self.tried() {
            boot.circuit.give_back(boot.round, now);
        }
    }

    fn tried(&mut self) -> Option<&mut BootCircuit> {
        let is_tried =
            |boot: &&mut BootCircuit| boot.circuit.phase().is_some_and(|(phase, _)| phase == Phase::Probing);
        self.circuits.values_mut().find(is_tried)
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

    /// The one that was booted to see; the only one that may be why; otherwise those that also booted in the death before. A
    /// worker that boots slowly beside one that kills is among them, and closes its circuit when it is tried alone.
    fn accuse(&mut self, booting: &[Booting], blame: BootBlame) -> Vec<Booting> {
        let now = booting.iter().map(|worker| worker.pool).collect();
        let before = std::mem::replace(&mut self.suspects, now);
        let is_tried = |worker: &&Booting| self.phase(worker.pool) == Some(Phase::Probing);
        if let Some(tried) = booting.iter().find(is_tried) {
            return vec![tried.clone()];
        }
        let is_alone = blame == BootBlame::Alone && booting.len() == 1;
        booting.iter().filter(|worker| is_alone || before.contains(&worker.pool)).cloned().collect()
    }

    fn count(&mut self, worker: Booting, now: Duration) -> Option<Opening> {
        let Booting { pool, script } = worker;
        let boot = self.circuits.entry(pool).or_insert_with(|| BootCircuit {
            key: key::of_script(pool, &script),
            circuit: Circuit::default(),
            round: 0,
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
            (0..3).map(|second| kill(&mut circuits, &[1], BootBlame::Known, second)).collect();
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
        assert!((0..10).all(|n| kill(&mut circuits, &[1], BootBlame::Known, 31 * n).is_empty()));
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
        assert_eq!(kill(&mut circuits, &[1, 2], BootBlame::Alone, 35), [1], "and 2 is not to blame");
        assert!(circuits.next_trial(at(64)).is_none() && circuits.next_trial(at(65)).is_some());
        assert_eq!(circuits.booted(1).unwrap().pool, 1);
        assert!(circuits.are_closed() && circuits.refuses(1, at(65)).is_none());
    }

    #[test]
    fn they_are_tried_one_at_a_time() {
        let mut circuits = opened();
        (0..3).for_each(|second| drop(kill(&mut circuits, &[2], BootBlame::Known, second)));
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
            openings.flat_map(|(pools, at)| kill(&mut circuits, pools, BootBlame::Alone, at)).collect();
        assert_eq!(opened, [1]);
    }

    /// What opens if the only worker that boots is there when so many engines die.
    fn opened_beside(blame: BootBlame, deaths: u64) -> Vec<u16> {
        let mut circuits = BootCircuits::new(RULES);
        (0..deaths).flat_map(|second| kill(&mut circuits, &[7], blame, second)).collect()
    }

    #[test]
    fn what_boots_alone_is_blamed_at_once_and_beside_requests_the_second_time() {
        assert_eq!(opened_beside(BootBlame::Alone, 3), [7]);
        assert_eq!(
            (opened_beside(BootBlame::Anybody, 3), opened_beside(BootBlame::Anybody, 4)),
            (vec![], vec![7])
        );
    }

    #[test]
    fn those_of_whom_one_may_be_innocent_are_tried_at_once_one_by_one() {
        let mut circuits = BootCircuits::new(RULES);
        let opened: Vec<_> =
            (0..4).flat_map(|second| kill(&mut circuits, &[1, 2], BootBlame::Anybody, second)).collect();
        assert_eq!(opened, [1, 2]);
        assert_eq!(circuits.next_trial(at(3)).unwrap().pool, 1);
        assert_eq!(circuits.trial_failed(at(4)).unwrap().pause, RULES.pause * 2);
        assert_eq!(circuits.next_trial(at(4)).unwrap().pool, 2);
        circuits.booted(2);
        assert!(circuits.refuses(1, at(5)).is_some() && circuits.refuses(2, at(5)).is_none());
    }

    #[test]
    fn a_death_by_a_request_is_no_suspicion() {
        let mut circuits = BootCircuits::new(RULES);
        for second in 0..10 {
            assert!(kill(&mut circuits, &[7], BootBlame::Anybody, 2 * second).is_empty());
            assert!(kill(&mut circuits, &[], BootBlame::Known, 2 * second + 1).is_empty());
        }
    }

    #[test]
    fn what_other_threads_answer_is_not_refused() {
        let mut circuits = opened();
        assert!(!circuits.note_served(vec![0, 1]) && circuits.refuses(1, at(5)).is_none());
        assert!(!circuits.note_served(vec![0, 1]), "that is no news");
        assert!(circuits.note_served(vec![0]) && circuits.refuses(1, at(5)).is_some());
    }

    #[test]
    fn a_trial_of_which_nothing_is_known_is_repeated() {
        let mut circuits = opened();
        assert!(circuits.next_trial(at(12)).is_some());
        circuits.give_back_trial(at(13));
        assert_eq!(circuits.phase(1), Some(Phase::Open));
        assert!(circuits.next_trial(at(13)).is_some());
    }

    #[test]
    fn other_code_is_tried_at_once() {
        let mut circuits = opened();
        circuits.end_pauses(at(4));
        assert!(circuits.next_trial(at(4)).is_some());
    }
}
