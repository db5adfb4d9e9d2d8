//! C. The autoscaling scenarios: how many requests does a pool that scales itself handle, against the best fixed one?

use std::time::Duration;

use anyhow::Result;

use super::tables::{
    axis, doubts, figure, introduction, number, percentile, section, servers_section, table, text,
};
use super::{Length, Selection, Suite};
use crate::bench::{Bench, Case, Lifetime, LoadSpec, Request, Setup};
use crate::generator::plan::{Connections, Limit, Pace, Stage, Window};
use crate::peers::{Contender, Pool, Script};
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::{Figure, Page, Point, Scale, Section, Series, Style};
use crate::statistics::{Comparison, Spread};

/// The cores for which the original numbers of users were meant.
const ORIGINAL_CORES: f64 = 20.0;
/// Threads that a scaling pool starts with and may have, for each core.
const SCALING_START: u16 = 1;
const SCALING_MOST: u16 = 50;
/// Threads of a fixed pool by default, for each core.
const DEFAULT_THREADS: u16 = 2;
/// Fixed pools, for each core, among which the best one is searched.
const CANDIDATES: [u16; 6] = [2, 4, 8, 16, 32, 50];
/// The search's load, as a part of the measured one.
const SEARCH: f64 = 0.4;

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
    let scenarios: &[Scenario] = match selection.length {
        Length::Tour => &SCENARIOS[6..],
        _ => &SCENARIOS,
    };
    let scale = match selection.length {
        Length::Tour | Length::Short => 0.2,
        Length::Full => 1.0,
    };
    let expected =
        |contender| scenarios.iter().flat_map(move |s| Way::expected(contender, s, scale, selection.rounds));
    bench.announce(&selection.contenders.iter().flat_map(expected).collect::<Vec<_>>());
    let mut ways = Vec::new();
    for contender in &selection.contenders {
        for scenario in scenarios {
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
        let search = CANDIDATES.iter().map(|_| way.case("search", Pool::Fixed(1), 1, scale * SEARCH));
        search.chain(way.cases(rounds)).collect()
    }

    /// Searches the ideal pool by shorter loads, upwards until more threads no longer handle more requests.
    fn find(bench: &mut Bench, contender: &'a Contender, scenario: &'a Scenario, scale: f64) -> Result<Self> {
        let cores = bench.machine().cores as u16;
        let mut way = Self { contender, scenario, scale, pools: Vec::new() };
        let mut best = (0, 0);
        for candidate in CANDIDATES {
            let threads = candidate * cores;
            let case = way.case("search", Pool::Fixed(threads), 1, scale * SEARCH);
            let handled = handled(&bench.measure(&case)?);
            if handled > best.0 {
                best = (handled, threads);
            } else if (handled as f64) < 0.9 * best.0 as f64 {
                break;
            }
        }
        way.pools.push((Mode::Default, Pool::Fixed(DEFAULT_THREADS * cores)));
        let scaling = Pool::Scaling { start: SCALING_START * cores, most: SCALING_MOST * cores };
        if bench.can_scale(contender, scaling)? {
            way.pools.push((Mode::Scaling, scaling));
        }
        way.pools.push((Mode::Ideal, Pool::Fixed(best.1)));
        Ok(way)
    }

    fn cases(&self, rounds: u32) -> Vec<Case> {
        (1..=rounds)
            .flat_map(|round| {
                super::in_turn(&self.pools, round)
                    .into_iter()
                    .map(move |(mode, pool)| self.case(mode.name(), *pool, round, self.scale))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    fn case(&self, mode: &str, pool: Pool, round: u32, scale: f64) -> Case {
        let seconds = |seconds: f64| Duration::from_secs_f64(seconds * scale);
        let stages = self
            .scenario
            .stages
            .iter()
            .map(|&(duration, users)| Stage { duration: seconds(duration), users: scaled_users(users) })
            .collect();
        Case {
            setup: Setup {
                contender: self.contender.clone(),
                pool,
                most_connections: self
                    .scenario
                    .stages
                    .iter()
                    .map(|stage| scaled_users(stage.1))
                    .max()
                    .unwrap_or(1),
                time_limit: self.scenario.time_limit.map(|limit| seconds(limit).max(Duration::from_secs(1))),
            },
            point: format!("{}/{mode}", self.scenario.name),
            round,
            load: LoadSpec {
                pace: Pace::Ramp { stages },
                connections: Connections::KeepAlive,
                limit: Limit::Stages,
                timeout: Duration::from_secs(60),
                mix: (self.scenario.requests)(scale),
                addresses: 1,
                processes: 1,
            },
            beside: None,
            lifetime: Lifetime::Fresh,
        }
    }
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
            "default: {DEFAULT_THREADS} threads per core, fixed; scaling: {SCALING_START} per core, up to \
             {SCALING_MOST}; ideal: the best of {CANDIDATES:?} per core, found by shorter loads. Stages take {scale} of \
             the original's times; users are scaled from {ORIGINAL_CORES} cores to this machine's."
        ),
        "Final size: the time from the start of the load until the pool had the most threads that it ever had."
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
        if mode == Mode::Ideal { "–".to_owned() } else { part_of_ideal(own, ideal) },
        median(&|m| percentile(m, 0.5), format::significant),
        median(&|m| percentile(m, 0.99), format::significant),
        own.iter().map(|m| m.outcome.failed()).sum::<u64>().to_string(),
        median(&|m| m.usage.cpu_us_per_request, format::significant),
        median(&|m| Some(f64::from(final_size(m)?.1)), format::count),
        median(&|m| Some(final_size(m)?.0), |seconds| format!("{seconds:.1} s")),
    ]
}

fn part_of_ideal(own: &[&Measurement], ideal: &[&Measurement]) -> String {
    let handled_of = |rounds: &[&Measurement]| -> Vec<f64> {
        let mut rounds = rounds.to_vec();
        rounds.sort_by_key(|m| m.round);
        rounds.iter().map(|m| handled(m) as f64).collect()
    };
    Comparison::of(&handled_of(own), &handled_of(ideal)).map_or_else(
        || "–".to_owned(),
        |comparison| {
            let ratio = comparison.ratio;
            let percent = |value: f64| format!("{:.0}", value * 100.0);
            format!("{} %", format::spread(&ratio, percent))
        },
    )
}

/// When the pool first had the most threads that it ever had, in seconds, and how many.
fn final_size(measurement: &Measurement) -> Option<(f64, u32)> {
    let ticks = &measurement.server_ticks;
    let most = ticks.iter().filter_map(|tick| tick.php_threads).max()?;
    let first = ticks.iter().find(|tick| tick.php_threads == Some(most))?;
    Some((first.time_s, most))
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
        axis("PHP threads", "", Scale::Linear),
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
