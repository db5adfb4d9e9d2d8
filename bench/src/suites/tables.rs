//! Parts of pages that the suites share.

use crate::bench::Bench;
use crate::peers::Description;
use crate::record::Measurement;
use crate::report::format;
use crate::report::page::{Alignment, Axis, Column, Figure, Point, Scale, Section, Series, Style, Table};
use crate::statistics::{ROUNDS_TO_PUBLISH, Spread, distinct};

/// Latest sending of an open loop, at the 99th percentile: a later generator has measured itself.
const LARGEST_LAG_MS: f64 = 1.0;

/// What the rows of `respond` are for.
pub const FLOOR: &str = "Regent without PHP answers the same bytes by its own respond, on the thread of the connection: \
                         its p99 ÷ mean is what the load generator, the machine and the server have of a tail with \
                         nothing behind them, and the part of the others' that is not their pools'.";

/// The measurements of one server at one point, over the rounds.
pub fn select<'m>(all: &'m [Measurement], point: &str, server: &str) -> Vec<&'m Measurement> {
    all.iter().filter(|m| m.point == point && m.server == server).collect()
}

/// Servers in the order in which they were first measured: identity and label.
pub fn servers(all: &[Measurement]) -> Vec<(String, String)> {
    let mut servers: Vec<(String, String)> = Vec::new();
    for measurement in all {
        if !servers.iter().any(|(identity, _)| *identity == measurement.server) {
            servers.push((measurement.server.clone(), measurement.label.clone()));
        }
    }
    servers
}

/// Points in the order in which they were first measured.
pub fn points(all: &[Measurement]) -> Vec<String> {
    let mut points: Vec<String> = Vec::new();
    for measurement in all {
        if !points.contains(&measurement.point) {
            points.push(measurement.point.clone());
        }
    }
    points
}

/// A figure of the measurements over the rounds.
pub fn spread(rounds: &[&Measurement], value: impl Fn(&Measurement) -> Option<f64>) -> Option<Spread> {
    Spread::of(rounds.iter().filter_map(|measurement| value(measurement)))
}

/// A percentile of all answers, right or not, in ms.
pub fn percentile(measurement: &Measurement, quantile: f64) -> Option<f64> {
    measurement.outcome.latencies().quantile_ms(quantile)
}

/// As a table shows it.
pub fn cell(spread: Option<Spread>, show: impl Fn(f64) -> String) -> String {
    spread.map_or_else(|| "–".to_owned(), |spread| format::spread(&spread, show))
}

/// The median alone.
pub fn median(spread: Option<Spread>, show: impl Fn(f64) -> String) -> String {
    spread.map_or_else(|| "–".to_owned(), |spread| show(spread.median))
}

/// A value against that of the reference in the same rounds.
pub fn ratio(
    own: &[&Measurement],
    reference: &[&Measurement],
    value: impl Fn(&Measurement) -> f64,
) -> String {
    let values = |rounds: &[&Measurement]| rounds.iter().map(|m| value(m)).collect::<Vec<f64>>();
    crate::statistics::Comparison::of(&values(own), &values(reference))
        .map_or_else(|| "–".to_owned(), |comparison| format::comparison(&comparison))
}

pub fn text(heading: &str) -> Column {
    Column { heading: heading.to_owned(), alignment: Alignment::Left }
}

pub fn number(heading: &str) -> Column {
    Column { heading: heading.to_owned(), alignment: Alignment::Right }
}

/// A figure with a series for each server, whose points are at the numbers that the measurements' points are.
pub fn over_points(
    all: &[Measurement],
    figure: Figure,
    style: Style,
    value: impl Fn(&Measurement) -> Option<f64>,
) -> Figure {
    let series = servers(all)
        .into_iter()
        .map(|(identity, label)| Series {
            points: points(all)
                .iter()
                .filter_map(|point| {
                    let y = spread(&select(all, point, &identity), &value)?;
                    Some(Point { x: point.parse().ok()?, y })
                })
                .collect(),
            identity,
            label,
            style,
        })
        .collect();
    Figure { series, ..figure }
}

pub fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), scale }
}

/// An empty figure.
pub fn figure(name: &str, title: &str, x: Axis, y: Axis) -> Figure {
    Figure { name: name.to_owned(), title: title.to_owned(), x, y, series: Vec::new(), limits: Vec::new() }
}

pub fn table(caption: &str, columns: Vec<Column>, rows: Vec<Vec<String>>) -> Table {
    Table { caption: caption.to_owned(), columns, rows }
}

/// A section without anything but its heading.
pub fn section(heading: &str) -> Section {
    Section {
        heading: heading.to_owned(),
        paragraphs: Vec::new(),
        tables: Vec::new(),
        figures: Vec::new(),
        notes: Vec::new(),
        attachments: Vec::new(),
    }
}

/// Where and when it was measured, for the top of a page.
pub fn introduction(bench: &Bench, rounds: u32, what: &str) -> Vec<String> {
    let machine = bench.machine();
    let mut lines = vec![
        what.to_owned(),
        format!(
            "Measured on {}, {} cores, {} of memory, {}, {}, by {}; server and load generator on the same machine; \
             {rounds} interleaved {}.",
            machine.cpu,
            machine.cores,
            format::bytes(machine.memory_bytes),
            machine.system,
            machine.kernel,
            bench.store().circumstances().bench,
            if rounds == 1 { "round" } else { "rounds" },
        ),
    ];
    if rounds < ROUNDS_TO_PUBLISH {
        lines.push(format!(
            "Fewer than {ROUNDS_TO_PUBLISH} rounds: a look, from which nothing may be claimed."
        ));
    }
    lines
}

/// What the servers were and how they were configured.
pub fn servers_section(bench: &Bench) -> Section {
    let servers = bench.store().servers();
    let mut section = section("Servers");
    section.tables.push(table(
        "",
        vec![text("server"), text("programs"), text("PHP")],
        distinct(servers.iter().map(server_row)),
    ));
    section.attachments = attachments(servers);
    section
}

/// Each configuration once, however often a server was started with it: only its port was another.
fn attachments(servers: &[Description]) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    let mut attachments: Vec<(String, String)> = Vec::new();
    for server in servers {
        for file in &server.configuration {
            let text = without_ports(&file.text);
            if seen.contains(&(&server.label, text.clone())) {
                continue;
            }
            let name = format!("{}: {}", server.label, file.name);
            let others = attachments.iter().filter(|(other, _)| other.starts_with(&name)).count();
            let name = if others == 0 { name } else { format!("{name} ({})", others + 1) };
            attachments.push((name, file.text.clone()));
            seen.push((&server.label, text));
        }
    }
    attachments
}

/// The text without numbers of five digits, which free ports are.
fn without_ports(text: &str) -> String {
    text.split_inclusive(|c: char| !c.is_ascii_digit())
        .filter(|part| part.trim_end_matches(|c: char| !c.is_ascii_digit()).len() != 5)
        .collect()
}

fn server_row(server: &Description) -> Vec<String> {
    let php = server.php.as_ref().map_or_else(
        || "–".to_owned(),
        |php| {
            let safety = if php.thread_safe { "thread-safe" } else { "not thread-safe" };
            format!("{} ({}), {safety}", php.php, php.sapi)
        },
    );
    vec![server.label.clone(), server.software.join("; "), php]
}

/// What makes a measurement doubtful, one line each; empty for a sound one.
pub fn doubts(all: &[Measurement]) -> Vec<String> {
    let mut doubts = Vec::new();
    for measurement in all {
        let Measurement { point, label, round, outcome, plan, .. } = measurement;
        let mut doubt = |what: String| doubts.push(format!("{point}, {label}, round {round}: {what}"));
        let lag = outcome.lag.quantile_ms(0.99).unwrap_or(0.0);
        if matches!(plan.pace, crate::generator::plan::Pace::Open { .. }) && lag > LARGEST_LAG_MS {
            doubt(format!(
                "void: the generator sent its requests late (99th percentile {lag:.1} ms, at most \
                 {LARGEST_LAG_MS} ms is allowed)"
            ));
        }
        let wrong: u64 = outcome.kinds.values().map(|kind| kind.failures.wrong).sum();
        if wrong > 0 {
            doubt(format!("{wrong} answers had the wrong body"));
        }
    }
    doubts.extend(drops(all));
    doubts
}

/// The kernel's silence at full listen queues, a line for each server.
fn drops(all: &[Measurement]) -> impl Iterator<Item = String> {
    servers(all).into_iter().filter_map(|(identity, label)| {
        let dropped: Vec<&Measurement> =
            all.iter().filter(|m| m.server == identity && m.usage.listen_drops > 0).collect();
        let total: u64 = dropped.iter().map(|m| m.usage.listen_drops).sum();
        let points = distinct(dropped.iter().map(|m| m.point.as_str())).join(", ");
        (total > 0).then(|| {
            format!("{label}: the kernel dropped {total} connections at full listen queues, in all rounds ({points})")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_that_differ_by_the_port_alone_are_equal() {
        assert_eq!(without_ports("listen 127.0.0.1:38679;"), without_ports("listen 127.0.0.1:41234;"));
        assert_ne!(without_ports("num_threads 2"), without_ports("num_threads 4"));
    }
}
