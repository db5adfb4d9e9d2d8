//! B. The tail at fixed connections: keep-alive, closed loop, few threads and many.

use std::time::Duration;

use anyhow::Result;

use super::tables::{
    FLOOR, cell, doubts, introduction, median, number, percentile, points, section, select, servers,
    servers_section, spread, table, text,
};
use super::{Length, Selection, Suite, in_turn};
use crate::bench::{Bench, Case, LoadSpec, Request, Setup};
use crate::generator::plan::{Connections, Limit};
use crate::peers::{Pool, ServerKind};
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::Page;

/// Threads of the pool and connections.
const POINTS: [(u16, u32); 6] = [(8, 500), (1, 10), (2, 10), (2, 100), (4, 10), (4, 100)];

const MOST_CONNECTIONS: u32 = 500;
const CONNECTIONS: Connections = Connections::KeepAlive;

pub fn run(bench: &mut Bench, selection: &Selection) -> Result<Page> {
    let cases = cases(selection);
    bench.announce(&cases);
    let measurements = cases.iter().map(|case| bench.measure(case)).collect::<Result<Vec<_>>>()?;
    Ok(page(bench, selection, &measurements))
}

fn cases(selection: &Selection) -> Vec<Case> {
    let (points, duration) = match selection.length {
        Length::Tour => (&POINTS[..2], 2),
        Length::Short => (&POINTS[..], 4),
        Length::Full => (&POINTS[..], 15),
    };
    let mut cases = Vec::new();
    for round in 1..=selection.rounds {
        for &(threads, users) in points {
            for contender in in_turn(&selection.contenders, round) {
                let limit = Limit::Duration(Duration::from_secs(duration));
                let load = LoadSpec::closed(users, CONNECTIONS, limit, Request::hello());
                let setup = Setup::new(contender, Pool::Fixed(threads), MOST_CONNECTIONS, CONNECTIONS);
                cases.push(Case::new(setup, point(threads, users), round, load));
            }
        }
    }
    cases
}

fn point(threads: u16, users: u32) -> String {
    let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    format!("{threads} × {users} connections")
}

fn page(bench: &Bench, selection: &Selection, all: &[Measurement]) -> Page {
    let mut figures = section("Figures");
    let mut rows = Vec::new();
    for point in points(all) {
        for (identity, label) in servers(all) {
            let own = select(all, &point, &identity);
            if !own.is_empty() {
                rows.push(row(&point, &label, &own));
            }
        }
    }
    figures.tables.push(table(
        "Medians over the rounds, in parentheses the smallest and the largest",
        vec![
            text("point"),
            text("server"),
            number("req/s"),
            number("p50 ms"),
            number("p75 ms"),
            number("p90 ms"),
            number("p99 ms"),
            number("max ms"),
            number("p99 ÷ mean"),
            number("p99 ÷ p50"),
            number("p99 ÷ in turn"),
            number("CPU µs/req"),
            number("switches/req"),
            number("threads"),
            number("failed"),
        ],
        rows,
    ));
    figures.notes = vec![
        "p99 ÷ mean: 99th percentile ÷ (connections ÷ throughput), the mean latency of a closed loop by Little's \
         law: what tells servers apart, beside the throughput."
            .to_owned(),
        "p99 ÷ in turn: 99th percentile ÷ that of the times in which as many answers came as there are connections. \
         A server that answers strictly in the order of arrival has 1.00, however uneven the machine lets it run; \
         what is beyond 1 is requests that others overtook."
            .to_owned(),
    ];
    if all.iter().any(|m| m.server == ServerKind::Respond.identity()) {
        figures.notes.push(FLOOR.to_owned());
    }
    figures.notes.extend(doubts(all));
    Page {
        name: Suite::Fixed.name().to_owned(),
        title: Suite::Fixed.title().to_owned(),
        introduction: introduction(
            bench,
            selection.rounds,
            "How far is the tail from the mean when all threads are busy? A closed loop over keep-alive connections, \
             128 bytes; as many threads of PHP or of the native module (php-fpm: children) as the table says.",
        ),
        sections: vec![figures, servers_section(bench)],
    }
}

fn row(point: &str, label: &str, own: &[&Measurement]) -> Vec<String> {
    let quantile = |q| spread(own, |m| percentile(m, q));
    vec![
        point.to_owned(),
        label.to_owned(),
        cell(spread(own, |m| Some(m.outcome.throughput())), format::count),
        cell(quantile(0.5), format::significant),
        median(quantile(0.75), format::significant),
        median(quantile(0.9), format::significant),
        cell(quantile(0.99), format::significant),
        median(quantile(1.0), format::significant),
        cell(spread(own, tail), |value| format!("{value:.2}")),
        median(spread(own, |m| Some(percentile(m, 0.99)? / percentile(m, 0.5)?)), |v| format!("{v:.2}")),
        cell(spread(own, overtaken), |value| format!("{value:.2}")),
        median(spread(own, |m| m.usage.cpu_us_per_request), format::significant),
        median(spread(own, |m| m.usage.context_switches_per_request), format::significant),
        own.iter().map(|m| m.usage.threads).max().unwrap_or(0).to_string(),
        own.iter().map(|m| m.outcome.failed()).sum::<u64>().to_string(),
    ]
}

/// p99 ÷ p99 of the time in which every user has its turn.
fn overtaken(measurement: &Measurement) -> Option<f64> {
    Some(percentile(measurement, 0.99)? / measurement.outcome.turns.quantile_ms(0.99)?)
}

/// p99 ÷ (connections ÷ throughput).
fn tail(measurement: &Measurement) -> Option<f64> {
    let crate::generator::plan::Pace::Closed { users } = measurement.plan.pace else { return None };
    let mean_ms = f64::from(users) / measurement.outcome.throughput() * 1000.0;
    Some(percentile(measurement, 0.99)? / mean_ms)
}
