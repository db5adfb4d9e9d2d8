//! Static files, large answers and uploads.

use std::time::Duration;

use anyhow::Result;

use super::tables::{
    cell, doubts, introduction, median, number, percentile, points, ratio, section, select, servers,
    servers_section, spread, table, text,
};
use super::{Length, Selection, Suite, in_turn};
use crate::bench::{Bench, Case, LoadSpec, Request, Setup};
use crate::generator::plan::{Connections, Expect, Limit};
use crate::peers::{Pool, Script};
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::Page;
use crate::site::StaticFile;

const THREADS: u16 = 8;
const MOST_CONNECTIONS: u32 = 100;
const CONNECTIONS: Connections = Connections::KeepAlive;
const MEBIBYTE: u64 = 1 << 20;

/// A point, its users, and its request.
fn points_to_measure() -> Vec<(&'static str, u32, Request)> {
    let file = |name, file: StaticFile| Request {
        expect: Expect::Bytes(file.bytes() as u64),
        ..Request::get(name, Script::Static(file))
    };
    vec![
        ("file of 1 KiB", 100, file("small", StaticFile::Small)),
        ("file of 100 KiB", 100, file("medium", StaticFile::Medium)),
        ("file of 10 MiB", 10, file("large", StaticFile::Large)),
        (
            "answer of 1 MiB by PHP",
            20,
            Request {
                query: format!("bytes={MEBIBYTE}"),
                expect: Expect::Bytes(MEBIBYTE),
                ..Request::get("answer", Script::Large)
            },
        ),
        (
            "upload of 1 MiB to PHP",
            20,
            Request {
                body_bytes: MEBIBYTE,
                expect: Expect::Body(MEBIBYTE.to_string()),
                ..Request::get("upload", Script::Upload)
            },
        ),
    ]
}

pub fn run(bench: &mut Bench, selection: &Selection) -> Result<Page> {
    let cases = cases(selection);
    bench.announce(&cases);
    let measurements = cases.iter().map(|case| bench.measure(case)).collect::<Result<Vec<_>>>()?;
    Ok(page(bench, selection, &measurements))
}

fn cases(selection: &Selection) -> Vec<Case> {
    let duration = match selection.length {
        Length::Tour => 1,
        Length::Short => 3,
        Length::Full => 10,
    };
    let mut cases = Vec::new();
    for round in 1..=selection.rounds {
        for (point, users, request) in points_to_measure() {
            for contender in in_turn(&selection.contenders, round) {
                let limit = Limit::Duration(Duration::from_secs(duration));
                let load = LoadSpec::closed(users, CONNECTIONS, limit, request.clone());
                let setup = Setup::new(contender, Pool::Fixed(THREADS), MOST_CONNECTIONS, CONNECTIONS);
                cases.push(Case::new(setup, point, round, load));
            }
        }
    }
    cases
}

fn page(bench: &Bench, selection: &Selection, all: &[Measurement]) -> Page {
    let mut rows = Vec::new();
    for point in points(all) {
        for (identity, label) in servers(all) {
            let own = select(all, &point, &identity);
            if !own.is_empty() {
                let reference = if identity == "fpm" { Vec::new() } else { select(all, &point, "fpm") };
                rows.push(row(&point, &label, &own, &reference));
            }
        }
    }
    let columns = vec![
        text("load"),
        text("server"),
        number("users"),
        number("req/s"),
        number("× fpm"),
        number("MiB/s"),
        number("p50 ms"),
        number("p99 ms"),
        number("CPU µs/req"),
        number("memory"),
        number("failed"),
    ];
    let mut figures = section("Figures");
    figures.tables.push(table(
        "Medians over the rounds, in parentheses the smallest and the largest",
        columns,
        rows,
    ));
    figures.notes = doubts(all);
    Page {
        name: Suite::Files.name().to_owned(),
        title: Suite::Files.title().to_owned(),
        introduction: introduction(
            bench,
            selection.rounds,
            "How fast are bytes that are not hello world? A closed loop over keep-alive connections.",
        ),
        sections: vec![figures, servers_section(bench)],
    }
}

fn row(point: &str, label: &str, own: &[&Measurement], reference: &[&Measurement]) -> Vec<String> {
    let users = match own[0].plan.pace {
        crate::generator::plan::Pace::Closed { users } => users.to_string(),
        _ => String::new(),
    };
    vec![
        point.to_owned(),
        label.to_owned(),
        users,
        cell(spread(own, |m| Some(m.outcome.throughput())), format::count),
        ratio(own, reference, |m| m.outcome.throughput()),
        median(spread(own, |m| Some(mebibytes_per_second(m))), format::count),
        cell(spread(own, |m| percentile(m, 0.5)), format::significant),
        cell(spread(own, |m| percentile(m, 0.99)), format::significant),
        median(spread(own, |m| m.usage.cpu_us_per_request), format::significant),
        format::bytes(own.iter().map(|m| m.usage.memory_bytes).max().unwrap_or(0)),
        own.iter().map(|m| m.outcome.failed()).sum::<u64>().to_string(),
    ]
}

/// In either direction.
fn mebibytes_per_second(measurement: &Measurement) -> f64 {
    let sent = measurement.plan.mix[0].body_bytes * measurement.outcome.right();
    let received: u64 = measurement.outcome.kinds.values().map(|kind| kind.bytes).sum();
    (sent + received) as f64 / MEBIBYTE as f64 / measurement.outcome.duration_s
}
