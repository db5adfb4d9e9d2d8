//! One circuit: closed, open, or open but for one request that is let through to see.
//!
//! ```text
//!            so many deaths within so long                 the pause is over
//!   closed ─────────────────────────────────► open ◄───────────────────────────► probing
//!     ▲                                         a death: twice the pause            │
//!     └─────────────────────────────────────────────────────────────────────────────┘
//!                               a request that was let through ends well
//! ```

use std::collections::VecDeque;
use std::time::Duration;

/// For those that come while one request is let through: it will have ended soon.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// When circuits open, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitRules {
    /// Deaths that open it, ...
    pub failures: u32,
    /// ... if there are so many within this time.
    pub within: Duration,
    /// How long it is open at first; twice as long after each request that was let through and has killed again.
    pub pause: Duration,
    /// At most.
    pub max_pause: Duration,
}

/// What a circuit that is not closed does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Every request is refused, until the pause is over.
    Open,
    /// One request is let through to see; the others are refused.
    Probing,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// It is let through to see, in this round.
    Probe(u64),
    /// It may be tried again after so long.
    Refuse(Duration),
}

#[derive(Debug, Default)]
pub(super) struct Circuit {
    state: State,
    /// While it is closed: when engines died, oldest first, and of which route.
    deaths: VecDeque<(Duration, Box<str>)>,
    /// Counts how often it has opened: what was let through before that tells nothing any more.
    round: u64,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Closed,
    Open {
        until: Duration,
        pause: Duration,
    },
    Probing {
        since: Duration,
        pause: Duration,
    },
}

impl Circuit {
    pub fn ask(&mut self, now: Duration) -> Verdict {
        match self.state {
            State::Closed => Verdict::Pass,
            State::Open { until, .. } if now < until => Verdict::Refuse(until - now),
            State::Open { pause, .. } => self.probe(now, pause),
            // One that takes long and kills nothing must not keep all others out for ever.
            State::Probing { since, pause } if now.saturating_sub(since) >= pause => self.probe(now, pause),
            State::Probing { .. } => Verdict::Refuse(RETRY_SOON),
        }
    }

    /// An engine has died of a request of this route. `most`: deaths that open it. Returns for how long it is open if that
    /// is news.
    pub fn death(&mut self, now: Duration, route: &str, most: u32, rules: &CircuitRules) -> Option<Duration> {
        let pause = match self.state {
            State::Closed => {
                self.expire(now, rules.within);
                self.deaths.push_back((now, route.into()));
                if self.deaths.len() < most as usize {
                    return None;
                }
                rules.pause
            }
            State::Probing { pause, .. } => pause.saturating_mul(2).min(rules.max_pause),
            // It had begun before.
            State::Open { until, pause } => {
                self.state = State::Open { until: until.max(now.saturating_add(pause)), pause };
                return None;
            }
        };
        self.deaths.clear();
        self.round += 1;
        self.state = State::Open { until: now.saturating_add(pause), pause };
        Some(pause)
    }

    /// What was let through in this round has ended. Returns whether that closes it.
    pub fn ended_well(&mut self, round: u64) -> bool {
        let closes = round == self.round && !self.is_closed();
        if closes {
            self.state = State::Closed;
        }
        closes
    }

    /// Whether what was let through in this round still tells something.
    pub fn is_of_round(&self, round: u64) -> bool {
        round == self.round
    }

    /// Nothing is known of what was let through in this round: another may be.
    pub fn give_back(&mut self, round: u64, now: Duration) {
        if let State::Probing { pause, .. } = self.state
            && round == self.round
        {
            self.state = State::Open { until: now, pause };
        }
    }

    /// What is refused may be tried now.
    pub fn end_pause(&mut self, now: Duration) {
        if let State::Open { until, .. } = &mut self.state {
            *until = now.min(*until);
        }
    }

    /// The deaths of this route count no more: it has a circuit of its own that is open.
    pub fn forget(&mut self, route: &str) {
        self.deaths.retain(|(_, of)| **of != *route);
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// What it does if it is not closed, and how long it is open after a death.
    pub fn phase(&self) -> Option<(Phase, Duration)> {
        match self.state {
            State::Closed => None,
            State::Open { pause, .. } => Some((Phase::Open, pause)),
            State::Probing { pause, .. } => Some((Phase::Probing, pause)),
        }
    }

    /// When a request may be tried again; `None`: at once.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        match self.state {
            State::Closed => None,
            State::Open { until, .. } => Some(until.saturating_sub(now)),
            State::Probing { .. } => Some(RETRY_SOON),
        }
    }

    /// Whether nothing would be lost with it.
    pub fn is_forgettable(&self, now: Duration, within: Duration) -> bool {
        self.is_closed() && self.last_death().is_none_or(|last| now.saturating_sub(last) >= within)
    }

    pub fn last_death(&self) -> Option<Duration> {
        self.deaths.back().map(|(at, _)| *at)
    }

    fn probe(&mut self, now: Duration, pause: Duration) -> Verdict {
        self.state = State::Probing { since: now, pause };
        Verdict::Probe(self.round)
    }

    fn expire(&mut self, now: Duration, within: Duration) {
        let is_old = |at: Duration| now.saturating_sub(at) >= within;
        while self.deaths.front().is_some_and(|(at, _)| is_old(*at)) {
            self.deaths.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);
    const RULES: CircuitRules = CircuitRules {
        failures: 3,
        within: Duration::from_secs(60),
        pause: Duration::from_secs(10),
        max_pause: Duration::from_secs(35),
    };

    fn die(circuit: &mut Circuit, second: u32) -> Option<Duration> {
        circuit.death(SECOND * second, "/", RULES.failures, &RULES)
    }

    fn opened() -> Circuit {
        let mut circuit = Circuit::default();
        assert_eq!([0, 1, 2].map(|second| die(&mut circuit, second)), [None, None, Some(10 * SECOND)]);
        circuit
    }

    #[test]
    fn it_opens_after_so_many_deaths_within_so_long() {
        let mut circuit = Circuit::default();
        assert_eq!([0, 30, 60, 90].map(|second| die(&mut circuit, second)), [None; 4], "two within a minute");
        assert_eq!(circuit.ask(91 * SECOND), Verdict::Pass);
        assert_eq!(die(&mut circuit, 91), Some(10 * SECOND));
        assert_eq!(circuit.ask(95 * SECOND), Verdict::Refuse(6 * SECOND));
    }

    #[test]
    fn one_request_is_let_through_after_the_pause() {
        let mut circuit = opened();
        assert!(matches!(circuit.ask(12 * SECOND - Duration::from_nanos(1)), Verdict::Refuse(_)));
        let Verdict::Probe(round) = circuit.ask(12 * SECOND) else { panic!("the pause is over") };
        assert!(matches!(circuit.ask(12 * SECOND), Verdict::Refuse(_)));
        assert!(circuit.ended_well(round));
        assert_eq!(circuit.ask(13 * SECOND), Verdict::Pass);
        assert!(!circuit.ended_well(round), "it is closed");
    }

    #[test]
    fn the_pause_doubles_up_to_its_bound() {
        let mut circuit = opened();
        let mut pauses = Vec::new();
        for second in [100, 200, 300, 400] {
            assert!(matches!(circuit.ask(SECOND * second), Verdict::Probe(_)));
            pauses.extend(die(&mut circuit, second + 1));
        }
        assert_eq!(pauses, [20, 35, 35, 35].map(|seconds| SECOND * seconds));
    }

    #[test]
    fn a_death_of_what_had_begun_before_only_prolongs_the_pause() {
        let mut circuit = opened();
        assert_eq!(die(&mut circuit, 7), None);
        assert_eq!(circuit.ask(7 * SECOND), Verdict::Refuse(10 * SECOND));
        assert_eq!(die(&mut circuit, 7), None, "twice at a moment is no more");
        assert_eq!(circuit.ask(7 * SECOND), Verdict::Refuse(10 * SECOND));
    }

    #[test]
    fn what_was_let_through_before_the_last_death_tells_nothing() {
        let mut circuit = opened();
        let Verdict::Probe(round) = circuit.ask(20 * SECOND) else { panic!("the pause is over") };
        die(&mut circuit, 21);
        assert!(!circuit.ended_well(round));
        circuit.give_back(round, 22 * SECOND);
        assert_eq!(circuit.ask(22 * SECOND), Verdict::Refuse(19 * SECOND));
    }

    #[test]
    fn another_is_let_through_for_one_that_tells_nothing() {
        let mut circuit = opened();
        let Verdict::Probe(round) = circuit.ask(20 * SECOND) else { panic!("the pause is over") };
        circuit.give_back(round, 21 * SECOND);
        assert_eq!(circuit.ask(21 * SECOND), Verdict::Probe(round));
        assert_eq!(circuit.ask(30 * SECOND), Verdict::Refuse(SECOND));
        assert_eq!(circuit.ask(31 * SECOND), Verdict::Probe(round), "that one takes too long");
        assert!(circuit.ended_well(round));
    }

    /// What may happen to a circuit; times are in milliseconds after the event before.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Ask,
        Death,
        EndWell,
        GiveBack,
    }

    fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
        let step = prop_oneof![
            Just(Step::Ask),
            Just(Step::Ask),
            Just(Step::Death),
            Just(Step::EndWell),
            Just(Step::GiveBack)
        ];
        prop::collection::vec((prop_oneof![0..100_u64, 0..20_000_u64], step), 0..200)
    }

    proptest! {
        /// Whatever comes in whatever order: open for the whole pause, one at a time, closed by what ends well only.
        #[test]
        fn whatever_happens_an_open_circuit_keeps_its_pause(steps in steps()) {
            let mut circuit = Circuit::default();
            let mut now = Duration::ZERO;
            let mut pause = Duration::ZERO;
            let mut closed_until = Duration::ZERO;
            let mut rounds = Vec::new();
            let mut probed: Option<Duration> = None;
            for (after, step) in steps {
                now += Duration::from_millis(after);
                let was_closed = circuit.is_closed();
                match step {
                    Step::Ask => match circuit.ask(now) {
                        Verdict::Pass => prop_assert!(was_closed),
                        Verdict::Probe(round) => {
                            prop_assert!(!was_closed && now >= closed_until);
                            prop_assert!(probed.is_none_or(|since| now - since >= pause), "one at a time");
                            probed = Some(now);
                            rounds.push(round);
                        }
                        Verdict::Refuse(left) => prop_assert!(!was_closed && left <= pause.max(RETRY_SOON)),
                    },
                    Step::Death => {
                        if let Some(opened) = circuit.death(now, "/", RULES.failures, &RULES) {
                            let expected = if was_closed { RULES.pause } else { (pause * 2).min(RULES.max_pause) };
                            prop_assert_eq!(opened, expected);
                            (pause, probed) = (opened, None);
                        }
                        if !circuit.is_closed() {
                            closed_until = now + pause;
                        }
                    }
                    Step::EndWell => if let Some(round) = rounds.pop() {
                        let closes = circuit.ended_well(round);
                        prop_assert!(!closes || circuit.is_closed());
                        probed = if closes { None } else { probed };
                    },
                    Step::GiveBack => if let Some(round) = rounds.pop() {
                        circuit.give_back(round, now);
                        if round == circuit.round {
                            probed = None;
                        }
                    },
                }
                prop_assert!(circuit.deaths.len() < RULES.failures as usize, "it would have opened");
                prop_assert!(was_closed || !circuit.is_closed() || matches!(step, Step::EndWell));
            }
        }

        /// Fewer than so many within so long never open it.
        #[test]
        fn deaths_that_are_rare_enough_do_not_open_it(gaps in prop::collection::vec(30_000..200_000_u64, 0..100)) {
            let mut circuit = Circuit::default();
            let mut now = Duration::ZERO;
            for gap in gaps {
                now += Duration::from_millis(gap);
                prop_assert_eq!(circuit.death(now, "/", RULES.failures, &RULES), None);
            }
        }
    }
}
