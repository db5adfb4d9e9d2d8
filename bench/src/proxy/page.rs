//! The page of the results.

use super::Options;
use super::case::{Case, Exchange, Sample};
use super::server::Proxy;
use super::upstream::Upstream;
use crate::machine::Machine;
use crate::report::page::{Page, Section};
use crate::samples::{self, CAPTION, Running, rows};
use crate::suites::tables::{section, table, text};

/// What the others are compared with.
const REFERENCE: Proxy = Proxy::Nginx;
const ABOUT: &str = "What does it cost to hand a request to another server, and its answer back? Closed loops by h2load over \
                     HTTP/1.1 without TLS; connections are kept on both sides.";

pub fn page(
    options: &Options,
    machine: &Machine,
    upstream: &Upstream,
    servers: &[Running<Proxy>],
    samples: &[Sample],
) -> Page {
    let mut described = samples::described(servers);
    described.notes.push(format!("Behind all of them: {}.", upstream.software));
    described.attachments.push(("The server behind".to_owned(), upstream.configuration.clone()));
    Page {
        name: "proxy".to_owned(),
        title: "Requests handed to another server".to_owned(),
        introduction: samples::introduction(ABOUT, machine, options.rounds, options.duration),
        sections: vec![requests(servers, samples), described],
    }
}

fn requests(servers: &[Running<Proxy>], samples: &[Sample]) -> Section {
    let mut section = section("Requests");
    for exchange in Exchange::ALL {
        let named = vec![text("exchange, connections"), text("server")];
        let columns = named.into_iter().chain(samples::request_columns("nginx")).collect();
        let is_meant = |case: &Case| case.exchange == exchange;
        let rows = rows(servers, samples, is_meant, |own| samples::request_cells(own, samples, REFERENCE));
        section.tables.push(table(CAPTION, columns, rows));
    }
    section.notes.push(
        "Load generator, proxy and the server behind share the cores, so throughput is what all three take together; CPU \
         time and memory are those of the proxy alone."
            .to_owned(),
    );
    section
}
