//! What the suites have in common whose loads are made by others' programs: servers that run, a sample of each for each
//! case and round, and the rows of the tables.

use std::fmt::{self, Display};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::load::figures::Figures;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::report::format;
use crate::report::page::{Column, Section};
use crate::statistics::{Comparison, ROUNDS_TO_PUBLISH, Spread};
use crate::suites::in_turn;
use crate::suites::tables::{cell, median, number, section, table, text};
use crate::supervise::Daemon;
use crate::usage::{Snapshot, Usage};

pub const CAPTION: &str = "Medians over the rounds, in parentheses the smallest and the largest";

/// Pause after each load, so that closed connections are gone before the next.
const SETTLE: Duration = Duration::from_millis(300);

/// Ends with this value.
pub struct Running<S> {
    pub server: S,
    pub port: u16,
    pub software: Vec<String>,
    /// Without what differs from run to run.
    pub configuration: Vec<(String, String)>,
    /// Whose time and memory is counted.
    pub daemons: Vec<Daemon>,
}

/// One server, one case, one round.
#[derive(Clone, Debug)]
pub struct Sample<S, C> {
    pub server: S,
    pub case: C,
    pub round: u32,
    pub figures: Figures,
    pub usage: Usage,
}

/// What is measured in a run, and how often.
pub struct Campaign<C> {
    pub cases: Vec<C>,
    pub rounds: u32,
}

impl<S> Running<S> {
    fn leaders(&self) -> Vec<i32> {
        self.daemons.iter().map(Daemon::leader).collect()
    }

    pub fn check_alive(&mut self) -> Result<()> {
        self.daemons.iter_mut().try_for_each(Daemon::check_alive)
    }
}

impl<C: Clone + Display> Campaign<C> {
    /// Each case of each round on all servers that have it, before the next. `time` is how long a case takes, `None`
    /// where a server does not have it.
    pub fn run<S: Copy + Display>(
        &self,
        servers: &mut [Running<S>],
        time: impl Fn(S, &C) -> Option<Duration>,
        mut measure: impl FnMut(&C, &Running<S>) -> Result<Figures>,
    ) -> Result<Vec<Sample<S, C>>> {
        let kinds: Vec<S> = servers.iter().map(|each| each.server).collect();
        let all = self.cases.iter().flat_map(|case| kinds.iter().map(move |kind| (*kind, case)));
        let times: Vec<Duration> = all.filter_map(|(server, case)| time(server, case)).collect();
        let total: Duration = times.iter().map(|time| *time + SETTLE).sum();
        let mut progress = Progress::new();
        progress.begin(times.len() * self.rounds as usize, total * self.rounds);
        let mut samples = Vec::new();
        let indexes: Vec<usize> = (0..servers.len()).collect();
        for round in 1..=self.rounds {
            for case in &self.cases {
                for &index in in_turn(&indexes, round) {
                    let server = &mut servers[index];
                    let Some(time) = time(server.server, case) else { continue };
                    let sample = sample(case, round, server, &mut measure)
                        .with_context(|| format!("{case} with {}", server.server))?;
                    progress.step(&sample.to_string(), time + SETTLE);
                    samples.push(sample);
                    sleep(SETTLE);
                }
            }
        }
        Ok(samples)
    }
}

fn sample<S: Copy, C: Clone>(
    case: &C,
    round: u32,
    server: &mut Running<S>,
    measure: &mut impl FnMut(&C, &Running<S>) -> Result<Figures>,
) -> Result<Sample<S, C>> {
    server.check_alive()?;
    let leaders = server.leaders();
    let before = Snapshot::of(&leaders);
    let figures = measure(case, server)?;
    let usage = Usage::since(&before, &leaders, figures.done);
    Ok(Sample { server: server.server, case: case.clone(), round, figures, usage })
}

impl<S: Display, C: Display> Display for Sample<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}, {}, {}: {:.0}/s", self.round, self.case, self.server, self.figures.per_second)?;
        match self.figures.failed {
            0 => Ok(()),
            failed => write!(f, ", {failed} failed"),
        }
    }
}

/// A row for each case that is meant and each server that has it.
pub fn rows<S: Copy + PartialEq + Display, C: PartialEq + Display>(
    servers: &[Running<S>],
    samples: &[Sample<S, C>],
    is_meant: impl Fn(&C) -> bool,
    cells: impl Fn(&[&Sample<S, C>]) -> Vec<String>,
) -> Vec<Vec<String>> {
    let mut cases: Vec<&C> = Vec::new();
    for sample in samples.iter().filter(|sample| is_meant(&sample.case)) {
        if !cases.contains(&&sample.case) {
            cases.push(&sample.case);
        }
    }
    let row = |case: &C, server: &Running<S>| {
        let own = select(samples, case, server.server);
        let named = || [vec![case.to_string(), server.server.to_string()], cells(&own)].concat();
        (!own.is_empty()).then(named)
    };
    cases.iter().flat_map(|case| servers.iter().filter_map(|server| row(case, server))).collect()
}

/// What a table of requests says, beside case and server.
pub fn request_columns(reference: &str) -> Vec<Column> {
    ["req/s", &format!("× {reference}"), "p50 ms", "p99 ms", "CPU µs/req", "body bytes", "memory", "failed"]
        .map(number)
        .into()
}

pub fn request_cells<S: Copy + PartialEq, C: PartialEq>(
    own: &[&Sample<S, C>],
    samples: &[Sample<S, C>],
    reference: S,
) -> Vec<String> {
    vec![
        cell(of(own, |sample| Some(sample.figures.per_second)), format::count),
        ratio(own, samples, reference),
        cell(of(own, |sample| sample.figures.p50_ms), format::significant),
        cell(of(own, |sample| sample.figures.p99_ms), format::significant),
        median(of(own, |sample| sample.usage.cpu_us_per_request), format::significant),
        median(of(own, |sample| sample.figures.body_bytes), format::count),
        format::bytes(own.iter().map(|sample| sample.usage.memory_bytes).max().unwrap_or(0)),
        failed(own),
    ]
}

pub fn of<S, C>(own: &[&Sample<S, C>], value: impl Fn(&Sample<S, C>) -> Option<f64>) -> Option<Spread> {
    Spread::of(own.iter().filter_map(|sample| value(sample)))
}

/// Of the same rounds; empty of the reference itself, and where it does not have the case.
pub fn ratio<S: Copy + PartialEq, C: PartialEq>(
    own: &[&Sample<S, C>],
    samples: &[Sample<S, C>],
    reference: S,
) -> String {
    let Some(first) = own.first().filter(|first| first.server != reference) else { return String::new() };
    let reference = select(samples, &first.case, reference);
    let values = |of: &[&Sample<S, C>]| of.iter().map(|sample| sample.figures.per_second).collect::<Vec<_>>();
    let compared = Comparison::of(&values(own), &values(&reference));
    compared.as_ref().map_or_else(String::new, format::comparison)
}

pub fn failed<S, C>(own: &[&Sample<S, C>]) -> String {
    own.iter().map(|sample| sample.figures.failed).sum::<u64>().to_string()
}

/// Where and how often it was measured, after what it is about.
pub fn introduction(about: &str, machine: &Machine, rounds: u32, duration: Duration) -> Vec<String> {
    let mut lines = vec![
        about.to_owned(),
        format!(
            "Measured on {}, {} cores, {} of memory, {}, {}; server and load generator on the same machine; {rounds} \
             interleaved {} of {} s each.",
            machine.cpu,
            machine.cores,
            format::bytes(machine.memory_bytes),
            machine.system,
            machine.kernel,
            if rounds == 1 { "round" } else { "rounds" },
            duration.as_secs(),
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
pub fn described<S: Display>(servers: &[Running<S>]) -> Section {
    let mut section = section("Servers");
    let rows = servers.iter().map(|each| vec![each.server.to_string(), each.software.join(", ")]).collect();
    section.tables.push(table("", vec![text("server"), text("programs")], rows));
    for server in servers {
        let files = server.configuration.iter();
        let named = files.map(|(name, text)| (format!("{}: {name}", server.server), text.clone()));
        section.attachments.extend(named);
    }
    section
}

/// Whether somebody accepts connections there.
pub fn listens(port: u16) -> bool {
    TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).is_ok()
}

fn select<'s, S: Copy + PartialEq, C: PartialEq>(
    samples: &'s [Sample<S, C>],
    case: &C,
    server: S,
) -> Vec<&'s Sample<S, C>> {
    samples.iter().filter(|sample| sample.case == *case && sample.server == server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(
        server: &'static str,
        case: &'static str,
        per_second: f64,
    ) -> Sample<&'static str, &'static str> {
        let usage = Usage::since(&Snapshot::default(), &[], 0);
        let figures = Figures { per_second, ..Figures::default() };
        Sample { server, case, round: 1, figures, usage }
    }

    fn running(server: &'static str) -> Running<&'static str> {
        Running { server, port: 1, software: Vec::new(), configuration: Vec::new(), daemons: Vec::new() }
    }

    #[test]
    fn a_server_that_does_not_have_a_case_has_no_row_of_it() {
        let samples = [sample("a", "h1", 1.0), sample("b", "h1", 2.0), sample("a", "h3", 3.0)];
        let rows = rows(&[running("a"), running("b")], &samples, |_| true, |_| Vec::new());
        assert_eq!(rows, [["h1", "a"], ["h1", "b"], ["h3", "a"]]);
    }

    #[test]
    fn nothing_is_compared_with_a_reference_that_does_not_have_the_case() {
        let samples = [sample("a", "h1", 10.0), sample("b", "h1", 20.0), sample("a", "h3", 3.0)];
        assert_eq!(ratio(&[&samples[0]], &samples, "b"), "0.50×");
        assert_eq!(ratio(&[&samples[1]], &samples, "b"), "");
        assert_eq!(ratio(&[&samples[2]], &samples, "b"), "");
    }

    #[test]
    fn cases_that_a_server_does_not_have_are_not_measured() {
        let campaign = Campaign { cases: vec!["h1", "h3"], rounds: 2 };
        let mut asked = Vec::new();
        let time = |server, case: &&str| (server == "a" || *case == "h1").then_some(Duration::from_millis(1));
        let samples = campaign
            .run(&mut [running("a"), running("b")], time, |case, on| {
                asked.push((*case, on.server));
                Ok(Figures::default())
            })
            .expect("measured");
        assert_eq!(samples.len(), 6);
        let expected = [("h1", "a"), ("h1", "b"), ("h3", "a"), ("h1", "b"), ("h1", "a"), ("h3", "a")];
        assert_eq!(asked, expected);
    }
}
