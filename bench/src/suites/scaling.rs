//! C. The autoscaling scenarios: how many requests does a pool that scales itself handle, against the best fixed one?

use std::time::Duration;

use anyhow::{Context, Result};

use super::burst::grown;
use super::tables::{
    axis, doubts, figure, introduction, number, percentile, section, servers_section, table, text,
};
use super::{Length, Selection, Suite};
use crate::bench::{Bench, Case, Lifetime, LoadSpec, Request, Setup};
use crate::generator::plan::{Connections, Limit, Pace, Stage, Window};
use crate::peers::{Contender, Pool, Script, Wait};
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::{Figure, Page, Point, Scale, Section, Series, Style};
use crate::statistics::Spread;

/// The cores for which the original numbers of users were meant.
const ORIGINAL_CORES: f64 = 20.0;
/// Threads that a scaling pool starts with and may have, for each core.
const SCALING_START: u16 = 1;
const SCALING_MOST: u16 = 50;
/// Threads of a fixed pool by default, for each core.
const DEFAULT_THREADS: u16 = 2;
/// Fixed pools, for each core, among which the best one is searched.
const CANDIDATES: [u16; 6] = [2, 4, 8, 16, 32, 50];
/// The length of the search's load, as a part of the measured one's.
const SEARCH: f64 = 0.4;
/// Pools of the search that handle at least this part of the most are as good: the shortest tail decides.
const AS_GOOD: f64 = 0.97;
/// A pool that handles less than this part of the most has too many threads, and so have larger ones.
const TOO_LARGE: f64 = 0.9;

const CONNECTIONS: Connections = Connections::KeepAlive;

/// A load and what is sent in it. Times are seconds, users are those of 20 cores, as in the original.
struct Scenario {
    name: &'static str,
    stages: &'static [(f64, u32)],
    requests: fn(scale: f64) -> Vec<Request>,
    /// The server's own limit for a request.
    time_limit: Option<f64>,
}

const SCENARIOS: [Scenario; 7] = [
    Scenario {
        name: "hello world",
        stages: &[(5.0, 100), (20.0, 400), (5.0, 0)],
        requests: |_| vec![sleeping("hello", "sleep=0&work=0&output=1&iterations=1")],
        time_limit: None,
    },
    Scenario {
        name: "database",
        stages: &[(20.0, 100), (30.0, 200), (10.0, 0)],
        requests: |_| vec![sleeping("query", "sleep={1-10}&work={1-30000}&output={1-40}&iterations={1-2}")],
        time_limit: None,
    },
    Scenario {
        name: "external API",
        stages: &[(20.0, 150), (20.0, 1000), (10.0, 0)],
        requests: |_| vec![api()],
        time_limit: None,
    },
    Scenario {
        name: "computation",
        stages: &[(20.0, 80), (20.0, 150), (5.0, 0)],
        requests: |_| vec![sleeping("compute", "sleep={0-2}&work={1-1000000}&output={1-500}&iterations=1")],
        time_limit: None,
    },
    Scenario {
        name: "hanging server",
        stages: &[(20.0, 100), (20.0, 500), (20.0, 0)],
        requests: hanging,
        time_limit: None,
    },
    Scenario {
        name: "time-outs",
        stages: &[(20.0, 100), (20.0, 500), (20.0, 0)],
        requests: timing_out,
        time_limit: Some(10.0),
    },
    // All users at once: shows the speed of the scaler itself, which the ramps hide.
    Scenario {
        name: "step",
        stages: &[(0.0, 1000), (15.0, 1000)],
        requests: |_| vec![api()],
        time_limit: None,
    },
];

/// The three ways in which a scenario is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Two threads per core.
    Default,
    /// A few threads, and many when needed.
    Scaling,
    /// The best fixed number.
    Ideal,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Default, Self::Scaling, Self::Ideal];

    fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Scaling => "scaling",
            Self::Ideal => "ideal",
        }
    }
}

fn sleeping(name: &'static str, query: &str) -> Request {
    Request { query: query.to_owned(), ..Request::get(name, Script::Sleep) }
}

fn api() -> Request {
    sleeping("call", "sleep={10-150}&work={1-30000}&output={1-40}&iterations=1")
}

/// 2 % of the requests hang for 15 s.
fn hanging(scale: f64) -> Vec<Request> {
    let hang = (15_000.0 * scale) as u64;
    vec![
        Request {
            weight: 2,
            ..sleeping("hang", &format!("sleep={hang}&work=10000&output=100&iterations=1"))
        },
        Request { weight: 98, ..sleeping("normal", "sleep=5&work=10000&output=100&iterations=1") },
    ]
}

/// In every other window of 10 s all requests run into the server's time limit.
fn timing_out(scale: f64) -> Vec<Request> {
    let window = |phase| Some(Window { period: Duration::from_secs_f64(10.0 * scale), of: 2, phase });
    let hang = (50_000.0 * scale) as u64;
    vec![
        Request {
            window: window(0),
            ..sleeping("hang", &format!("sleep={hang}&work=10000&output=100&iterations=1"))
        },
        Request { window: window(1), ..sleeping("normal", "sleep=5&work=30000&output=100&iterations=1") },
    ]
}

pub fn run(bench: &mut Bench, selection: &Selection) -> Result<Page> {
    let scenarios = chosen(selection)?;
    let scale = match selection.length {
        Length::Tour | Length::Short => 0.2,
        Length::Full => 1.0,
    };
    let expected =
        |contender| scenarios.iter().flat_map(move |s| Way::expected(contender, s, scale, selection.rounds));
    bench.announce(&selection.contenders.iter().flat_map(expected).collect::<Vec<_>>());
    let mut ways = Vec::new();
    for contender in &selection.contenders {
        for scenario in &scenarios {
            ways.push(Way::find(bench, contender, scenario, scale)?);
        }
    }
    let mut done = Vec::new();
    for way in &ways {
        let measurements =
            way.cases(selection.rounds).iter().map(|case| bench.measure(case)).collect::<Result<Vec<_>>>()?;
        done.push((way, measurements));
    }
    Ok(page(bench, selection, scale, &done))
}

/// The scenarios that were asked for by name; without names all, but in the tour the step alone.
fn chosen(selection: &Selection) -> Result<Vec<&'static Scenario>> {
    if selection.scenarios.is_empty() {
        let skipped = if selection.length == Length::Tour { SCENARIOS.len() - 1 } else { 0 };
        return Ok(SCENARIOS.iter().skip(skipped).collect());
    }
    let by_name = |name: &String| SCENARIOS.iter().find(|scenario| scenario.name == name);
    let known = || SCENARIOS.iter().map(|scenario| scenario.name).collect::<Vec<_>>().join(", ");
    let found = selection.scenarios.iter().map(|name| {
        by_name(name).with_context(|| format!("there is no scenario `{name}`; there are: {}", known()))
    });
    found.collect()
}

/// One server in one scenario, with the pool of each mode.
struct Way<'a> {
    contender: &'a Contender,
    scenario: &'a Scenario,
    scale: f64,
    pools: Vec<(Mode, Pool)>,
}

impl<'a> Way<'a> {
    /// As many cases as there can be, of the right durations, for the time left.
    fn expected(contender: &'a Contender, scenario: &'a Scenario, scale: f64, rounds: u32) -> Vec<Case> {
        let pools = Mode::ALL.map(|mode| (mode, Pool::Fixed(1))).into();
        let way = Self { contender, scenario, scale, pools };
        let search = CANDIDATES.iter().map(|_| way.search(1));
        search.chain(way.cases(rounds)).collect()
    }

    /// Searches the ideal pool by shorter loads of the same requests, upwards until more threads handle fewer of them.
    fn find(bench: &mut Bench, contender: &'a Contender, scenario: &'a Scenario, scale: f64) -> Result<Self> {
        let cores = bench.machine().cores as u16;
        let mut way = Self { contender, scenario, scale, pools: Vec::new() };
        let mut found: Vec<Candidate> = Vec::new();
        for candidate in CANDIDATES {
            let threads = candidate * cores;
            let candidate = Candidate::of(threads, &bench.measure(&way.search(threads))?);
            found.push(candidate);
            if candidate.handled < TOO_LARGE * most_handled(&found) {
                break;
            }
        }
        way.pools.push((Mode::Default, Pool::Fixed(DEFAULT_THREADS * cores)));
        let scaling = Pool::Scaling { start: SCALING_START * cores, most: SCALING_MOST * cores };
        if bench.can_scale(contender, scaling)? {
            way.pools.push((Mode::Scaling, scaling));
        }
        way.pools.push((Mode::Ideal, Pool::Fixed(ideal(&found))));
        Ok(way)
    }

    /// Nothing is claimed of the default pool, which is there for scale: it is measured once.
    fn cases(&self, rounds: u32) -> Vec<Case> {
        let of_round = |round: u32| {
            super::in_turn(&self.pools, round)
                .into_iter()
                .filter(move |(mode, _)| round == 1 || *mode != Mode::Default)
                .map(move |(mode, pool)| self.case(mode.name(), *pool, round, self.scale))
        };
        (1..=rounds).flat_map(of_round).collect()
    }

    fn search(&self, threads: u16) -> Case {
        self.case("search", Pool::Fixed(threads), 1, self.scale * SEARCH)
    }

    /// Only the stages are as long as `length` says: how long a request blocks decides how many threads are ideal.
    fn case(&self, mode: &str, pool: Pool, round: u32, length: f64) -> Case {
        let stages = self.scenario.stages.iter().map(|&(duration, users)| Stage {
            duration: Duration::from_secs_f64(duration * length),
            users: scaled_users(users),
        });
        let load = LoadSpec {
            pace: Pace::Ramp { stages: stages.collect() },
            connections: CONNECTIONS,
            limit: Limit::Stages,
            timeout: Duration::from_secs(60),
            mix: (self.scenario.requests)(self.scale),
            addresses: 1,
            processes: 1,
        };
        let point = format!("{}/{mode}", self.scenario.name);
        Case { lifetime: Lifetime::Fresh, ..Case::new(self.setup(pool), point, round, load) }
    }

    fn setup(&self, pool: Pool) -> Setup {
        let users = self.scenario.stages.iter().map(|stage| scaled_users(stage.1)).max().unwrap_or(1);
        let limit = |seconds: f64| Duration::from_secs_f64(seconds * self.scale).max(Duration::from_secs(1));
        Setup {
            time_limit: self.scenario.time_limit.map(limit),
            // Of a fixed pool whose requests all hang, the others wait for longer than anybody would.
            wait: Wait::Unbounded,
            ..Setup::new(self.contender, pool, users, CONNECTIONS)
        }
    }
}

/// A fixed pool in the search for the ideal one.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    threads: u16,
    handled: f64,
    p99_ms: f64,
}

impl Candidate {
    fn of(threads: u16, measurement: &Measurement) -> Self {
        let p99_ms = percentile(measurement, 0.99).unwrap_or(f64::INFINITY);
        Self { threads, handled: handled(measurement) as f64, p99_ms }
    }
}

fn most_handled(found: &[Candidate]) -> f64 {
    found.iter().map(|candidate| candidate.handled).fold(0.0, f64::max)
}

/// Threads of the pool that handles the most, and of those that handle about as much the one with the shortest tail.
fn ideal(found: &[Candidate]) -> u16 {
    let least = AS_GOOD * most_handled(found);
    let good = found.iter().filter(|candidate| candidate.handled >= least);
    let best = good.min_by(|a, b| a.p99_ms.total_cmp(&b.p99_ms));
    best.expect("invariant: the one that handles the most is among them").threads
}

/// Users ÷ 10 on 2 cores.
fn scaled_users(users: u32) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    (f64::from(users) * cores / ORIGINAL_CORES).round() as u32
}

/// Requests that were answered rightly.
fn handled(measurement: &Measurement) -> u64 {
    measurement.outcome.right()
}

type Done<'a> = (&'a Way<'a>, Vec<Measurement>);

fn page(bench: &Bench, selection: &Selection, scale: f64, done: &[Done]) -> Page {
    let mut results = section("Handled requests");
    results.tables.push(results_table(done));
    results.notes = vec![
        format!(
            "default: {DEFAULT_THREADS} threads per core, fixed, measured once; scaling: {SCALING_START} per core, up to \
             {SCALING_MOST}; ideal: the best of {CANDIDATES:?} per core, found by shorter loads: the one that handles \
             most requests, and among those within 3 % of it the one with the lowest p99. Stages take {scale} of \
             the original's times; users are scaled from {ORIGINAL_CORES} cores to this machine's."
        ),
        "Final size: the time from the start of the load until the pool had 95 % of the most threads that it ever had. \
         What ÷ ideal says is the ratio of the same round, and its spread over the rounds."
            .to_owned(),
    ];
    for (_, measurements) in done {
        results.notes.extend(doubts(measurements));
    }
    let mut sections = vec![results];
    sections.extend(done.iter().map(|(way, measurements)| over_time(way, measurements)));
    sections.push(servers_section(bench));
    Page {
        name: Suite::Scaling.name().to_owned(),
        title: Suite::Scaling.title().to_owned(),
        introduction: introduction(
            bench,
            selection.rounds,
            "How close does a pool that scales itself come to the best fixed one? Users in a closed loop without think \
             time ramp up and down; what counts is how many requests are handled.",
        ),
        sections,
    }
}

fn results_table(done: &[Done]) -> crate::report::page::Table {
    let columns = vec![
        text("scenario"),
        text("server"),
        text("pool"),
        number("threads"),
        number("handled"),
        number("÷ ideal"),
        number("p50 ms"),
        number("p99 ms"),
        number("÷ ideal"),
        number("failed"),
        number("CPU µs/req"),
        number("most threads"),
        number("final size after"),
    ];
    let mut rows = Vec::new();
    for (way, measurements) in done {
        let of = |mode: Mode| -> Vec<&Measurement> {
            let point = format!("{}/{}", way.scenario.name, mode.name());
            measurements.iter().filter(|m| m.point == point).collect()
        };
        let ideal = of(Mode::Ideal);
        for mode in Mode::ALL {
            let own = of(mode);
            if !own.is_empty() {
                rows.push(row(way, mode, &own, &ideal));
            }
        }
    }
    table("Medians over the rounds", columns, rows)
}

fn row(way: &Way, mode: Mode, own: &[&Measurement], ideal: &[&Measurement]) -> Vec<String> {
    let median = |value: &dyn Fn(&Measurement) -> Option<f64>, show: fn(f64) -> String| {
        super::tables::median(super::tables::spread(own, value), show)
    };
    vec![
        way.scenario.name.to_owned(),
        way.contender.to_string(),
        mode.name().to_owned(),
        match own[0].pool {
            Pool::Fixed(threads) => threads.to_string(),
            Pool::Scaling { start, most } => format!("{start}–{most}"),
        },
        median(&|m| Some(handled(m) as f64), format::count),
        part_of_ideal(mode, own, ideal, |m| Some(handled(m) as f64)),
        median(&|m| percentile(m, 0.5), format::significant),
        median(&|m| percentile(m, 0.99), format::significant),
        part_of_ideal(mode, own, ideal, |m| percentile(m, 0.99)),
        own.iter().map(|m| m.outcome.failed()).sum::<u64>().to_string(),
        median(&|m| m.usage.cpu_us_per_request, format::significant),
        median(&|m| Some(f64::from(grown(&m.server_ticks)?.threads)), format::count),
        median(&|m| Some(grown(&m.server_ticks)?.after_s), |seconds| format!("{seconds:.1} s")),
    ]
}

/// In percent, of the same rounds.
fn part_of_ideal(
    mode: Mode,
    own: &[&Measurement],
    ideal: &[&Measurement],
    value: impl Fn(&Measurement) -> Option<f64>,
) -> String {
    let parts = own.iter().filter_map(|m| {
        let ideal = ideal.iter().find(|ideal| ideal.round == m.round)?;
        Some(value(m)? / value(ideal)?)
    });
    match Spread::of(parts.filter(|part| part.is_finite())) {
        Some(spread) if mode != Mode::Ideal => {
            format!("{} %", format::spread(&spread, |part| format!("{:.0}", part * 100.0)))
        }
        _ => "–".to_owned(),
    }
}

/// Users, threads and latency over time, of the first round.
fn over_time(way: &Way, measurements: &[Measurement]) -> Section {
    let name = format!("{}: {}", way.scenario.name, way.contender);
    let mut section = section(&name);
    let stem = format!(
        "scaling-{}-{}",
        way.scenario.name.replace(' ', "-"),
        way.contender.identity().replace(':', "-")
    );
    let first: Vec<&Measurement> = measurements.iter().filter(|m| m.round == 1).collect();
    let time = || axis("time", "s", Scale::Linear);
    let mut threads = figure(
        &format!("{stem}-threads"),
        &format!("{name}: threads over time"),
        time(),
        axis("threads of the pool", "", Scale::Linear),
    );
    threads.series = first.iter().map(|m| threads_over_time(m)).collect();
    let mut tail = figure(
        &format!("{stem}-p99"),
        &format!("{name}: p99 of each tenth of a second"),
        time(),
        axis("p99 latency", "ms", Scale::Logarithmic),
    );
    tail.series = first.iter().map(|m| latency_over_time(m)).collect();
    section.figures =
        vec![users(&stem, &name, &first), Some(threads), Some(tail)].into_iter().flatten().collect();
    section
}

fn mode_of(measurement: &Measurement) -> String {
    measurement.point.rsplit('/').next().unwrap_or_default().to_owned()
}

fn series(measurement: &Measurement, style: Style, points: Vec<Point>) -> Series {
    let mode = mode_of(measurement);
    Series { label: mode.clone(), identity: format!("pool-{mode}"), style, points }
}

fn point(x: f64, y: f64) -> Point {
    Point { x, y: Spread { median: y, min: y, max: y } }
}

fn threads_over_time(measurement: &Measurement) -> Series {
    let points = measurement
        .server_ticks
        .iter()
        .filter_map(|tick| Some(point(tick.time_s, f64::from(tick.php_threads?))))
        .collect();
    series(measurement, Style::Steps, points)
}

fn latency_over_time(measurement: &Measurement) -> Series {
    let points = measurement
        .outcome
        .series
        .iter()
        .enumerate()
        .map(|(index, tick)| point(index as f64 / 10.0, f64::from(tick.p99_ms)))
        .collect();
    series(measurement, Style::Thin, points)
}

fn users(stem: &str, name: &str, first: &[&Measurement]) -> Option<Figure> {
    let measurement = first.first()?;
    let mut users = figure(
        &format!("{stem}-users"),
        &format!("{name}: users over time"),
        axis("time", "s", Scale::Linear),
        axis("users", "", Scale::Linear),
    );
    let points = measurement
        .outcome
        .series
        .iter()
        .enumerate()
        .map(|(index, tick)| point(index as f64 / 10.0, f64::from(tick.users)))
        .collect();
    users.series =
        vec![Series { label: "users".to_owned(), identity: "users".to_owned(), style: Style::Steps, points }];
    Some(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(threads: u16, handled: f64, p99_ms: f64) -> Candidate {
        Candidate { threads, handled, p99_ms }
    }

    #[test]
    fn the_ideal_pool_handles_most_and_of_equals_it_has_the_shortest_tail() {
        let found = [candidate(4, 500.0, 1.0), candidate(8, 990.0, 30.0), candidate(16, 1_000.0, 90.0)];
        assert_eq!(ideal(&found), 8);
        assert_eq!(ideal(&found[..1]), 4);
    }

    #[test]
    fn the_search_asks_for_the_same_requests_in_less_time() {
        let contender = Contender::from(crate::peers::ServerKind::Worker);
        let (scenario, scale) = (&SCENARIOS[4], 0.2);
        let way = Way { contender: &contender, scenario, scale, pools: vec![(Mode::Ideal, Pool::Fixed(8))] };
        let (search, measured) = (way.search(8), &way.cases(1)[0]);
        assert_eq!(search.load.mix[0].query, measured.load.mix[0].query);
        let Pace::Ramp { stages } = &search.load.pace else { panic!("{:?}", search.load.pace) };
        assert_eq!(stages[0].duration, Duration::from_millis(1_600));
    }

    #[test]
    fn the_default_pool_is_measured_in_one_round_only() {
        let contender = Contender::from(crate::peers::ServerKind::Worker);
        let pools = Mode::ALL.map(|mode| (mode, Pool::Fixed(8))).into();
        let way = Way { contender: &contender, scenario: &SCENARIOS[0], scale: 0.2, pools };
        let defaults = way.cases(3).iter().filter(|case| case.point.ends_with("/default")).count();
        assert_eq!((way.cases(3).len(), defaults), (7, 1));
    }
}
