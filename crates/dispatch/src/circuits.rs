//! A request that kills its engine takes all those with it that run beside it. What kills again and again gets no more
//! engines to kill: its circuit opens, and its requests are refused until one of them, let through to see, ends well.
//!
//! # What has a circuit
//! - A [route](crate::routes) of a script: all requests that run it and whose paths have the same name, or those of a lane
//!   that the configuration names. It opens after so many deaths within so long ([`CircuitRules`]).
//! - A script, or a worker, as a whole: for what kills under ever other paths, and for requests whose path has no route of
//!   its own because the table is full. It opens after [three times](SPREAD) as many. Deaths count for it only as long as
//!   the circuit of their route is closed: one page that crashes closes itself, not the front controller behind it.
//!
//! So a client that makes paths up closes nothing that others ask for, unless what it sends kills the engine under any
//! path: then the script is what has to be closed.
//!
//! # Who is to blame
//! As a rule the engine tells in which thread it was killed: then it is the request of that thread, and nobody else.
//! Where that is not known (the process ended itself, or was killed because it had damaged its memory), there are suspects:
//! - If one of them was let through to see, it is that one.
//! - If all that ran were requests of one route, of which none has ever ended, it is that route.
//! - Otherwise those that also ran in the unexplained death before, and of whose route no request has ended in between.
//!   A route that is asked for all the time ran in both; that its requests end is what tells it from one that kills.
//!
//! # Bounds
//! [`MOST`] circuits; beyond that the one that is closed and whose last death is the oldest is forgotten.

mod boots;
mod circuit;
mod key;

pub use boots::{BootBlame, BootCircuits, Booting};
pub use circuit::{CircuitRules, Phase};
pub use key::CircuitKey;

use crate::routes::Route;
use circuit::{Circuit, Verdict};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Circuits that are kept.
pub const MOST: usize = 256;
/// A script opens after so many times the deaths of a route.
pub const SPREAD: u32 = 3;

/// The circuits of all pools of an engine.
#[derive(Debug)]
pub struct Circuits {
    rules: CircuitRules,
    circuits: HashMap<CircuitKey, Circuit, RandomState>,
    /// What ran in the last unexplained death, and how many requests of it had ended then.
    suspects: Vec<(CircuitKey, u64)>,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    Pass,
    /// It is let through to see; what comes of it has to be told.
    Probe(Ticket),
    Refuse(Refusal),
}

/// Which circuit refuses a request, and when it may be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub circuit: CircuitKey,
    pub retry_after: Duration,
}

/// The circuits that a request was let through, and their rounds.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket(Vec<(CircuitKey, u64)>);

/// A request that ran when an engine died.
#[derive(Debug, Clone)]
pub struct Suspect {
    pub route: Arc<Route>,
    /// What ran, whatever the path: [`Routes::shared`](crate::routes::Routes::shared).
    pub code: Box<[u8]>,
}

/// A circuit has opened, or stays open for longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    pub circuit: CircuitKey,
    /// Until a request is let through.
    pub pause: Duration,
}

/// A circuit that is not closed, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitFigures {
    pub circuit: CircuitKey,
    pub phase: Phase,
    /// How long it is open after a death.
    pub pause: Duration,
    /// Until a request is let through.
    pub left: Duration,
}

impl Circuits {
    pub fn new(rules: CircuitRules) -> Self {
        Self { rules, circuits: HashMap::default(), suspects: Vec::new() }
    }

    /// Whether nothing is refused.
    pub fn are_closed(&self) -> bool {
        self.circuits.values().all(Circuit::is_closed)
    }

    /// Asks for a request.
    pub fn ask(&mut self, route: &Route, code: &[u8], now: Duration) -> Entry {
        let mut ticket = Ticket(Vec::new());
        for key in key::of_request(route, code) {
            match self.circuits.get_mut(&key).map_or(Verdict::Pass, |circuit| circuit.ask(now)) {
                Verdict::Pass => {}
                Verdict::Probe(round) => ticket.0.push((key, round)),
                Verdict::Refuse(retry_after) => {
                    self.give_back(&ticket, now);
                    return Entry::Refuse(Refusal { circuit: key, retry_after });
                }
            }
        }
        if ticket.0.is_empty() { Entry::Pass } else { Entry::Probe(ticket) }
    }

    /// Whether a request that was let in while its circuits were closed would be refused by now.
    pub fn refuses(&self, route: &Route, code: &[u8], now: Duration) -> Option<Refusal> {
        key::of_request(route, code).find_map(|circuit| {
            let retry_after = self.circuits.get(&circuit)?.left(now)?;
            Some(Refusal { circuit, retry_after })
        })
    }

    /// Whether a request that was let through to see, and waits, would tell nothing any more: another has killed its engine
    /// meanwhile.
    pub fn refuses_probe(&self, ticket: &Ticket, now: Duration) -> Option<Refusal> {
        ticket.0.iter().find_map(|(key, round)| {
            let circuit = self.circuits.get(key).filter(|circuit| !circuit.is_of_round(*round))?;
            Some(Refusal { circuit: key.clone(), retry_after: circuit.left(now)? })
        })
    }

    /// A request that was let through to see has ended, and its engine lives. Returns what has closed.
    pub fn ended_well(&mut self, ticket: &Ticket) -> Vec<CircuitKey> {
        let closes = |(key, round): &&(CircuitKey, u64)| {
            self.circuits.get_mut(key).is_some_and(|circuit| circuit.ended_well(*round))
        };
        let closed: Vec<CircuitKey> = ticket.0.iter().filter(closes).map(|(key, _)| key.clone()).collect();
        closed.iter().for_each(|key| drop(self.circuits.remove(key)));
        closed
    }

    /// Nothing is known of a request that was let through: another may be.
    pub fn give_back(&mut self, ticket: &Ticket, now: Duration) {
        for (key, round) in &ticket.0 {
            if let Some(circuit) = self.circuits.get_mut(key) {
                circuit.give_back(*round, now);
            }
        }
    }

    /// An engine has died in which these requests ran. `killer`: which of them was at fault, if that is known.
    pub fn died(&mut self, running: &[Suspect], killer: Option<usize>, now: Duration) -> Vec<Opening> {
        let mut guilty: Vec<&Suspect> = match killer {
            Some(killer) => {
                self.suspects.clear();
                running.get(killer).into_iter().collect()
            }
            None => self.accuse(running),
        };
        // Several requests of one route are one reason.
        let mut seen: Vec<CircuitKey> = Vec::new();
        guilty.retain(|suspect| {
            let is_new = !seen.contains(&suspect.key());
            seen.push(suspect.key());
            is_new
        });
        guilty.into_iter().flat_map(|suspect| self.count(suspect, now)).collect()
    }

    /// Those that are not closed, in the order of their names.
    pub fn figures(&self, now: Duration) -> Vec<CircuitFigures> {
        let figures = self.circuits.iter().filter_map(|(key, circuit)| {
            let (phase, pause) = circuit.phase()?;
            let left = circuit.left(now).unwrap_or_default();
            Some(CircuitFigures { circuit: key.clone(), phase, pause, left })
        });
        let mut figures: Vec<CircuitFigures> = figures.collect();
        figures.sort_by(|one, other| one.circuit.cmp(&other.circuit));
        figures
    }

    /// Who may be to blame, where the engine has not told.
    fn accuse<'a>(&mut self, running: &'a [Suspect]) -> Vec<&'a Suspect> {
        let before = std::mem::take(&mut self.suspects);
        self.suspects = running.iter().map(|suspect| (suspect.key(), suspect.ended())).collect();
        let probing: Vec<&Suspect> = running.iter().filter(|suspect| self.is_probing(suspect)).collect();
        if !probing.is_empty() {
            return probing;
        }
        let is_one_route = self.suspects.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let never_ends = |suspect: &Suspect| is_one_route && suspect.ended() == 0;
        let ran_before = |suspect: &Suspect| before.contains(&(suspect.key(), suspect.ended()));
        running.iter().filter(|suspect| never_ends(suspect) || ran_before(suspect)).collect()
    }

    fn is_probing(&self, suspect: &Suspect) -> bool {
        key::of_request(&suspect.route, &suspect.code).any(|key| {
            let phase = self.circuits.get(&key).and_then(Circuit::phase);
            phase.is_some_and(|(phase, _)| phase == Phase::Probing)
        })
    }

    fn count(&mut self, suspect: &Suspect, now: Duration) -> Vec<Opening> {
        let (rules, route) = (self.rules, suspect.route.name());
        let mut openings = Vec::new();
        let mut is_contained = false;
        if let Some(key) = key::of_route(&suspect.route, &suspect.code)
            && let Some(circuit) = self.circuit(&key, now)
        {
            let pause = circuit.death(now, route, rules.failures, &rules);
            is_contained = !circuit.is_closed();
            openings.extend(pause.map(|pause| Opening { circuit: key, pause }));
        }
        let script = key::of_script(suspect.route.pool(), &suspect.code);
        if is_contained && self.circuits.get(&script).is_none_or(Circuit::is_closed) {
            self.circuits.entry(script).and_modify(|circuit| circuit.forget(route));
        } else if let Some(circuit) = self.circuit(&script, now) {
            let pause = circuit.death(now, route, rules.failures.saturating_mul(SPREAD), &rules);
            openings.extend(pause.map(|pause| Opening { circuit: script, pause }));
        }
        openings
    }

    /// The circuit, which is made if there is room.
    fn circuit(&mut self, key: &CircuitKey, now: Duration) -> Option<&mut Circuit> {
        if self.circuits.len() >= MOST && !self.circuits.contains_key(key) {
            self.make_room(now);
        }
        if self.circuits.len() >= MOST && !self.circuits.contains_key(key) {
            return None;
        }
        Some(self.circuits.entry(key.clone()).or_default())
    }

    fn make_room(&mut self, now: Duration) {
        let within = self.rules.within;
        self.circuits.retain(|_, circuit| !circuit.is_forgettable(now, within));
        if self.circuits.len() < MOST {
            return;
        }
        let closed = self.circuits.iter().filter(|(_, circuit)| circuit.is_closed());
        let oldest = closed.min_by_key(|(_, circuit)| circuit.last_death()).map(|(key, _)| key.clone());
        oldest.into_iter().for_each(|key| drop(self.circuits.remove(&key)));
    }
}

impl Ticket {
    pub fn circuits(&self) -> impl Iterator<Item = &CircuitKey> {
        self.0.iter().map(|(circuit, _)| circuit)
    }
}

impl Suspect {
    /// What tells it from others: its route, or its script if it has no route of its own.
    fn key(&self) -> CircuitKey {
        let of_script = || key::of_script(self.route.pool(), &self.code);
        key::of_route(&self.route, &self.code).unwrap_or_else(of_script)
    }

    /// Requests of its route that have ended so far.
    fn ended(&self) -> u64 {
        self.route.recorded().count
    }
}

#[cfg(test)]
mod tests;
