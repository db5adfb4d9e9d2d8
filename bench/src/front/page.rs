//! The page of the results.

use super::case::{Case, Sample};
use super::server::{Front, Server};
use super::{Machine, Options};
use crate::report::format;
use crate::report::page::{Page, Section};
use crate::statistics::{ROUNDS_TO_PUBLISH, Spread};
use crate::suites::tables::{cell, median, number, section, table, text};

/// What the others are compared with.
const REFERENCE: Front = Front::Nginx;

pub fn page(options: &Options, machine: &Machine, servers: &[Server], samples: &[Sample]) -> Page {
    Page {
        name: "front".to_owned(),
        title: "TLS, HTTP/2 and compression".to_owned(),
        introduction: introduction(options, machine),
        sections: vec![handshakes(servers, samples), requests(servers, samples), described(servers)],
    }
}

fn introduction(options: &Options, machine: &Machine) -> Vec<String> {
    let rounds = options.rounds;
    let mut lines = vec![
        "What does the front cost before PHP has anything to do, and what does it add to PHP's answers? Closed loops by \
         h2load over TLS, handshakes by openssl s_time."
            .to_owned(),
        format!(
            "Measured on {}, {} cores, {} of memory, {}, {}; server and load generator on the same machine; {rounds} \
             interleaved {} of {} s each.",
            machine.cpu,
            machine.cores,
            format::bytes(machine.memory_bytes),
            machine.system,
            machine.kernel,
            if rounds == 1 { "round" } else { "rounds" },
            options.duration.as_secs(),
        ),
    ];
    if rounds < ROUNDS_TO_PUBLISH {
        lines.push(format!(
            "Fewer than {ROUNDS_TO_PUBLISH} rounds: a look, from which nothing may be claimed."
        ));
    }
    lines
}

fn handshakes(servers: &[Server], samples: &[Sample]) -> Section {
    let mut section = section("Handshakes");
    let columns = vec![
        text("handshake"),
        text("server"),
        number("a second"),
        number("× nginx"),
        number("CPU µs each"),
        number("failed"),
    ];
    let rows = rows(
        servers,
        samples,
        |case| matches!(case, Case::Handshakes(_)),
        |own| {
            vec![
                cell(of(own, |sample| Some(sample.figures.per_second)), format::count),
                ratio(own, samples),
                median(of(own, |sample| sample.usage.cpu_us_per_request), format::significant),
                failed(own),
            ]
        },
    );
    section.tables.push(table(CAPTION, columns, rows));
    section.notes.push(
        "Four clients, each one connection after the other, with a key of P-256. Full ones are of TLS 1.3; resumed ones of \
         TLS 1.2, since s_time does not wait for the ticket of TLS 1.3. openssl has a part of the same cores, so the CPU \
         time of the server says more than the number a second. OpenSSL before 3.5 has no X25519MLKEM768, which browsers \
         ask for: they cost Regent and Caddy more than shown."
            .to_owned(),
    );
    section
}

fn requests(servers: &[Server], samples: &[Sample]) -> Section {
    let mut section = section("Requests");
    let columns = vec![
        text("load, connections × requests at once"),
        text("server"),
        number("req/s"),
        number("× nginx"),
        number("p50 ms"),
        number("p99 ms"),
        number("CPU µs/req"),
        number("body bytes"),
        number("memory"),
        number("failed"),
    ];
    let rows = rows(
        servers,
        samples,
        |case| matches!(case, Case::Requests(_)),
        |own| {
            vec![
                cell(of(own, |sample| Some(sample.figures.per_second)), format::count),
                ratio(own, samples),
                cell(of(own, |sample| sample.figures.p50_ms), format::significant),
                cell(of(own, |sample| sample.figures.p99_ms), format::significant),
                median(of(own, |sample| sample.usage.cpu_us_per_request), format::significant),
                median(of(own, |sample| sample.figures.body_bytes), format::count),
                format::bytes(own.iter().map(|sample| sample.usage.memory_bytes).max().unwrap_or(0)),
                failed(own),
            ]
        },
    );
    section.tables.push(table(CAPTION, columns, rows));
    section.notes.push(
        "What is compressed is 100 kB that gzip makes very small, so these rows are about the work, not about the ratio; \
         the level is the same on all servers."
            .to_owned(),
    );
    section
}

const CAPTION: &str = "Medians over the rounds, in parentheses the smallest and the largest";

fn rows(
    servers: &[Server],
    samples: &[Sample],
    is_meant: impl Fn(&Case) -> bool,
    cells: impl Fn(&[&Sample]) -> Vec<String>,
) -> Vec<Vec<String>> {
    let mut cases: Vec<&Case> = Vec::new();
    for sample in samples.iter().filter(|sample| is_meant(&sample.case)) {
        if !cases.contains(&&sample.case) {
            cases.push(&sample.case);
        }
    }
    let row = |case: &Case, server: &Server| {
        let own = select(samples, case, server.front);
        [vec![case.to_string(), server.front.to_string()], cells(&own)].concat()
    };
    cases.iter().flat_map(|case| servers.iter().map(|server| row(case, server))).collect()
}

fn select<'s>(samples: &'s [Sample], case: &Case, front: Front) -> Vec<&'s Sample> {
    samples.iter().filter(|sample| sample.case == *case && sample.front == front).collect()
}

fn of(own: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
    Spread::of(own.iter().filter_map(|sample| value(sample)))
}

/// Of the same rounds; empty of the reference itself.
fn ratio(own: &[&Sample], samples: &[Sample]) -> String {
    let Some(first) = own.first().filter(|first| first.front != REFERENCE) else { return String::new() };
    let reference = select(samples, &first.case, REFERENCE);
    let values = |of: &[&Sample]| of.iter().map(|sample| sample.figures.per_second).collect::<Vec<_>>();
    let compared = crate::statistics::Comparison::of(&values(own), &values(&reference));
    compared.as_ref().map_or_else(String::new, format::comparison)
}

fn failed(own: &[&Sample]) -> String {
    own.iter().map(|sample| sample.figures.failed).sum::<u64>().to_string()
}

fn described(servers: &[Server]) -> Section {
    let mut section = section("Servers");
    let rows =
        servers.iter().map(|server| vec![server.front.to_string(), server.software.join(", ")]).collect();
    section.tables.push(table("", vec![text("server"), text("programs")], rows));
    for server in servers {
        let files = server.configuration.iter();
        let named = files.map(|(name, text)| (format!("{}: {name}", server.front), text.clone()));
        section.attachments.extend(named);
    }
    section
}
