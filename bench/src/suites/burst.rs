//! How fast a pool grows when many requests come at once, and what is left of it when they have gone.

use std::time::Duration;

use anyhow::Result;

use super::tables::{
    axis, cell, doubts, figure, introduction, number, section, select, servers, servers_section, spread,
    table, text,
};
use super::{Length, Selection, Suite, in_turn};
use crate::bench::{Bench, Case, Lifetime, LoadSpec, Request, Setup, Watch};
use crate::generator::plan::{Connections, Limit, Pace, Stage};
use crate::peers::{Contender, Pool, Script};
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::{Figure, Page, Point, Scale, Section, Series, Style, Table};
use crate::statistics::Spread;
use crate::usage::ServerTick;

/// Threads at the start, and as many as there are users.
const START: u16 = 2;
const MOST: u16 = 100;
const USERS: u32 = MOST as u32;
const CONNECTIONS: Connections = Connections::KeepAlive;
/// Nothing waits longer: whoever grows by a thread in a while is measured too.
const PATIENCE: Duration = Duration::from_secs(60);
/// One user, so that what every server sets up for its first request is part of the memory before.
const QUIET: Duration = Duration::from_secs(1);
const BUSY: Duration = Duration::from_secs(2);

/// What the pool is confronted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// 100 requests of 100 ms at once, and no more.
    Burst,
    /// 100 users at once whose requests block for a second.
    Growth,
    /// 100 users for two seconds, and then nobody.
    Return,
}

impl Part {
    const ALL: [Self; 3] = [Self::Burst, Self::Growth, Self::Return];

    fn point(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::Growth => "growth",
            Self::Return => "return",
        }
    }

    fn load(self, idle: Duration) -> LoadSpec {
        let closed = |limit, sleep| LoadSpec {
            timeout: PATIENCE,
            ..LoadSpec::closed(USERS, CONNECTIONS, limit, blocking(sleep))
        };
        match self {
            Self::Burst => closed(Limit::Requests(u64::from(USERS)), 100),
            Self::Growth => closed(Limit::Duration(Duration::from_secs(3)), 1_000),
            Self::Return => {
                LoadSpec { pace: Pace::Ramp { stages: there_and_back(idle) }, ..closed(Limit::Stages, 100) }
            }
        }
    }

    /// The finer look costs part of a core, which the long part has no need of.
    fn watch(self) -> Watch {
        match self {
            Self::Burst | Self::Growth => Watch::Fine,
            Self::Return => Watch::Coarse,
        }
    }
}

fn blocking(milliseconds: u32) -> Request {
    let query = format!("sleep={milliseconds}&work=1000&output=1&iterations=1");
    Request { query, ..Request::get("request", Script::Sleep) }
}

fn there_and_back(idle: Duration) -> Vec<Stage> {
    let jump = |users, duration| [Stage { duration: Duration::ZERO, users }, Stage { duration, users }];
    [jump(1, QUIET), jump(USERS, BUSY), jump(0, idle)].concat()
}

pub fn run(bench: &mut Bench, selection: &Selection) -> Result<Page> {
    let mut contenders = Vec::new();
    for contender in &selection.contenders {
        if bench.can_scale(contender, pool())? {
            contenders.push(contender.clone());
        }
    }
    let cases = cases(&contenders, selection);
    bench.announce(&cases);
    let measurements = cases.iter().map(|case| bench.measure(case)).collect::<Result<Vec<_>>>()?;
    Ok(page(bench, selection, &measurements))
}

fn pool() -> Pool {
    Pool::Scaling { start: START, most: MOST }
}

fn cases(contenders: &[Contender], selection: &Selection) -> Vec<Case> {
    let idle = Duration::from_secs(match selection.length {
        Length::Tour => 5,
        Length::Short => 20,
        Length::Full => 60,
    });
    let mut cases = Vec::new();
    for round in 1..=selection.rounds {
        for part in Part::ALL {
            for contender in in_turn(contenders, round) {
                let setup = Setup::new(contender, pool(), USERS, CONNECTIONS);
                cases.push(Case {
                    lifetime: Lifetime::Fresh,
                    watch: part.watch(),
                    ..Case::new(setup, part.point(), round, part.load(idle))
                });
            }
        }
    }
    cases
}

fn page(bench: &Bench, selection: &Selection, all: &[Measurement]) -> Page {
    let mut growth = section("Growth");
    growth.tables.push(growth_table(all));
    growth.figures = vec![threads_over_time(all, Part::Growth)];
    growth.notes = vec![
        format!(
            "A pool that starts with {START} threads (php-fpm: children) and may have {MOST}. Burst: {USERS} requests \
             of 100 ms at once, from the first to the last byte of the last answer. Growth: {USERS} users at once \
             whose requests block for 1 s, until the pool has 95 % of the threads that it will have; the start of the \
             load generator, 10 to 20 ms, is part of it, and threads are counted every 10 ms."
        ),
        "All servers start with a booted pool: the boot of a worker is part of a thread's growth.".to_owned(),
    ];
    growth.notes.extend(doubts(all));
    Page {
        name: Suite::Burst.name().to_owned(),
        title: Suite::Burst.title().to_owned(),
        introduction: introduction(
            bench,
            selection.rounds,
            "How fast does a small pool grow when many blocking requests come at once, and does it give back what it \
             took?",
        ),
        sections: vec![growth, return_section(all), servers_section(bench)],
    }
}

fn growth_table(all: &[Measurement]) -> Table {
    let columns = vec![
        text("server"),
        number("burst done after ms"),
        number("failed"),
        number("threads in growth"),
        number("95 % of them after ms"),
        number("handled in growth"),
        number("failed"),
    ];
    let rows = servers(all).into_iter().map(|(identity, label)| {
        let burst = select(all, Part::Burst.point(), &identity);
        let growth = select(all, Part::Growth.point(), &identity);
        let failed = |own: &[&Measurement]| own.iter().map(|m| m.outcome.failed()).sum::<u64>().to_string();
        vec![
            label,
            cell(spread(&burst, |m| Some(m.outcome.duration_s * 1000.0)), format::count),
            failed(&burst),
            cell(spread(&growth, |m| Some(f64::from(grown(&m.server_ticks)?.threads))), format::count),
            cell(spread(&growth, |m| Some(grown(&m.server_ticks)?.after_s * 1000.0)), format::count),
            cell(spread(&growth, |m| Some(m.outcome.right() as f64)), format::count),
            failed(&growth),
        ]
    });
    table("Medians over the rounds, in parentheses the smallest and the largest", columns, rows.collect())
}

fn return_section(all: &[Measurement]) -> Section {
    let columns = vec![
        text("server"),
        number("threads before"),
        number("at most"),
        number("at the end"),
        number("memory before"),
        number("at most"),
        number("at the end"),
        number("end ÷ before"),
    ];
    let rows = servers(all).into_iter().map(|(identity, label)| {
        let own = select(all, Part::Return.point(), &identity);
        let of = |value: fn(&Footprint) -> f64| spread(&own, |m| Some(value(&footprint(&m.server_ticks)?)));
        let megabytes = |bytes: f64| format::bytes(bytes as u64);
        vec![
            label,
            cell(of(|f| f64::from(f.threads.before)), format::count),
            cell(of(|f| f64::from(f.threads.most)), format::count),
            cell(of(|f| f64::from(f.threads.end)), format::count),
            cell(of(|f| f.memory.before as f64), megabytes),
            cell(of(|f| f.memory.most as f64), megabytes),
            cell(of(|f| f.memory.end as f64), megabytes),
            cell(of(|f| f.memory.end as f64 / f.memory.before as f64), |ratio| format!("{ratio:.2}")),
        ]
    });
    let mut section = section("And back");
    section.tables.push(table("", columns, rows.collect()));
    section.figures = vec![threads_over_time(all, Part::Return)];
    section.notes = vec![format!(
        "One user for {} s, {USERS} for {} s, then nobody to the end of the plot. Memory is the sum of the processes' \
         resident sizes.",
        QUIET.as_secs(),
        BUSY.as_secs()
    )];
    section
}

/// The size of a pool that has grown, and when it had (nearly) reached it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grown {
    /// The most that there ever were.
    pub threads: u32,
    /// Until there were 95 % of them: a single late thread is not the growth.
    pub after_s: f64,
}

/// `None` where threads cannot be seen from outside.
pub fn grown(ticks: &[ServerTick]) -> Option<Grown> {
    let threads = ticks.iter().filter_map(|tick| tick.php_threads).max()?;
    let nearly = (f64::from(threads) * 0.95).ceil() as u32;
    let reached = ticks.iter().find(|tick| tick.php_threads.is_some_and(|threads| threads >= nearly))?;
    Some(Grown { threads, after_s: reached.time_s })
}

/// Threads and bytes of a pool that has been large and may be small again.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Footprint {
    threads: Course<u32>,
    memory: Course<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Course<T> {
    before: T,
    most: T,
    end: T,
}

impl<T: Copy + Ord> Course<T> {
    /// Of values and their times; before is the last one of the quiet time.
    fn of(values: &[(f64, T)]) -> Option<Self> {
        let quiet = QUIET.as_secs_f64();
        Some(Self {
            before: values.iter().rev().find(|(time, _)| *time < quiet)?.1,
            most: values.iter().map(|(_, value)| *value).max()?,
            end: values.last()?.1,
        })
    }
}

fn footprint(ticks: &[ServerTick]) -> Option<Footprint> {
    let threads: Vec<_> = ticks.iter().filter_map(|tick| Some((tick.time_s, tick.php_threads?))).collect();
    let memory: Vec<_> =
        ticks.iter().filter_map(|tick| Some((tick.time_s, tick.resources?.resident_bytes))).collect();
    Some(Footprint { threads: Course::of(&threads)?, memory: Course::of(&memory)? })
}

fn threads_over_time(all: &[Measurement], part: Part) -> Figure {
    let mut figure = figure(
        &format!("burst-{}-threads", part.point()),
        &format!("Threads of the pool over time: {}", part.point()),
        axis("time", "s", Scale::Linear),
        axis("threads of the pool", "", Scale::Linear),
    );
    figure.series = all
        .iter()
        .filter(|m| m.round == 1 && m.point == part.point())
        .map(|m| Series {
            label: m.label.clone(),
            identity: m.server.clone(),
            style: Style::Steps,
            points: m.server_ticks.iter().filter_map(thread_point).collect(),
        })
        .collect();
    figure
}

fn thread_point(tick: &ServerTick) -> Option<Point> {
    let threads = f64::from(tick.php_threads?);
    Some(Point { x: tick.time_s, y: Spread { median: threads, min: threads, max: threads } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Resources;

    fn tick(time_s: f64, threads: u32, resident_bytes: u64) -> ServerTick {
        let resources = Some(Resources { processes: 2, resident_bytes, cpu_s: 0.0 });
        ServerTick { time_s, php_threads: Some(threads), resources }
    }

    #[test]
    fn a_late_straggler_is_not_the_growth() {
        let ticks =
            [tick(0.0, 2, 0), tick(0.1, 60, 0), tick(0.2, 95, 0), tick(3.0, 100, 0), tick(4.0, 90, 0)];
        assert_eq!(grown(&ticks), Some(Grown { threads: 100, after_s: 0.2 }));
        assert_eq!(grown(&[ServerTick { php_threads: None, ..tick(0.0, 0, 0) }]), None);
    }

    #[test]
    fn a_pool_is_compared_with_itself_before_the_load() {
        let ticks = [tick(0.0, 2, 10), tick(0.9, 3, 30), tick(1.5, 100, 500), tick(9.0, 2, 33)];
        let footprint = footprint(&ticks).expect("all is known");
        assert_eq!(footprint.threads, Course { before: 3, most: 100, end: 2 });
        assert_eq!(footprint.memory, Course { before: 30, most: 500, end: 33 });
    }

    #[test]
    fn the_users_come_at_once_and_leave_at_once() {
        let stages = there_and_back(Duration::from_secs(5));
        let line: Vec<(u64, u32)> = stages.iter().map(|s| (s.duration.as_secs(), s.users)).collect();
        assert_eq!(line, [(0, 1), (1, 1), (0, 100), (2, 100), (0, 0), (5, 0)]);
    }
}
