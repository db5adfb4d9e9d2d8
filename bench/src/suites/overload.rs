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
use crate::peers::{Contender, Pool, Script, Wait};
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
/// A tenth of a second is normal when its latency is at most so many times that of the time before.
const BACK_TO_NORMAL: f32 = 2.0;
/// Tenths of a second in a row that must be normal for the service to be back.
const STEADY: usize = 5;
/// The part of the later tenths that may be disturbed: single ones are on every machine that others use.
const TOLERATED: f64 = 0.05;

/// Which latency of a tenth of a second is looked at.
type OfTick = fn(&Tick) -> f32;
const MEDIAN: OfTick = |tick| tick.p50_ms;
const P99: OfTick = |tick| tick.p99_ms;

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

/// With the deadline that the clients have.
fn setup(contender: &Contender) -> Setup {
    Setup {
        deadline: Some(SOFT_REAL_TIME),
        ..Setup::new(contender, Pool::Fixed(THREADS), MOST_CONNECTIONS, Connections::KeepAlive)
    }
}

fn request() -> Request {
    Request { query: QUERY.to_owned(), ..Request::get("request", Script::Sleep) }
}

/// How much the threads can do, by a closed loop that keeps them all busy.
fn capacity(contender: &Contender, round: u32) -> Case {
    let limit = Limit::Duration(Duration::from_secs(2));
    let load = LoadSpec::closed(4 * u32::from(THREADS), Connections::KeepAlive, limit, request());
    Case { lifetime: Lifetime::Fresh, ..Case::new(setup(contender), "capacity", round, load) }
}

/// The normal load throughout, and the rest of the overload beside it in the middle.
fn overloaded(contender: &Contender, round: u32, overload: f64, capacity: f64, phases: Phases) -> Case {
    // Whole requests a second: an interrupted run finds the same case again.
    let rate = |part: f64| (capacity * part).round();
    let normal = open(rate(NORMAL), phases.total());
    Case {
        beside: Some(Beside { after: phases.before, load: open(rate(overload - NORMAL), phases.overload) }),
        lifetime: Lifetime::Fresh,
        ..Case::new(setup(contender), point(overload), round, normal)
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
    // Without a deadline or another bound, which would spare the server these requests for another reason.
    let setup = Setup {
        wait: Wait::Unbounded,
        ..Setup::new(contender, Pool::Fixed(1), MOST_CONNECTIONS, Connections::PerRequest)
    };
    Case {
        beside: Some(Beside { after: LEAVE_AFTER * 2, load: one_round(1, long) }),
        lifetime: Lifetime::Fresh,
        ..Case::new(setup, "clients that leave", round, one_round(LEAVING, impatient))
    }
}

fn page(bench: &Bench, selection: &Selection, phases: Phases, all: &[Measurement]) -> Page {
    let mut overload = section("Overload");
    overload.tables.push(overload_table(all, phases));
    overload.tables.push(recovery_table(all, phases));
    let figures =
        |factor: &f64| [("p50", MEDIAN), ("p99", P99)].map(|latency| over_time(all, *factor, latency));
    overload.figures = OVERLOADS.iter().flat_map(figures).flatten().collect();
    overload.notes = vec![
        format!(
            "{THREADS} threads, of php-fpm children; each request waits 10 ms. The normal load, {NORMAL} of the capacity, goes \
             on throughout; the rest comes in the middle for {} s, both as open loops. Latency is from the scheduled \
             moment.",
            phases.overload.as_secs()
        ),
        "Goodput: right answers within 3 s during the overload, ÷ capacity. Shed: answers of 503; Regent alone is told \
         that clients wait for 3 s, because the others have no such option. Memory at its peak is the sum of the \
         processes' resident sizes, in which what they share counts for each; at the end it counts once."
            .to_owned(),
        format!(
            "Back to normal: from the end of the overload to the first tenth of a second from which on {STEADY} in a row \
             are normal, and of all later ones at most {:.0} % are not. A tenth is normal when all its requests of the \
             normal load are answered rightly, and when its median (its p99) is at most {BACK_TO_NORMAL} times what it \
             was before, in the median of the tenths.",
            TOLERATED * 100.0
        ),
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
        number("p50 of shed ms"),
        number("p99 of shed ms"),
        number("no answer in 3 s"),
        number("memory at its peak"),
        number("at the end"),
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
                format::count(own.iter().map(|m| shed(m).count() as f64).sum::<f64>()),
                cell(spread(&own, |m| shed(m).quantile_ms(0.5)), format::significant),
                cell(spread(&own, |m| shed(m).quantile_ms(0.99)), format::significant),
                cell(spread(&own, |m| Some(unanswered(m))), |part| format!("{:.1} %", part * 100.0)),
                format::bytes(own.iter().map(|m| peak_memory(m)).max().unwrap_or(0)),
                format::bytes(own.iter().map(|m| m.usage.memory_bytes).max().unwrap_or(0)),
            ]);
        }
    }
    table("Medians over the rounds, in parentheses the smallest and the largest", columns, rows)
}

fn recovery_table(all: &[Measurement], phases: Phases) -> Table {
    let columns = vec![
        text("load"),
        text("server"),
        number("p50 before ms"),
        number("p50 back to normal after"),
        number("p99 before ms"),
        number("p99 back to normal after"),
    ];
    let mut rows = Vec::new();
    for factor in OVERLOADS {
        for (identity, label) in servers(all) {
            let own = select(all, &point(factor), &identity);
            if !own.is_empty() {
                let mut row = vec![point(factor), label];
                for latency in [MEDIAN, P99] {
                    let before = spread(&own, |m| Some(f64::from(before(m, phases, latency))));
                    row.push(cell(before, format::significant));
                    row.push(recovery_cell(&own, phases, latency));
                }
                rows.push(row);
            }
        }
    }
    table("The normal load before and after", columns, rows)
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
    let ticks = outcome.series.iter().skip(tick_at(from)).take(tick_at(to) - tick_at(from));
    ticks.map(|tick| u64::from(tick.right)).sum()
}

/// Latencies of the answers of 503.
fn shed(measurement: &Measurement) -> Latencies {
    let mut latencies = Latencies::default();
    for kind in both(measurement).flat_map(|outcome| outcome.kinds.values()) {
        if let Some(unavailable) = kind.statuses.get(&503) {
            latencies.merge(unavailable);
        }
    }
    latencies
}

/// In bytes, of all processes of the server.
fn peak_memory(measurement: &Measurement) -> u64 {
    let resources = measurement.server_ticks.iter().filter_map(|tick| tick.resources);
    resources.map(|resources| resources.resident_bytes).max().unwrap_or(0)
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

/// The latency of the normal load, in ms: the median of the tenths. The first second warms up.
fn before(measurement: &Measurement, phases: Phases, latency: OfTick) -> f32 {
    let ticks = &measurement.outcome.series;
    let answered = ticks.iter().take(tick_at(phases.before)).skip(10).filter(|tick| tick.right > 0);
    let mut latencies: Vec<f32> = answered.map(latency).collect();
    latencies.sort_by(f32::total_cmp);
    latencies.get(latencies.len() / 2).copied().unwrap_or(0.0)
}

/// From the end of the overload; `None` when the service does not come back while it is watched.
fn recovery(measurement: &Measurement, phases: Phases, latency: OfTick) -> Option<Duration> {
    let limit = BACK_TO_NORMAL * before(measurement, phases, latency);
    let ticks = &measurement.outcome.series;
    let end = tick_at(phases.total()).min(ticks.len());
    let after = ticks.get(tick_at(phases.before + phases.overload)..end)?;
    let normal: Vec<bool> =
        after.iter().map(|tick| tick.right > 0 && tick.failed == 0 && latency(tick) <= limit).collect();
    back_to_normal(&normal).map(|tenths| Duration::from_millis(100 * tenths as u64))
}

/// The index of the first tenth of a second from which on the service is back.
fn back_to_normal(normal: &[bool]) -> Option<usize> {
    let is_back = |later: &[bool]| {
        let disturbed = later.iter().filter(|normal| !**normal).count();
        later[..STEADY].iter().all(|normal| *normal) && disturbed as f64 <= TOLERATED * later.len() as f64
    };
    (0..(normal.len() + 1).saturating_sub(STEADY)).find(|&start| is_back(&normal[start..]))
}

fn tick_at(time: Duration) -> usize {
    (time.as_millis() / 100) as usize
}

fn recovery_cell(own: &[&Measurement], phases: Phases, latency: OfTick) -> String {
    if own.iter().any(|m| recovery(m, phases, latency).is_none()) {
        return format!("not within {} s", phases.after.as_secs());
    }
    let seconds = spread(own, |m| Some(recovery(m, phases, latency)?.as_secs_f64()));
    cell(seconds, |seconds| format!("{seconds:.1} s"))
}

/// The normal load before, during and after, of the first round.
fn over_time(all: &[Measurement], overload: f64, (name, latency): (&str, OfTick)) -> Option<Figure> {
    let point = point(overload);
    let mut figure = figure(
        &format!("overload-{}-{name}", overload.to_string().replace('.', "-")),
        &format!("The normal load's {name} before, during and after {point}"),
        axis("time", "s", Scale::Linear),
        axis(&format!("{name} latency"), "ms", Scale::Logarithmic),
    );
    figure.limits.push((SOFT_REAL_TIME.as_secs_f64() * 1000.0, "3 s".to_owned()));
    let first = all.iter().filter(|m| m.point == point && m.round == 1);
    figure.series = first.map(|m| curve(m, latency)).collect();
    (!figure.series.is_empty()).then_some(figure)
}

fn curve(measurement: &Measurement, latency: OfTick) -> Series {
    let point = |(index, tick): (usize, &Tick)| {
        let y = f64::from(latency(tick));
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
        "{LEAVING} clients ask for a request of {} ms on a server with one thread and leave after {} ms; {} ms \
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
    ((answer_ms - 1.5 * own) / own).max(0.0).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_back_when_a_half_second_and_nearly_all_that_follows_are_normal() {
        let with_disturbed =
            |tenths: &[usize]| -> Vec<bool> { (0..80).map(|i| !tenths.contains(&i)).collect() };
        assert_eq!(back_to_normal(&with_disturbed(&[])), Some(0));
        assert_eq!(back_to_normal(&with_disturbed(&[0, 1, 2, 6])), Some(7));
        // One hiccup of the machine later is not the overload's doing, ten are.
        assert_eq!(back_to_normal(&with_disturbed(&[0, 40])), Some(1));
        let long: Vec<usize> = (30..40).collect();
        assert_eq!(back_to_normal(&with_disturbed(&long)), Some(40));
    }

    #[test]
    fn a_service_that_is_disturbed_to_the_end_is_not_back() {
        assert_eq!(back_to_normal(&[false; 80]), None);
        assert_eq!(back_to_normal(&[true, true, true]), None);
        assert_eq!(back_to_normal(&(0..80).map(|i| i % 4 != 0).collect::<Vec<_>>()), None);
    }

    #[test]
    fn a_wait_for_departed_requests_is_counted_in_requests() {
        // Its own second, and up to half a second for what was running.
        assert_eq!(format::count(executed(1_005.0)), "0");
        assert_eq!(executed(1_450.0), 0.0);
        // Nineteen others were run before it.
        assert_eq!(executed(20_020.0), 19.0);
    }
}
