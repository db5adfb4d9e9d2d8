//! D. Overload and recovery: what is left of the service when more comes than can be done, how soon is it back, and
//! what becomes of the requests of clients that have left?

use std::time::Duration;

use anyhow::Result;

use super::tables::{
    axis, cell, doubts, figure, introduction, number, section, select, servers, servers_section, spread,
    table, text,
};
use super::{Length, Selection, Suite, in_turn};
use crate::bench::{Bench, Beside, Case, Lifetime, LoadSpec, Request, SOFT_REAL_TIME, Setup};
use crate::generator::histogram::Latencies;
use crate::generator::outcome::{Outcome, Tick};
use crate::generator::plan::{Connections, Limit, Pace};
use crate::peers::{Contender, Pool, Script};
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::{Figure, Page, Point, Scale, Section, Series, Style, Table};
use crate::statistics::Spread;

const THREADS: u16 = 8;
const MOST_CONNECTIONS: u32 = 8_000;
/// What every request does: a wait of 10 ms and a little work.
const QUERY: &str = "sleep=10&work=1000&output=1&iterations=1";
/// The normal load, as a part of the capacity, that goes on through the overload.
const NORMAL: f64 = 0.5;
/// Total load during the overload, in capacities.
const OVERLOADS: [f64; 2] = [1.5, 3.0];
/// Clients that leave, when they do, and what their requests would take on the only thread.
const LEAVING: u32 = 20;
const LEAVE_AFTER: Duration = Duration::from_millis(500);
const LONG_REQUEST: Duration = Duration::from_secs(1);
/// A tenth of a second is normal again when its median is at most so many times that of the time before.
const BACK_TO_NORMAL: f32 = 2.0;

/// Length of the time before, of the overload, and of the time after.
#[derive(Clone, Copy, Debug)]
struct Phases {
    before: Duration,
    overload: Duration,
    after: Duration,
}

impl Phases {
    fn of(length: Length) -> Self {
        let seconds = |before, overload, after| Self {
            before: Duration::from_secs(before),
            overload: Duration::from_secs(overload),
            after: Duration::from_secs(after),
        };
        match length {
            Length::Tour => seconds(2, 4, 4),
            Length::Short => seconds(3, 10, 8),
            Length::Full => seconds(5, 30, 15),
        }
    }

    fn total(self) -> Duration {
        self.before + self.overload + self.after
    }
}

pub fn run(bench: &mut Bench, selection: &Selection) -> Result<Page> {
    let phases = Phases::of(selection.length);
    let overloads = if selection.length == Length::Tour { &OVERLOADS[1..] } else { &OVERLOADS };
    let cases_of = |contender: &Contender, round: u32, capacity: f64| -> Vec<Case> {
        let overloaded =
            overloads.iter().map(|&factor| overloaded(contender, round, factor, capacity, phases));
        overloaded.chain([leaving(contender, round)]).collect()
    };
    let mut expected = Vec::new();
    for round in 1..=selection.rounds {
        for contender in &selection.contenders {
            expected.push(capacity(contender, round));
            // Its rates are not known yet, its durations are.
            expected.extend(cases_of(contender, round, 1.0));
        }
    }
    bench.announce(&expected);

    let mut all = Vec::new();
    for round in 1..=selection.rounds {
        let mut cases = Vec::new();
        for contender in in_turn(&selection.contenders, round) {
            let capacity = bench.measure(&capacity(contender, round))?;
            cases.extend(cases_of(contender, round, capacity.outcome.throughput()));
            all.push(capacity);
        }
        for case in &cases {
            all.push(bench.measure(case)?);
        }
    }
    Ok(page(bench, selection, phases, &all))
}

fn setup(contender: &Contender, threads: u16) -> Setup {
    Setup {
        contender: contender.clone(),
        pool: Pool::Fixed(threads),
        most_connections: MOST_CONNECTIONS,
        time_limit: None,
    }
}

fn request() -> Request {
    Request { query: QUERY.to_owned(), ..Request::get("request", Script::Sleep) }
}

/// How much the threads can do, by a closed loop that keeps them all busy.
fn capacity(contender: &Contender, round: u32) -> Case {
    let limit = Limit::Duration(Duration::from_secs(2));
    let load = LoadSpec::closed(4 * u32::from(THREADS), Connections::KeepAlive, limit, request());
    let setup = setup(contender, THREADS);
    Case { setup, point: "capacity".to_owned(), round, load, beside: None, lifetime: Lifetime::Fresh }
}

/// The normal load throughout, and the rest of the overload beside it in the middle.
fn overloaded(contender: &Contender, round: u32, overload: f64, capacity: f64, phases: Phases) -> Case {
    // Whole requests a second: an interrupted run finds the same case again.
    let rate = |part: f64| (capacity * part).round();
    Case {
        setup: setup(contender, THREADS),
        point: point(overload),
        round,
        load: open(rate(NORMAL), phases.total()),
        beside: Some(Beside { after: phases.before, load: open(rate(overload - NORMAL), phases.overload) }),
        lifetime: Lifetime::Fresh,
    }
}

fn open(rate: f64, duration: Duration) -> LoadSpec {
    LoadSpec {
        pace: Pace::Open { rate, most_connections: MOST_CONNECTIONS },
        connections: Connections::KeepAlive,
        limit: Limit::Duration(duration),
        timeout: SOFT_REAL_TIME,
        mix: vec![request()],
        addresses: 1,
        processes: 1,
    }
}

fn point(overload: f64) -> String {
    format!("{overload} × capacity")
}

/// Clients that leave while the only thread is busy, and one that comes after them: how long does it wait for them?
fn leaving(contender: &Contender, round: u32) -> Case {
    let long = Request {
        query: format!("sleep={}&work=1&output=1&iterations=1", LONG_REQUEST.as_millis()),
        ..Request::get("patient", Script::Sleep)
    };
    let impatient = Request { name: "leaving", leave_after: Some(LEAVE_AFTER), ..long.clone() };
    let wait = LONG_REQUEST * (LEAVING + 5);
    let one_round = |users: u32, request: Request| LoadSpec {
        timeout: wait,
        ..LoadSpec::closed(users, Connections::PerRequest, Limit::Requests(u64::from(users)), request)
    };
    Case {
        setup: setup(contender, 1),
        point: "clients that leave".to_owned(),
        round,
        load: one_round(LEAVING, impatient),
        beside: Some(Beside { after: LEAVE_AFTER * 2, load: one_round(1, long) }),
        lifetime: Lifetime::Fresh,
    }
}

fn page(bench: &Bench, selection: &Selection, phases: Phases, all: &[Measurement]) -> Page {
    let mut overload = section("Overload");
    overload.tables.push(overload_table(all, phases));
    overload.figures = OVERLOADS.iter().filter_map(|factor| over_time(all, &point(*factor))).collect();
    overload.notes = vec![
        format!(
            "{THREADS} PHP threads or children; each request waits 10 ms. The normal load, {NORMAL} of the capacity, goes \
             on throughout; the rest comes in the middle for {} s, both as open loops. Latency is from the scheduled \
             moment.",
            phases.overload.as_secs()
        ),
        "Goodput: right answers within 3 s during the overload, ÷ capacity. Shed: answers of 503. Back to normal: from \
         the end of the overload until the medians of the normal load stay within twice the median before."
            .to_owned(),
    ];
    overload.notes.extend(doubts(all));
    Page {
        name: Suite::Overload.name().to_owned(),
        title: Suite::Overload.title().to_owned(),
        introduction: introduction(
            bench,
            selection.rounds,
            "What is left of the service when more comes than can be done, and how soon is it back to normal?",
        ),
        sections: vec![overload, departed(all), servers_section(bench)],
    }
}

fn overload_table(all: &[Measurement], phases: Phases) -> Table {
    let columns = vec![
        text("load"),
        text("server"),
        number("capacity/s"),
        number("goodput"),
        number("shed"),
        number("p99 of shed ms"),
        number("no answer in 3 s"),
        number("p50 before ms"),
        number("back to normal after"),
        number("memory"),
    ];
    let mut rows = Vec::new();
    for factor in OVERLOADS {
        for (identity, label) in servers(all) {
            let own = select(all, &point(factor), &identity);
            if own.is_empty() {
                continue;
            }
            let capacities = select(all, "capacity", &identity);
            let capacity = spread(&capacities, |m| Some(m.outcome.throughput()));
            let whole = capacity.map_or(1.0, |capacity| capacity.median);
            rows.push(vec![
                point(factor),
                label.clone(),
                cell(capacity, format::count),
                cell(spread(&own, |m| Some(goodput(m, phases) / whole)), |part| {
                    format!("{:.0} %", part * 100.0)
                }),
                format::count(own.iter().map(|m| shed(m).0 as f64).sum::<f64>()),
                cell(spread(&own, |m| shed(m).1), format::significant),
                cell(spread(&own, |m| Some(unanswered(m))), |part| format!("{:.1} %", part * 100.0)),
                cell(spread(&own, |m| Some(f64::from(median_before(m, phases)))), format::significant),
                recovery_cell(&own, phases),
                format::bytes(own.iter().map(|m| m.usage.memory_bytes).max().unwrap_or(0)),
            ]);
        }
    }
    table("Medians over the rounds, in parentheses the smallest and the largest", columns, rows)
}

/// The normal and the additional load's outcomes.
fn both(measurement: &Measurement) -> impl Iterator<Item = &Outcome> {
    std::iter::once(&measurement.outcome).chain(measurement.beside.as_ref().map(|(_, outcome)| outcome))
}

/// Right answers a second in the time of the overload; requests are given up after 3 s, so that all are in time.
fn goodput(measurement: &Measurement, phases: Phases) -> f64 {
    let normal = ticks_between(&measurement.outcome, phases.before, phases.before + phases.overload);
    let beside = measurement
        .beside
        .as_ref()
        .map_or(0, |(_, outcome)| ticks_between(outcome, Duration::ZERO, phases.overload));
    (normal + beside) as f64 / phases.overload.as_secs_f64()
}

fn ticks_between(outcome: &Outcome, from: Duration, to: Duration) -> u64 {
    let index = |time: Duration| (time.as_millis() / 100) as usize;
    outcome
        .series
        .iter()
        .skip(index(from))
        .take(index(to) - index(from))
        .map(|tick| u64::from(tick.right))
        .sum()
}

/// Answers of 503, and the 99th percentile of their latency in ms.
fn shed(measurement: &Measurement) -> (u64, Option<f64>) {
    let mut latencies = Latencies::default();
    for kind in both(measurement).flat_map(|outcome| outcome.kinds.values()) {
        if let Some(unavailable) = kind.statuses.get(&503) {
            latencies.merge(unavailable);
        }
    }
    (latencies.count(), latencies.quantile_ms(0.99))
}

/// The part of all requests that got no answer at all in time.
fn unanswered(measurement: &Measurement) -> f64 {
    let (mut lost, mut all) = (0, 0);
    for outcome in both(measurement) {
        all += outcome.requests();
        lost += outcome
            .kinds
            .values()
            .map(|k| k.failures.timeout + k.failures.broken + k.failures.connect)
            .sum::<u64>();
    }
    lost as f64 / all.max(1) as f64
}

/// Of the normal load, in ms. The first second warms up.
fn median_before(measurement: &Measurement, phases: Phases) -> f32 {
    let ticks = &measurement.outcome.series;
    let end = (phases.before.as_millis() / 100) as usize;
    let mut medians: Vec<f32> =
        ticks.iter().take(end).skip(10).filter(|tick| tick.right > 0).map(|tick| tick.p50_ms).collect();
    medians.sort_by(f32::total_cmp);
    medians.get(medians.len() / 2).copied().unwrap_or(0.0)
}

/// From the end of the overload until every later tick is normal; `None` when the last one is not.
fn recovery(measurement: &Measurement, phases: Phases) -> Option<Duration> {
    let normal = BACK_TO_NORMAL * median_before(measurement, phases);
    let end = ((phases.before + phases.overload).as_millis() / 100) as usize;
    let last = (phases.total().as_millis() / 100) as usize;
    let ticks = measurement.outcome.series.get(end..last.min(measurement.outcome.series.len()))?;
    let disturbed = ticks.iter().rposition(|tick| tick.right == 0 || tick.p50_ms > normal);
    match disturbed {
        None => Some(Duration::ZERO),
        Some(index) if index + 1 == ticks.len() => None,
        Some(index) => Some(Duration::from_millis(100 * (index as u64 + 1))),
    }
}

fn recovery_cell(own: &[&Measurement], phases: Phases) -> String {
    if own.iter().any(|m| recovery(m, phases).is_none()) {
        return format!("not within {} s", phases.after.as_secs());
    }
    cell(spread(own, |m| Some(recovery(m, phases)?.as_secs_f64())), |seconds| format!("{seconds:.1} s"))
}

/// The normal load's medians, before, during and after, of the first round.
fn over_time(all: &[Measurement], point: &str) -> Option<Figure> {
    let first: Vec<&Measurement> = all.iter().filter(|m| m.point == point && m.round == 1).collect();
    let name = format!("overload-{}", point.split(' ').next().unwrap_or_default().replace('.', "-"));
    let mut figure = figure(
        &name,
        &format!("The normal load's latency before, during and after {point}"),
        axis("time", "s", Scale::Linear),
        axis("p50 latency", "ms", Scale::Logarithmic),
    );
    figure.limits.push((SOFT_REAL_TIME.as_secs_f64() * 1000.0, "3 s".to_owned()));
    figure.series = first.iter().map(|m| medians(m)).collect();
    (!figure.series.is_empty()).then_some(figure)
}

fn medians(measurement: &Measurement) -> Series {
    let point = |(index, tick): (usize, &Tick)| {
        let y = f64::from(tick.p50_ms);
        Point { x: index as f64 / 10.0, y: Spread { median: y, min: y, max: y } }
    };
    Series {
        label: measurement.label.clone(),
        identity: measurement.server.clone(),
        style: Style::Thin,
        points: measurement.outcome.series.iter().enumerate().map(point).collect(),
    }
}

/// A request that comes after the departed ones waits for those of them that are run nevertheless.
fn departed(all: &[Measurement]) -> Section {
    let mut section = section("Clients that leave");
    let rows = servers(all).into_iter().filter_map(|(identity, label)| {
        let own = select(all, "clients that leave", &identity);
        let wait = spread(&own, |m| m.beside.as_ref()?.1.latencies().quantile_ms(1.0))?;
        let executed = |ms: f64| format::count(executed(ms));
        Some(vec![label, cell(Some(wait), format::count), cell(Some(wait), executed)])
    });
    section.tables.push(table(
        "",
        vec![text("server"), number("answer after ms"), number("departed requests that were run")],
        rows.collect(),
    ));
    section.notes.push(format!(
        "{LEAVING} clients ask for a request of {} ms on a server with one PHP thread and leave after {} ms; {} ms \
         later one comes that waits for its answer. What it waits longer than for its own request and the rest of the \
         first one was spent on requests whose clients had left.",
        LONG_REQUEST.as_millis(),
        LEAVE_AFTER.as_millis(),
        LEAVE_AFTER.as_millis(),
    ));
    section
}

/// The request in execution when the clients left, which started 1 s before, is over when the patient one comes, or
/// nearly; only whole further ones count.
fn executed(answer_ms: f64) -> f64 {
    let own = LONG_REQUEST.as_secs_f64() * 1000.0;
    ((answer_ms - 1.5 * own) / own).ceil().max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_departed_requests_is_counted_in_requests() {
        // Its own second, and up to half a second for what was running.
        assert_eq!(executed(1_005.0), 0.0);
        assert_eq!(executed(1_450.0), 0.0);
        // Nineteen others were run before it.
        assert_eq!(executed(20_020.0), 19.0);
    }
}
