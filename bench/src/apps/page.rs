//! The page of the results.

use super::case::{Case, Sample};
use super::peer::Peer;
use super::server::Described;
use super::{Machine, Options};
use crate::report::format;
use crate::report::page::{Page, Section};
use crate::statistics::{Comparison, ROUNDS_TO_PUBLISH, Spread, distinct};
use crate::suites::tables::{cell, median, number, section, table, text};

pub fn page(options: &Options, machine: &Machine, servers: &[Described], samples: &[Sample]) -> Page {
    Page {
        name: "apps".to_owned(),
        title: "Applications".to_owned(),
        introduction: introduction(options, machine),
        sections: vec![figures(options, samples), described(servers)],
    }
}

/// What the others are compared with: the php-fpm that is nearest to Regent's PHP, or else the first server.
fn reference(samples: &[Sample]) -> Option<Peer> {
    let measured = |peer: &Peer| samples.iter().any(|sample| sample.peer == *peer);
    let wanted = [Peer::OtherFpm, Peer::Fpm].into_iter().find(measured);
    wanted.or_else(|| samples.first().map(|sample| sample.peer))
}

fn introduction(options: &Options, machine: &Machine) -> Vec<String> {
    let rounds = options.rounds;
    let mut lines = vec![
        "What does a page of a real application cost, and on which server? Applications of the distribution's packages; \
         closed loops of some pages in turn, by h2load, over connections that are kept."
            .to_owned(),
        format!(
            "Measured on {}, {} cores, {} of memory, {}, {}; server, load generator and database on the same machine; {} \
             PHP threads or children; {rounds} interleaved {} of {} s each.",
            machine.cpu,
            machine.cores,
            format::bytes(machine.memory_bytes),
            machine.system,
            machine.kernel,
            options.threads,
            if rounds == 1 { "round" } else { "rounds" },
            options.duration.as_secs(),
        ),
    ];
    if !options.settings.is_empty() {
        lines.push(format!("PHP settings of all servers: {}.", options.settings.join(", ")));
    }
    if !options.other_settings.is_empty() {
        lines.push(format!("PHP settings of the other Regent alone: {}.", options.other_settings.join(", ")));
    }
    if rounds < ROUNDS_TO_PUBLISH {
        lines.push(format!(
            "Fewer than {ROUNDS_TO_PUBLISH} rounds: a look, from which nothing may be claimed."
        ));
    }
    lines
}

fn figures(options: &Options, samples: &[Sample]) -> Section {
    let mut section = section("Figures");
    let Some(reference) = reference(samples) else { return section };
    let compared = format!("× {reference}");
    let columns = vec![
        text("application"),
        text("server"),
        number("CPU ms/req"),
        number(&compared),
        number("req/s"),
        number(&compared),
        number("p50 ms"),
        number("p99 ms"),
        number("body bytes"),
        number("memory"),
        number("failed"),
    ];
    let cases: Vec<Case> = distinct(samples.iter().map(|sample| sample.case));
    let rows = cases.iter().flat_map(|case| {
        let peers = options.peers(case.application);
        peers.into_iter().map(|peer| row(*case, peer, reference, samples))
    });
    section.tables.push(table(
        "Medians over the rounds, in parentheses the smallest and the largest",
        columns,
        rows.collect(),
    ));
    section.notes = vec![
        "CPU time is that of all processes of a server (nginx and php-fpm; Regent and its engine), without the database's \
         and the load generator's; memory is the sum of their proportional set sizes. On a machine that others use too it \
         is the figure to look at: requests/s and latencies have what the others left."
            .to_owned(),
        "Sizes of bodies differ by addresses and versions of PHP and of the server that pages name, not by more.".to_owned(),
    ];
    section
}

fn row(case: Case, peer: Peer, reference: Peer, samples: &[Sample]) -> Vec<String> {
    let own = select(samples, case, peer);
    let others = select(samples, case, reference);
    let ratio = |value: fn(&Sample) -> Option<f64>| {
        if peer == reference { String::new() } else { compare(&own, &others, value) }
    };
    let per_second = |sample: &Sample| Some(sample.figures.per_second);
    vec![
        case.to_string(),
        peer.to_string(),
        cell(of(&own, Sample::cpu_ms), format::significant),
        ratio(Sample::cpu_ms),
        cell(of(&own, per_second), format::significant),
        ratio(per_second),
        median(of(&own, |sample| sample.figures.p50_ms), format::significant),
        cell(of(&own, |sample| sample.figures.p99_ms), format::significant),
        median(of(&own, |sample| sample.figures.body_bytes), format::count),
        format::bytes(own.iter().map(|sample| sample.usage.memory_bytes).max().unwrap_or(0)),
        own.iter().map(|sample| sample.figures.failed).sum::<u64>().to_string(),
    ]
}

fn select(samples: &[Sample], case: Case, peer: Peer) -> Vec<&Sample> {
    samples.iter().filter(|sample| sample.case == case && sample.peer == peer).collect()
}

fn of(own: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
    Spread::of(own.iter().filter_map(|sample| value(sample)))
}

/// Of the same rounds.
fn compare(own: &[&Sample], reference: &[&Sample], value: fn(&Sample) -> Option<f64>) -> String {
    let values = |of: &[&Sample]| of.iter().filter_map(|sample| value(sample)).collect::<Vec<_>>();
    let compared = Comparison::of(&values(own), &values(reference));
    compared.as_ref().map_or_else(String::new, format::comparison)
}

/// A configuration is shown once, for the first application.
fn described(servers: &[Described]) -> Section {
    let mut section = section("Servers");
    let row = |server: &Described| vec![server.peer.to_string(), server.software.join(", ")];
    section.tables.push(table("", vec![text("server"), text("programs")], distinct(servers.iter().map(row))));
    let mut shown = Vec::new();
    for server in servers.iter() {
        if shown.contains(&server.peer) {
            continue;
        }
        shown.push(server.peer);
        let files = server.configuration.iter();
        section.attachments.extend(files.map(|(name, text)| {
            (format!("{} on {}: {name}", server.application, server.peer), text.clone())
        }));
    }
    section
}

#[cfg(test)]
mod tests {
    use super::super::application::Application;
    use super::*;
    use crate::load::figures::Figures;
    use crate::usage::{Snapshot, Usage};

    fn sample(peer: Peer, round: u32, cpu_us: f64) -> Sample {
        let usage = Usage { cpu_us_per_request: Some(cpu_us), ..Usage::since(&Snapshot::default(), &[], 0) };
        let figures = Figures { done: 10, per_second: 1e6 / cpu_us, ..Figures::default() };
        let case = Case { application: Application::Symfony, connections: 8 };
        Sample { peer, case, round, figures, usage }
    }

    #[test]
    fn servers_are_compared_with_the_nearest_php_fpm() {
        let all = [Peer::Classic, Peer::Fpm, Peer::OtherFpm].map(|peer| sample(peer, 1, 1000.0));
        assert_eq!(reference(&all), Some(Peer::OtherFpm));
        assert_eq!(reference(&all[..2]), Some(Peer::Fpm));
        assert_eq!(reference(&all[..1]), Some(Peer::Classic));
        assert_eq!(reference(&[]), None);
    }

    #[test]
    fn a_row_has_the_cpu_time_and_its_ratio() {
        let samples: Vec<Sample> = (1..=3)
            .flat_map(|round| [sample(Peer::Classic, round, 900.0), sample(Peer::Fpm, round, 1000.0)])
            .collect();
        let case = samples[0].case;
        let row = row(case, Peer::Classic, Peer::Fpm, &samples);
        assert_eq!(row[..5], ["Symfony, 8 connections", "Regent classic", "0.900", "0.90×", "1,111"]);
        assert_eq!(super::row(case, Peer::Fpm, Peer::Fpm, &samples)[3], "");
    }
}
