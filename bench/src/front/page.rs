//! The page of the results.

use super::case::{Case, Protocol, Sample};
use super::server::Front;
use super::{Machine, Options};
use crate::report::format;
use crate::report::page::{Page, Section};
use crate::samples::{self, CAPTION, Running, failed, of, ratio, rows};
use crate::suites::tables::{cell, median, number, section, table, text};

/// What the others are compared with.
const REFERENCE: Front = Front::Nginx;
const ABOUT: &str = "What does the front cost before PHP has anything to do, and what does it add to PHP's answers? Closed \
                     loops over TLS by h2load, of HTTP/3 by oha, handshakes by openssl s_time.";

const HTTP3: &str = "HTTP/3 is asked for by another program than HTTP/1.1 and 2: compare the servers in a row of it, not \
                     the protocols. Debian's nginx does not have it.";

pub fn page(options: &Options, machine: &Machine, servers: &[Running<Front>], samples: &[Sample]) -> Page {
    Page {
        name: "front".to_owned(),
        title: "TLS, HTTP/2, HTTP/3 and compression".to_owned(),
        introduction: samples::introduction(ABOUT, machine, options.rounds, options.duration),
        sections: vec![handshakes(servers, samples), requests(servers, samples), samples::described(servers)],
    }
}

fn handshakes(servers: &[Running<Front>], samples: &[Sample]) -> Section {
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
                ratio(own, samples, REFERENCE),
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

fn requests(servers: &[Running<Front>], samples: &[Sample]) -> Section {
    let mut section = section("Requests");
    let named = vec![text("load, connections × requests at once"), text("server")];
    let columns = named.into_iter().chain(samples::request_columns("nginx")).collect();
    let is_request = |case: &Case| matches!(case, Case::Requests(_));
    let rows = rows(servers, samples, is_request, |own| samples::request_cells(own, samples, REFERENCE));
    section.tables.push(table(CAPTION, columns, rows));
    section.notes.push(
        "What is compressed is 100 kB that gzip makes very small, so these rows are about the work, not about the ratio; \
         the level is the same on all servers."
            .to_owned(),
    );
    if samples.iter().any(|sample| is_http3(&sample.case)) {
        section.notes.push(HTTP3.to_owned());
    }
    section
}

fn is_http3(case: &Case) -> bool {
    matches!(case, Case::Requests(load) if load.protocol == Protocol::Http3)
}
