//! The page of the results.

use super::Options;
use super::case::Sample;
use super::server::Keeper;
use super::stampede::Stampede;
use crate::machine::Machine;
use crate::report::format;
use crate::report::page::{Page, Section};
use crate::samples::{self, CAPTION, Running, rows};
use crate::statistics::{Spread, distinct};
use crate::suites::tables::{cell, number, section, table, text};

const ABOUT: &str = "What is a page that is the same for all visitors worth in a cache? The front page of WordPress, new each \
                     time and from the cache; closed loops by h2load over HTTP/1.1 without TLS, over connections that are kept.";
/// Of the requests/s without a cache.
const GOAL: f64 = 100.0;

pub fn page(
    options: &Options,
    machine: &Machine,
    servers: &[Running<Keeper>],
    samples: &[Sample],
    stampedes: &[Stampede],
) -> Page {
    Page {
        name: "cache".to_owned(),
        title: "A page from the cache".to_owned(),
        introduction: samples::introduction(ABOUT, machine, options.rounds, options.duration),
        sections: vec![front(servers, samples), stampede(options, stampedes), samples::described(servers)],
    }
}

fn front(servers: &[Running<Keeper>], samples: &[Sample]) -> Section {
    let mut section = section("The front page");
    let named = vec![text("connections"), text("server")];
    let columns = named.into_iter().chain(samples::request_columns("uncached")).collect();
    let rows = rows(
        servers,
        samples,
        |_| true,
        |own| match own.first() {
            Some(first) => samples::request_cells(own, samples, first.server.uncached()),
            None => Vec::new(),
        },
    );
    section.tables.push(table(CAPTION, columns, rows));
    section.notes = vec![
        "*uncached* is the same server without a cache. What is stored is good for a minute, and is fetched anew while it is \
         given for one more: both are within what is measured."
            .to_owned(),
        "Load generator and server share the cores. CPU time and memory are those of the server (nginx and php-fpm; Regent \
         and its engine), without the database."
            .to_owned(),
    ];
    section.notes.extend(goal(samples));
    section
}

/// Of Regent's cache in memory; the smallest of all cases.
fn goal(samples: &[Sample]) -> Option<String> {
    let cases = distinct(samples.iter().map(|sample| sample.case));
    let median = |keeper: Keeper, case| {
        let own = samples.iter().filter(|sample| sample.server == keeper && sample.case == case);
        Some(Spread::of(own.map(|sample| sample.figures.per_second))?.median)
    };
    let ratios = cases.iter().filter_map(|case| {
        Some(median(Keeper::Memory, *case)? / median(Keeper::Uncached, *case).filter(|rate| *rate > 0.0)?)
    });
    let least = ratios.min_by(f64::total_cmp)?;
    let outcome = if least >= GOAL { "reached" } else { "missed" };
    Some(format!(
        "Goal: from memory at least {GOAL} × of the requests/s without a cache, at each number of connections: {outcome} \
         (the least is {least:.0} ×)."
    ))
}

fn stampede(options: &Options, stampedes: &[Stampede]) -> Section {
    let mut section = section("Many who come at once");
    section.paragraphs.push(format!(
        "{} connections ask for a page that is not in the cache yet, each once; a new page in each round.",
        options.stampede
    ));
    let columns = vec![
        text("server"),
        number("runs of PHP"),
        number("answered"),
        number("failed"),
        number("p50 ms"),
        number("p99 ms"),
    ];
    let rows = distinct(stampedes.iter().map(|stampede| stampede.server)).into_iter().map(|server| {
        let own: Vec<&Stampede> = stampedes.iter().filter(|stampede| stampede.server == server).collect();
        let of = |value: fn(&Stampede) -> Option<f64>| {
            Spread::of(own.iter().filter_map(|stampede| value(stampede)))
        };
        vec![
            server.to_string(),
            cell(of(|stampede| Some(stampede.runs as f64)), format::count),
            cell(of(|stampede| Some(stampede.figures.done as f64)), format::count),
            own.iter().map(|stampede| stampede.figures.failed).sum::<u64>().to_string(),
            cell(of(|stampede| stampede.figures.p50_ms), format::significant),
            cell(of(|stampede| stampede.figures.p99_ms), format::significant),
        ]
    });
    section.tables.push(table(CAPTION, columns, rows.collect()));
    section
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::*;
    use crate::load::figures::Figures;
    use crate::usage::{Snapshot, Usage};

    fn sample(server: Keeper, connections: u32, per_second: f64) -> Sample {
        let usage = Usage::since(&Snapshot::default(), &[], 0);
        let figures = Figures { per_second, ..Figures::default() };
        Sample { server, case: Case { connections }, round: 1, figures, usage }
    }

    #[test]
    fn the_goal_is_for_each_number_of_connections() {
        let mut samples = vec![sample(Keeper::Uncached, 1, 20.0), sample(Keeper::Memory, 1, 8_000.0)];
        assert!(goal(&samples).expect("measured").contains("reached (the least is 400 ×)"));
        samples.extend([sample(Keeper::Uncached, 32, 40.0), sample(Keeper::Memory, 32, 3_600.0)]);
        assert!(goal(&samples).expect("measured").contains("missed (the least is 90 ×)"));
        assert_eq!(goal(&samples[1..2]), None, "there is nothing to compare with");
    }
}
