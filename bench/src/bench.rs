//! What the suites work with: servers that are started when a case needs them, loads, and a memory of what has been
//! measured already.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use crate::generator::outcome::Outcome;
use crate::generator::plan::{Connections, Expect, Kind, Limit, Pace, Plan, Window};
use crate::generator::process::run_in_processes;
use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::peers::{self, Contender, External, Pool, Script, Server, Wait};
use crate::progress::Progress;
use crate::record::{Measurement, Store};
use crate::site::Site;
use crate::usage::{Sampler, Snapshot, Usage};
use anyhow::{Context, Result};

/// Pause after each load, so that descriptors of closed connections are freed before the next.
const SETTLE: Duration = Duration::from_millis(300);
/// Rough time of the checks and counters around each load.
const OVERHEAD: Duration = Duration::from_millis(400);
/// What starting a server takes, roughly.
const START: Duration = Duration::from_millis(700);

/// One measurement that a suite wants.
#[derive(Clone, Debug)]
pub struct Case {
    pub setup: Setup,
    /// What is varied within the suite, for keys and reports.
    pub point: String,
    /// From 1.
    pub round: u32,
    pub load: LoadSpec,
    pub beside: Option<Beside>,
    pub lifetime: Lifetime,
    pub watch: Watch,
}

/// A second load on the same server, which starts later.
#[derive(Clone, Debug)]
pub struct Beside {
    pub after: Duration,
    pub load: LoadSpec,
}

/// A server as it is to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    pub contender: Contender,
    pub pool: Pool,
    /// Connections at once in all the cases of this setup.
    pub most_connections: u32,
    pub connections: Connections,
    /// A request is ended by the server after so long.
    pub time_limit: Option<Duration>,
    /// What can no longer be answered within this time is refused at once, by servers that can.
    pub deadline: Option<Duration>,
    pub wait: Wait,
}

/// Whether a server is used for other cases of the same setup too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Started by the first case, ended with the suite.
    Kept,
    /// Started for the case and ended after it: what a pool learnt or grew to is gone.
    Fresh,
}

/// How often the PHP threads of the server are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Ten times a second, which costs the machine next to nothing.
    Coarse,
    /// A hundred times a second, for short loads that ask how fast a pool grows.
    Fine,
}

/// A load before it is known where the server listens.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    pub pace: Pace,
    pub connections: Connections,
    pub limit: Limit,
    pub timeout: Duration,
    pub mix: Vec<Request>,
    /// Loopback addresses to spread the connections over.
    pub addresses: u16,
    /// Generator processes to divide the load among.
    pub processes: u32,
}

/// One kind of request.
#[derive(Clone, Debug)]
pub struct Request {
    pub name: &'static str,
    pub weight: u32,
    pub script: Script,
    /// With ranges such as `{1-10}`; see [`Kind::target`].
    pub query: String,
    pub body_bytes: u64,
    pub window: Option<Window>,
    pub leave_after: Option<Duration>,
    pub expect: Expect,
}

/// What a run has in common over its suites.
#[derive(Debug)]
pub struct Ground {
    pub site: Site,
    pub machine: Machine,
    pub regent: Option<PathBuf>,
    pub externals: Vec<External>,
    pub interrupt: Interrupt,
}

/// One suite's run.
#[derive(Debug)]
pub struct Bench<'a> {
    ground: &'a Ground,
    store: Store,
    progress: Progress,
    running: HashMap<String, Server>,
}

impl<'a> Bench<'a> {
    pub fn new(ground: &'a Ground, store: Store) -> Self {
        let progress = Progress::new();
        Self { ground, store, progress, running: HashMap::new() }
    }

    pub fn machine(&self) -> &Machine {
        &self.ground.machine
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Says how much there is to do; cases that have been measured already take no time.
    pub fn announce<'c>(&mut self, cases: impl IntoIterator<Item = &'c Case>) {
        let open: Vec<&Case> =
            cases.into_iter().filter(|case| self.store.find(&case.key()).is_none()).collect();
        self.progress.begin(open.len(), open.iter().map(|case| case.expected_duration()).sum());
    }

    /// The measurement of a case: made now, or the one that an interrupted run has made.
    pub fn measure(&mut self, case: &Case) -> Result<Measurement> {
        let key = case.key();
        if let Some(measurement) = self.store.find(&key) {
            return Ok(measurement.clone());
        }
        self.ground.interrupt.check()?;
        let measurement = self.measure_now(case).with_context(|| case.describe())?;
        self.store.keep(key, measurement.clone())?;
        self.progress.step(&describe(&measurement), case.expected_duration());
        sleep(SETTLE);
        Ok(measurement)
    }

    /// The running server of a setup, started if need be and found to be the right one.
    pub fn server(&mut self, setup: &Setup) -> Result<&mut Server> {
        let key = format!("{setup:?}");
        if !self.running.contains_key(&key) {
            let server = self.start(setup)?;
            self.store.describe(server.describe())?;
            self.running.insert(key.clone(), server);
        }
        Ok(self.running.get_mut(&key).expect("invariant: it was inserted above"))
    }

    /// Whether the server has pools that scale. Regent and others that do not yet say so when they are started.
    pub fn can_scale(&mut self, contender: &Contender, pool: Pool) -> Result<bool> {
        let setup = Setup::new(contender, pool, 1, Connections::KeepAlive);
        match self.start(&setup) {
            Ok(_) => Ok(true),
            Err(error) => {
                self.ground.interrupt.check()?;
                eprintln!("{contender} is measured without a scaling pool: {error:#}");
                Ok(false)
            }
        }
    }

    /// Ends the server of a setup, if it runs.
    pub fn stop(&mut self, setup: &Setup) {
        self.running.remove(&format!("{setup:?}"));
    }

    fn start(&self, setup: &Setup) -> Result<Server> {
        let ground = self.ground;
        let plan = peers::Plan {
            site: &ground.site,
            pool: setup.pool,
            most_connections: setup.most_connections,
            connections: setup.connections,
            regent: ground.regent.clone(),
            externals: &ground.externals,
            time_limit: setup.time_limit,
            deadline: setup.deadline,
            wait: setup.wait,
            interrupt: &ground.interrupt,
        };
        peers::start(&setup.contender, &plan)
    }

    fn measure_now(&mut self, case: &Case) -> Result<Measurement> {
        let interrupt = self.ground.interrupt.clone();
        let server = self.server(&case.setup)?;
        server.check()?;
        let plan = case.load.plan(server, case.seed())?;
        let beside = match &case.beside {
            Some(beside) => Some((beside, beside.load.plan(server, case.seed() + 1)?)),
            None => None,
        };
        let label = server.label().to_owned();
        let leaders = server.leaders();
        let before = Snapshot::of(&leaders);
        let sampler = Sampler::start(server, case.watch.period());
        let outcomes = run_loads(&plan, case.load.processes, beside, &interrupt);
        let server_ticks = sampler.stop();
        let (outcome, beside) = outcomes?;
        let requests = outcome.requests() + beside.as_ref().map_or(0, |(_, outcome)| outcome.requests());
        let usage = Usage::since(&before, &leaders, requests);
        if case.lifetime == Lifetime::Fresh {
            self.stop(&case.setup);
        }
        let contender = &case.setup.contender;
        Ok(Measurement {
            point: case.point.clone(),
            server: contender.identity(),
            label,
            round: case.round,
            pool: case.setup.pool,
            plan,
            outcome,
            beside,
            usage,
            server_ticks,
        })
    }
}

/// A load, and beside it the second one.
fn run_loads(
    plan: &Plan,
    processes: u32,
    beside: Option<(&Beside, Plan)>,
    interrupt: &Interrupt,
) -> Result<(Outcome, Option<(Plan, Outcome)>)> {
    let Some((beside, second)) = beside else {
        return Ok((run_in_processes(plan, processes, interrupt)?, None));
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| run_in_processes(plan, processes, interrupt));
        sleep(beside.after);
        let outcome = run_in_processes(&second, beside.load.processes, interrupt);
        let first = first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((first, Some((second, outcome?))))
    })
}

impl Setup {
    /// Without limits of a request's time.
    pub fn new(contender: &Contender, pool: Pool, most_connections: u32, connections: Connections) -> Self {
        let contender = contender.clone();
        Self {
            contender,
            pool,
            most_connections,
            connections,
            time_limit: None,
            deadline: None,
            wait: Wait::Default,
        }
    }
}

impl Watch {
    fn period(self) -> Duration {
        match self {
            Self::Coarse => Duration::from_millis(100),
            Self::Fine => Duration::from_millis(10),
        }
    }
}

impl Case {
    /// One load on a server that is kept for others.
    pub fn new(setup: Setup, point: impl Into<String>, round: u32, load: LoadSpec) -> Self {
        let (lifetime, watch) = (Lifetime::Kept, Watch::Coarse);
        Self { setup, point: point.into(), round, load, beside: None, lifetime, watch }
    }

    /// Equal for equal measurements, also in later runs of the same program.
    fn key(&self) -> String {
        let Self { setup, point, round, load, beside, .. } = self;
        let mut hasher = DefaultHasher::new();
        format!("{setup:?} {load:?} {beside:?}").hash(&mut hasher);
        let digest = hasher.finish();
        format!("{point}/{}/{round}/{digest:016x}", setup.contender.identity())
    }

    /// The same requests for all servers of a round.
    fn seed(&self) -> u64 {
        u64::from(self.round)
    }

    fn describe(&self) -> String {
        format!("{}, {}", self.point, self.setup.contender)
    }

    fn expected_duration(&self) -> Duration {
        let start = if self.lifetime == Lifetime::Fresh { START } else { Duration::ZERO };
        self.load.expected_duration() + SETTLE + OVERHEAD + start
    }
}

impl LoadSpec {
    /// A closed loop of one kind of request.
    pub fn closed(users: u32, connections: Connections, limit: Limit, request: Request) -> Self {
        Self {
            pace: Pace::Closed { users },
            connections,
            limit,
            timeout: SOFT_REAL_TIME,
            mix: vec![request],
            addresses: 1,
            processes: 1,
        }
    }

    /// For this server.
    pub fn plan(&self, server: &Server, seed: u64) -> Result<Plan> {
        let targets: Vec<SocketAddr> = server.addresses(self.addresses);
        Ok(Plan {
            source: None,
            host: targets[0].to_string(),
            targets,
            pace: self.pace.clone(),
            connections: self.connections,
            limit: self.limit,
            timeout: self.timeout,
            mix: self.mix.iter().map(|request| request.kind(server)).collect::<Result<_>>()?,
            seed,
        })
    }

    fn expected_duration(&self) -> Duration {
        match (&self.limit, &self.pace) {
            (Limit::Duration(duration), _) => *duration,
            // A guess until the first ones have been seen.
            (Limit::Requests(requests), _) => Duration::from_secs_f64(*requests as f64 / 15_000.0),
            (Limit::Stages, Pace::Ramp { stages }) => stages.iter().map(|stage| stage.duration).sum(),
            (Limit::Stages, _) => Duration::ZERO,
        }
    }
}

/// A request that takes longer has failed.
pub const SOFT_REAL_TIME: Duration = Duration::from_secs(3);

impl Request {
    /// A GET of a script, whatever it answers.
    pub fn get(name: &'static str, script: Script) -> Self {
        Self {
            name,
            weight: 1,
            script,
            query: String::new(),
            body_bytes: 0,
            window: None,
            leave_after: None,
            expect: Expect::Any,
        }
    }

    /// The 128 periods.
    pub fn hello() -> Self {
        Self { expect: Expect::Body(crate::site::BODY.to_owned()), ..Self::get("hello", Script::Hello) }
    }

    fn kind(&self, server: &Server) -> Result<Kind> {
        let path = server.target(self.script)?;
        Ok(Kind {
            name: self.name.to_owned(),
            weight: self.weight,
            method: if self.body_bytes > 0 { "POST" } else { "GET" }.to_owned(),
            target: if self.query.is_empty() { path } else { format!("{path}?{}", self.query) },
            body_bytes: self.body_bytes,
            window: self.window,
            leave_after: self.leave_after,
            expect: self.expect.clone(),
        })
    }
}

fn describe(measurement: &Measurement) -> String {
    let Measurement { point, label, outcome, .. } = measurement;
    let failed = match outcome.failed() {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    format!("{point}, {label}: {:.0} requests/s, p99 {}{failed}", outcome.throughput(), milliseconds(outcome))
}

fn milliseconds(outcome: &Outcome) -> String {
    outcome.latencies().quantile_ms(0.99).map_or_else(|| "–".to_owned(), |p99| format!("{p99:.2} ms"))
}
