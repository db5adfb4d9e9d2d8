//! The page of the results.

use super::server::Sampling;
use super::{Case, Options};
use crate::machine::Machine;
use crate::report::format;
use crate::report::page::{Page, Section};
use crate::samples::{self, CAPTION, Running, Sample, of, rows};
use crate::suites::tables::{cell, number, section, table, text};

/// What the others are compared with.
const REFERENCE: Sampling = Sampling::Off;
const ABOUT: &str = "What do traces take of a request that does nothing else? Closed loops by h2load over kept connections; \
                     the same program with and without `tracing`, and a collector that takes all.";

pub fn page(
    options: &Options,
    machine: &Machine,
    servers: &[Running<Sampling>],
    samples: &[Sample<Sampling, Case>],
) -> Page {
    Page {
        name: "traces".to_owned(),
        title: "Traces".to_owned(),
        introduction: samples::introduction(ABOUT, machine, options.rounds, options.duration),
        sections: vec![requests(servers, samples), samples::described(servers)],
    }
}

fn requests(servers: &[Running<Sampling>], samples: &[Sample<Sampling, Case>]) -> Section {
    let mut section = section("Requests");
    let columns = vec![
        text("page"),
        text("traces"),
        number("req/s"),
        number("× without, of the same round"),
        number("CPU µs/req"),
        number("× without, of the same round"),
        number("p99 ms"),
        number("failed"),
    ];
    let cells = |own: &[&Sample<Sampling, Case>]| {
        let per_second = |sample: &Sample<_, _>| Some(sample.figures.per_second);
        let cpu = |sample: &Sample<_, _>| sample.usage.cpu_us_per_request;
        vec![
            cell(of(own, per_second), format::count),
            paired(own, samples, per_second),
            cell(of(own, cpu), format::significant),
            paired(own, samples, cpu),
            cell(of(own, |sample| sample.figures.p99_ms), format::significant),
            samples::failed(own),
        ]
    };
    section.tables.push(table(CAPTION, columns, rows(servers, samples, |_| true, cells)));
    section.notes.push(
        "× without: the value ÷ that without traces in the same round, its median and the quarters above and below it."
            .to_owned(),
    );
    section
}

/// The median of the ratios of the rounds, and their quartiles: what differs by less than a machine does from one round to
/// the next.
fn paired(
    own: &[&Sample<Sampling, Case>],
    samples: &[Sample<Sampling, Case>],
    value: impl Fn(&Sample<Sampling, Case>) -> Option<f64>,
) -> String {
    let ratio = |sample: &&Sample<Sampling, Case>| {
        let is_reference = |other: &&Sample<Sampling, Case>| {
            other.server == REFERENCE && other.case == sample.case && other.round == sample.round
        };
        Some(value(sample)? / value(samples.iter().find(is_reference)?)?)
    };
    let mut ratios: Vec<f64> =
        own.iter().filter(|sample| sample.server != REFERENCE).filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    match quartiles(&ratios) {
        Some([low, middle, high]) => format!("{middle:.3} ({low:.3}–{high:.3})"),
        None => String::new(),
    }
}

fn quartiles(sorted: &[f64]) -> Option<[f64; 3]> {
    let last = sorted.len().checked_sub(1)?;
    Some([1, 2, 3].map(|quarter| sorted[(last * quarter + 2) / 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_of_the_sorted_values() {
        assert_eq!(quartiles(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some([2.0, 3.0, 4.0]));
        assert_eq!(quartiles(&[7.0]), Some([7.0; 3]));
        assert_eq!(quartiles(&[]), None);
    }
}
