//! Injects faults one after the other, in an order by chance, and sees that each does what it is there for.

use super::events::LogReader;
use super::faults::{Deed, Expected, FAULTS, Fault, Operation};
use super::operator::Operator;
use super::question::Versions;
use super::site::Site;
use super::{Clock, Engine};
use crate::process::signal;
use crate::wait::try_until;
use crate::{Request, Response, Server};
use rustix::process::Signal;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::Scope;
use std::time::Duration;

/// An engine that dies earlier has failed, and the next one waits before it starts: two in a row are too few for that.
const STABLE: Duration = Duration::from_secs(6);
/// Three deaths by one page in a minute open its circuit, which would spare the engine.
const OF_A_MINUTE: usize = 2;
const MINUTE: Duration = Duration::from_secs(65);
/// The numbers of faults begin here, far above those of the load. The server's log names them, too.
const FIRST_NUMBER: u64 = 1_000_000_000;
/// An engine that hangs is killed before.
const DEATH: Duration = Duration::from_secs(10);

/// A fault that was injected.
#[derive(Debug, Clone)]
pub struct Injection {
    /// In [`FAULTS`].
    pub fault: usize,
    pub from: Duration,
    pub until: Duration,
    pub number: u64,
    /// What was wrong about it.
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    AsExpected,
    /// Its own request, which was to live, got 502: it may have run in an engine that died of another fault.
    Lost,
    Wrong(String),
}

/// Which faults are injected.
#[derive(Debug, Clone, Copy)]
pub struct Wishes {
    pub until: Duration,
    /// Between two of them.
    pub pause: Duration,
    /// Whether the server may be upgraded, after which its memory is another's.
    pub upgrades: bool,
}

pub struct Injector<'a> {
    operator: Operator<'a>,
    log: &'a mut LogReader,
    clock: Clock,
    /// The server's process, for who looks at its memory.
    server: &'a AtomicU32,
    injections: Arc<Mutex<Vec<Injection>>>,
    /// When each fault was injected last.
    times: HashMap<usize, Vec<Duration>>,
    /// Faults that are still to come, the next one last.
    bag: Vec<usize>,
    chance: Chance,
    next_number: u64,
}

/// Numbers by chance, the same ones for the same seed (`SplitMix64`).
struct Chance(u64);

impl<'a> Injector<'a> {
    pub fn new(
        server: &'a mut Server,
        site: Site,
        versions: &'a Versions,
        log: &'a mut LogReader,
        clock: Clock,
        pid: &'a AtomicU32,
        seed: u64,
    ) -> Self {
        Self {
            operator: Operator::new(server, site, versions),
            log,
            clock,
            server: pid,
            injections: Arc::default(),
            times: HashMap::new(),
            bag: Vec::new(),
            chance: Chance(seed),
            next_number: FIRST_NUMBER,
        }
    }

    pub fn server(&self) -> &Server {
        self.operator.server
    }

    /// What was injected, by time.
    pub fn into_injections(self) -> Vec<Injection> {
        let mut injections = std::mem::take(&mut *self.injections.lock().expect("nobody panics with it"));
        injections.sort_by_key(|injection| injection.from);
        injections
    }

    /// Injects faults, and returns when all have been answered.
    pub fn inject(&mut self, wishes: Wishes) {
        std::thread::scope(|scope| {
            while self.clock.now() < wishes.until {
                if let Some(fault) = self.draw(wishes) {
                    self.inject_one(fault, scope);
                }
                self.read_log();
                self.clock.sleep_until((self.clock.now() + wishes.pause).min(wishes.until));
            }
        });
        self.read_log();
    }

    /// Takes what the server has logged.
    pub fn read_log(&mut self) {
        let text = self.operator.server.log_from(self.log.position());
        self.log.read(&text);
    }

    /// The next fault that may be injected now.
    fn draw(&mut self, wishes: Wishes) -> Option<usize> {
        if self.bag.is_empty() {
            self.bag = (0..FAULTS.len()).filter(|fault| self.is_possible(&FAULTS[*fault])).collect();
            self.chance.shuffle(&mut self.bag);
        }
        if !wishes.upgrades {
            self.bag.retain(|fault| !FAULTS[*fault].is(Operation::Upgrade));
        }
        let place = self.bag.iter().rposition(|fault| self.may_be_injected(*fault))?;
        Some(self.bag.remove(place))
    }

    fn is_possible(&self, fault: &Fault) -> bool {
        !fault.needs_user() || self.operator.site.has_user()
    }

    fn may_be_injected(&self, fault: usize) -> bool {
        let Some(engine) = FAULTS[fault].kills else { return true };
        let now = self.clock.now();
        let last = self.log.death_since(engine, now.saturating_sub(STABLE));
        let is_stable = last.is_none_or(|death| self.log.has_taken_over_since(engine, death));
        let times = self
            .times
            .get(&fault)
            .map_or(0, |times| times.iter().filter(|time| **time + MINUTE > now).count());
        is_stable && times < OF_A_MINUTE
    }

    fn inject_one<'scope>(&mut self, fault: usize, scope: &'scope Scope<'scope, '_>) {
        let (from, number) = (self.clock.now(), self.next_number);
        self.next_number += 1;
        self.times.entry(fault).or_default().push(from);
        let done = match &FAULTS[fault].deed {
            Deed::Ask(count, target, expected) => {
                let request = self.operator.server.request("GET", &numbered(target, number));
                if FAULTS[fault].kills.is_none() {
                    return self.ask_beside(fault, number, *count, request, expected, scope);
                }
                match check(request.try_send(), expected) {
                    Outcome::AsExpected => Ok(()),
                    outcome => Err(format!("{outcome:?}")),
                }
            }
            Deed::Signal(signal) => self.signal(fault, *signal),
            Deed::Operate(operation) => {
                let done = self.operator.operate(*operation);
                self.server.store(self.operator.server.pid(), Relaxed);
                done
            }
        };
        let done = done.and_then(|()| self.wait_for_death(FAULTS[fault].kills, from));
        let outcome = done.map_or_else(Outcome::Wrong, |()| Outcome::AsExpected);
        note(&self.injections, Injection { fault, from, until: self.clock.now(), number, outcome });
    }

    /// Goes on meanwhile.
    fn ask_beside<'scope>(
        &self,
        fault: usize,
        number: u64,
        count: usize,
        request: Request,
        expected: &'static Expected,
        scope: &'scope Scope<'scope, '_>,
    ) {
        let (clock, injections) = (self.clock, Arc::clone(&self.injections));
        let from = clock.now();
        scope.spawn(move || {
            let outcomes = crate::in_parallel(count, |_| check(request.try_send(), expected));
            let is_wrong = |outcome: &&Outcome| matches!(outcome, Outcome::Wrong(_));
            let is_lost = |outcome: &&Outcome| **outcome == Outcome::Lost;
            let worst = outcomes.iter().find(is_wrong).or_else(|| outcomes.iter().find(is_lost));
            let outcome = worst.cloned().unwrap_or(Outcome::AsExpected);
            note(&injections, Injection { fault, from, until: clock.now(), number, outcome });
        });
    }

    /// To the newest engine, which is the one that has requests.
    fn signal(&self, fault: usize, number: Signal) -> Result<(), String> {
        let engines = match FAULTS[fault].kills {
            Some(Engine::Native) => self.operator.server.native_engines(),
            _ => self.operator.server.engines(),
        };
        let engine = engines.last().ok_or("there is no engine")?;
        if signal(*engine, number) { Ok(()) } else { Err("the engine had ended".to_owned()) }
    }

    fn wait_for_death(&mut self, engine: Option<Engine>, from: Duration) -> Result<(), String> {
        let Some(engine) = engine else { return Ok(()) };
        let died = try_until(DEATH, || {
            self.read_log();
            self.log.death_since(engine, from)
        });
        died.map(drop).ok_or_else(|| "no engine has died of it".to_owned())
    }
}

fn note(injections: &Mutex<Vec<Injection>>, injection: Injection) {
    injections.lock().expect("nobody panics with it").push(injection);
}

/// By which the server's log names the request.
fn numbered(target: &str, number: u64) -> String {
    let mark = if target.contains('?') { '&' } else { '?' };
    format!("{target}{mark}n={number}")
}

fn check(answer: std::io::Result<Response>, expected: &Expected) -> Outcome {
    match answer {
        Err(error) => Outcome::Wrong(error.to_string()),
        Ok(answer) => match expected.check(answer.status, &answer.text()) {
            Ok(()) => Outcome::AsExpected,
            Err(_) if answer.status == 502 => Outcome::Lost,
            Err(reason) => Outcome::Wrong(reason),
        },
    }
}

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
    }
}
