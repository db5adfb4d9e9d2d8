//! The results of a run: as data, as tables and as plots.

mod escape;
mod files;
pub mod format;
mod gnuplot;
mod goals;
mod html;
mod markdown;
pub mod page;
mod rows;
mod svg;
#[cfg(test)]
mod testing;
mod text;
mod wrap;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub use self::files::{write_index, write_page};
pub use self::text::page as text;

use self::goals::{Goal, Outcome};
use self::page::{Alignment, Axis, Column, Figure, Page, Point, Scale, Section, Series, Style, Table};
use self::rows::Row;
use crate::hello::{Options, Sample};
use crate::load::wrk;
use crate::machine::Machine;
use crate::peers::{Description, ServerKind};
use crate::site::PHP_SETTINGS;
use crate::statistics::{ROUNDS_TO_PUBLISH, Spread, distinct};
use crate::suites::FLOOR;

/// Everything that one run found out.
#[derive(Debug, Serialize)]
pub struct Results {
    finished_at: String,
    machine: Machine,
    setting: Setting,
    servers: Vec<Description>,
    goals: Vec<Goal>,
    summary: Vec<Row>,
    samples: Vec<Sample>,
}

/// How it was measured.
#[derive(Debug, Serialize)]
struct Setting {
    generator: String,
    generator_threads: u32,
    bench: String,
    rounds: u32,
    duration_s: u64,
    timeout_s: u64,
    threads: u16,
    connections: Vec<u32>,
    /// For every PHP, on top of its own php.ini.
    php_settings: &'static str,
}

impl Results {
    pub fn new(
        options: &Options,
        machine: Machine,
        generator: String,
        servers: Vec<Description>,
        samples: Vec<Sample>,
    ) -> Result<Self> {
        let summary = rows::summarize(&samples, ServerKind::Fpm);
        Ok(Self {
            finished_at: OffsetDateTime::now_utc().replace_nanosecond(0)?.format(&Rfc3339)?,
            machine,
            setting: Setting {
                generator,
                generator_threads: 1,
                bench: format!("regent-bench {}", env!("CARGO_PKG_VERSION")),
                rounds: options.rounds,
                duration_s: options.duration.as_secs(),
                timeout_s: wrk::TIMEOUT_SECONDS,
                threads: options.threads,
                connections: options.connections(),
                php_settings: PHP_SETTINGS,
            },
            servers,
            goals: goals::check(&summary, &samples),
            summary,
            samples,
        })
    }
}

/// Writes `results.json` and the page `results` with its figures into the directory, which is made if missing.
pub fn write(results: &Results, directory: &Path) -> Result<()> {
    files::write_page(&page(results), directory)?;
    let path = directory.join("results.json");
    fs::write(&path, serde_json::to_string_pretty(results)? + "\n")
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// What is shown at the end of a run: the table, the goals and the notes.
pub fn summary(results: &Results) -> String {
    format!("\n{}", text::page(&page(results)))
}

fn page(results: &Results) -> Page {
    let Results { machine, setting, .. } = results;
    Page {
        name: "results".to_owned(),
        title: "Hello world over keep-alive connections".to_owned(),
        introduction: vec![format!(
            "Measured until {} on {}, {} cores, {} of memory, {}, {}, by {} with {}.",
            results.finished_at,
            machine.cpu,
            machine.cores,
            format::bytes(machine.memory_bytes),
            machine.system,
            machine.kernel,
            setting.bench,
            setting.generator,
        )],
        sections: vec![measured(results), promised(&results.goals), measured_servers(&results.servers)],
    }
}

fn measured(results: &Results) -> Section {
    Section {
        heading: "Results".to_owned(),
        paragraphs: Vec::new(),
        tables: vec![table(&results.summary)],
        figures: vec![throughput(&results.summary), p99(&results.summary)],
        notes: notes(results),
        attachments: Vec::new(),
    }
}

fn promised(goals: &[Goal]) -> Section {
    let row = |goal: &Goal| {
        let (outcome, value) = match goal.outcome {
            Outcome::Met(value) => ("met", format!("{value:.2}")),
            Outcome::Missed(value) => ("MISSED", format!("{value:.2}")),
            Outcome::NotMeasured => ("not measured", "–".to_owned()),
        };
        vec![goal.promise.clone(), outcome.to_owned(), value]
    };
    Section {
        heading: "Goals".to_owned(),
        paragraphs: Vec::new(),
        tables: vec![Table {
            caption: String::new(),
            columns: vec![left("promise"), left("outcome"), right("measured")],
            rows: goals.iter().map(row).collect(),
        }],
        figures: Vec::new(),
        notes: Vec::new(),
        attachments: Vec::new(),
    }
}

fn measured_servers(servers: &[Description]) -> Section {
    let row = |server: &Description| {
        vec![server.server.to_string(), server.software.join("; "), php_version(server)]
    };
    let configurations = servers.iter().flat_map(|server| {
        let named = move |name: &str| format!("{}: {name}", server.server);
        server.configuration.iter().map(move |file| (named(&file.name), file.text.clone()))
    });
    Section {
        heading: "Servers".to_owned(),
        paragraphs: Vec::new(),
        tables: vec![Table {
            caption: String::new(),
            columns: vec![left("server"), left("software"), left("answers with PHP")],
            rows: servers.iter().map(row).collect(),
        }],
        figures: Vec::new(),
        notes: Vec::new(),
        attachments: configurations.collect(),
    }
}

fn php_version(server: &Description) -> String {
    match &server.php {
        Some(php) if php.thread_safe => format!("{}, thread-safe", php.php),
        Some(php) => format!("{}, not thread-safe", php.php),
        None => "–".to_owned(),
    }
}

/// Requests per second, from zero.
fn throughput(rows: &[Row]) -> Figure {
    figure(
        "throughput",
        "Throughput",
        rows,
        |row| row.throughput,
        measure("throughput", "requests/s", Scale::Linear),
    )
}

/// The 99th percentile of the latency, logarithmic: it spans the orders of magnitude of the connections.
fn p99(rows: &[Row]) -> Figure {
    let axis = measure("p99 latency", "ms", Scale::Logarithmic);
    figure("p99", "99th percentile of the latency", rows, |row| row.p99_ms, axis)
}

fn figure(name: &str, title: &str, rows: &[Row], value: impl Fn(&Row) -> Spread, y: Axis) -> Figure {
    let series = |server: ServerKind| Series {
        label: server.to_string(),
        identity: server.identity().to_owned(),
        style: Style::Line,
        points: rows
            .iter()
            .filter(|row| row.server == server)
            .map(|row| Point { x: f64::from(row.connections), y: value(row) })
            .collect(),
    };
    Figure {
        name: name.to_owned(),
        title: format!("{title}: 128-byte answer, keep-alive"),
        x: measure("connections", "", Scale::Logarithmic),
        y,
        series: distinct(rows.iter().map(|row| row.server)).into_iter().map(series).collect(),
        limits: Vec::new(),
    }
}

fn measure(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), scale }
}

fn left(heading: &str) -> Column {
    Column { heading: heading.to_owned(), alignment: Alignment::Left }
}

fn right(heading: &str) -> Column {
    Column { heading: heading.to_owned(), alignment: Alignment::Right }
}

fn notes(results: &Results) -> Vec<String> {
    let Setting { rounds, duration_s, timeout_s, threads, .. } = results.setting;
    let mut notes = vec![
        format!(
            "Closed loop, wrk in 1 thread on the same machine: {rounds} interleaved rounds of {duration_s} s; \
             medians over the rounds, in parentheses the smallest and the largest."
        ),
        format!(
            "Regent with {threads} PHP threads (worker: and one more for classic requests, idle) or as many of a \
             native module, php-fpm with {threads} static children, Apache with a process for each connection; opcache \
             on and JIT off everywhere, with the same settings."
        ),
        "× php-fpm: the throughput's ratio to that of the same round; \"no difference\" where the spreads overlap."
            .to_owned(),
        "p99 ÷ mean: 99th percentile ÷ (connections ÷ throughput), the mean latency by Little's law.".to_owned(),
        "CPU and context switches are those of all the server's processes; memory is the sum of their \
         proportional set sizes after the load, the largest of the rounds."
            .to_owned(),
        format!(
            "Errors: failed connections, reads and writes, statuses of 400 and more, answers after {timeout_s} s. \
             wrk does not count a request that is still open at the end, and adds to the latencies what an open \
             loop would have seen during long ones."
        ),
    ];
    if results.summary.iter().any(|row| row.server == ServerKind::Respond) {
        notes.push(FLOOR.to_owned());
    }
    if rounds < ROUNDS_TO_PUBLISH {
        notes.push(format!("Fewer than {ROUNDS_TO_PUBLISH} rounds: no figure of this run may be published."));
    }
    let versions = results.servers.iter().filter_map(|server| server.php.as_ref()).map(|php| &php.php);
    if distinct(versions).len() > 1 {
        notes
            .push("Not all servers answer with the same version of PHP: see the list of servers.".to_owned());
    }
    let drops: u64 = results.samples.iter().map(|sample| sample.usage.listen_drops).sum();
    if drops > 0 {
        notes.push(format!("The kernel dropped {drops} connections at full listen queues during the run."));
    }
    notes
}

fn table(rows: &[Row]) -> Table {
    let columns = vec![
        right("connections"),
        left("server"),
        right("req/s"),
        right("× php-fpm"),
        right("p50 ms"),
        right("p90 ms"),
        right("p99 ms"),
        right("p99.9 ms"),
        right("max ms"),
        right("p99 ÷ mean"),
        right("CPU µs/req"),
        right("switches/req"),
        right("memory"),
        right("threads"),
        right("errors"),
    ];
    Table { caption: String::new(), columns, rows: rows.iter().map(cells).collect() }
}

fn cells(row: &Row) -> Vec<String> {
    let median = |spread: Option<Spread>| {
        spread.map_or_else(|| "–".to_owned(), |spread| format::significant(spread.median))
    };
    vec![
        row.connections.to_string(),
        row.server.to_string(),
        format::spread(&row.throughput, format::count),
        row.versus.as_ref().map_or_else(|| "–".to_owned(), format::comparison),
        format::spread(&row.p50_ms, format::significant),
        format::significant(row.p90_ms.median),
        format::spread(&row.p99_ms, format::significant),
        format::significant(row.p999_ms.median),
        format::significant(row.max_ms.median),
        row.p99_over_mean.as_ref().map_or_else(|| "–".to_owned(), |s| format!("{:.2}", s.median)),
        median(row.cpu_us_per_request),
        median(row.context_switches_per_request),
        format::bytes(row.memory_bytes),
        row.threads.to_string(),
        row.errors.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::peers::{ConfigurationFile, PhpInfo};

    fn results(rounds: u32) -> Results {
        let options = Options::parse_from(["regent-bench", "--rounds", &rounds.to_string()]);
        let mut samples = Vec::new();
        for round in 1..=rounds {
            let noise = f64::from(round);
            samples.push(Sample::made_up(ServerKind::Worker, 100, round, 100_000.0 + noise, 1.5));
            samples.push(Sample::made_up(ServerKind::Fpm, 100, round, 25_000.0 + noise, 5.6));
        }
        let php = Some(PhpInfo {
            php: "8.2.0".to_owned(),
            sapi: "fpm-fcgi".to_owned(),
            thread_safe: false,
            opcache: true,
            jit: false,
            validate_timestamps: true,
        });
        let fpm = Description {
            server: ServerKind::Fpm.into(),
            label: ServerKind::Fpm.to_string(),
            software: vec!["nginx/1.22".to_owned()],
            php,
            answer_bytes: 300,
            configuration: vec![ConfigurationFile {
                name: "nginx.conf".to_owned(),
                text: "daemon off;".to_owned(),
            }],
        };
        let machine = Machine {
            system: "Debian".to_owned(),
            kernel: "Linux 6".to_owned(),
            cpu: "CPU".to_owned(),
            cores: 2,
            memory_bytes: 4 << 30,
            load_average: 0.0,
            somaxconn: 4096,
        };
        Results::new(&options, machine, "wrk 4".to_owned(), vec![fpm], samples).expect("the clock is sane")
    }

    #[test]
    fn all_files_are_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let out = directory.path().join("a/b");
        write(&results(5), &out).expect("written");
        let json: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(out.join("results.json")).expect("it exists"))
                .expect("JSON");
        assert_eq!(json["samples"].as_array().map(Vec::len), Some(10));
        assert_eq!(json["servers"][0]["configuration"][0]["name"], "nginx.conf");
        assert_eq!(json["summary"][0]["versus"]["verdict"], "differs");
        for name in ["results.html", "results.md", "throughput.svg", "p99.svg", "data/p99-fpm.dat"] {
            assert!(out.join(name).is_file(), "{name}");
        }
    }

    #[test]
    fn the_markdown_names_the_programs_and_shows_the_ratio() {
        let text = markdown::page(&page(&results(5)));
        assert!(text.contains("| 100 | Regent worker | 100,003 (100,001–100,005) | 4.00× |"), "{text}");
        assert!(text.contains("| nginx + php-fpm | nginx/1.22 | 8.2.0, not thread-safe |\n"), "{text}");
        assert!(!text.contains("may be published"), "{text}");
    }

    #[test]
    fn too_few_rounds_are_not_for_publication() {
        assert!(
            summary(&results(2)).contains("Fewer than 5 rounds: no figure of this run may be published.")
        );
    }
}
