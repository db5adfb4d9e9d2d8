//! The results of a run: as data, as tables and as plots.

mod format;
mod goals;
mod plot;
mod rows;
mod table;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use self::goals::Goal;
use self::rows::Row;
use self::table::{Column, Table};
use crate::campaign::Sample;
use crate::load::wrk;
use crate::machine::Machine;
use crate::options::Options;
use crate::peers::{Description, ServerKind};
use crate::site::PHP_SETTINGS;
use crate::statistics::ROUNDS_TO_PUBLISH;

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

/// Writes `results.json`, `results.md`, `throughput.svg` and `p99.svg` into the directory, which is made if missing.
pub fn write(results: &Results, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("{} could not be made", directory.display()))?;
    let save = |name: &str, text: String| {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    };
    save("results.json", serde_json::to_string_pretty(results)? + "\n")?;
    save("results.md", markdown(results))?;
    for plot in [plot::throughput(&results.summary), plot::p99(&results.summary)] {
        save(plot.file_name(), plot.to_svg())?;
    }
    Ok(())
}

/// What is shown at the end of a run: the table, the goals and the notes.
pub fn summary(results: &Results) -> String {
    let goals: String = results.goals.iter().map(|goal| format!("  {goal}\n")).collect();
    let notes: String = notes(results).iter().map(|note| format!("  {note}\n")).collect();
    format!("\n{}\nGoals\n{goals}\nNotes\n{notes}", table(&results.summary).to_text())
}

fn markdown(results: &Results) -> String {
    let Results { machine, setting, servers, .. } = results;
    let software: String = servers
        .iter()
        .map(|d| {
            let safety = if d.php.thread_safe { "thread-safe" } else { "not thread-safe" };
            format!("- {}: {}; answers with PHP {}, {safety}\n", d.server, d.software.join("; "), d.php.php)
        })
        .collect();
    let goals: String = results.goals.iter().map(|goal| format!("- {goal}\n")).collect();
    let notes: String = notes(results).iter().map(|note| format!("- {note}\n")).collect();
    format!(
        "# Hello world over keep-alive connections\n\n\
         Measured until {finished} on {cpu}, {cores} cores, {memory} of memory, {system}, {kernel}, \
         by {bench} with {generator}.\n\n\
         {table}\n\
         ![Requests per second over connections](throughput.svg)\n\n\
         ![99th percentile of the latency over connections](p99.svg)\n\n\
         ## Goals\n\n{goals}\n## Servers\n\n{software}\n## Notes\n\n{notes}",
        finished = results.finished_at,
        cpu = machine.cpu,
        cores = machine.cores,
        memory = format::bytes(machine.memory_bytes),
        system = machine.system,
        kernel = machine.kernel,
        bench = setting.bench,
        generator = setting.generator,
        table = table(&results.summary).to_markdown(),
    )
}

fn notes(results: &Results) -> Vec<String> {
    let Setting { rounds, duration_s, timeout_s, threads, .. } = results.setting;
    let mut notes = vec![
        format!(
            "Closed loop, wrk in 1 thread on the same machine: {rounds} interleaved rounds of {duration_s} s; \
             medians over the rounds, in parentheses the smallest and the largest."
        ),
        format!(
            "Regent with {threads} PHP threads (worker: and one more for classic requests, idle), php-fpm with \
             {threads} static children, Apache with a process for each connection; opcache on and JIT off \
             everywhere, with the same settings."
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
    if rounds < ROUNDS_TO_PUBLISH {
        notes.push(format!("Fewer than {ROUNDS_TO_PUBLISH} rounds: no figure of this run may be published."));
    }
    if results.servers.windows(2).any(|pair| pair[0].php.php != pair[1].php.php) {
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
    use Column::{Number, Text};
    let mut table = Table::new(vec![
        Number("connections"),
        Text("server"),
        Number("req/s"),
        Number("× php-fpm"),
        Number("p50 ms"),
        Number("p90 ms"),
        Number("p99 ms"),
        Number("p99.9 ms"),
        Number("max ms"),
        Number("p99 ÷ mean"),
        Number("CPU µs/req"),
        Number("switches/req"),
        Number("memory"),
        Number("threads"),
        Number("errors"),
    ]);
    for row in rows {
        table.push(vec![
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
            row.cpu_us_per_request.as_ref().map_or_else(|| "–".to_owned(), |s| format::significant(s.median)),
            row.context_switches_per_request
                .as_ref()
                .map_or_else(|| "–".to_owned(), |s| format::significant(s.median)),
            format::bytes(row.memory_bytes),
            row.threads.to_string(),
            row.errors.to_string(),
        ]);
    }
    table
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
        let php = PhpInfo {
            php: "8.2.0".to_owned(),
            sapi: "fpm-fcgi".to_owned(),
            thread_safe: false,
            opcache: true,
            jit: false,
            validate_timestamps: true,
        };
        let fpm = Description {
            server: ServerKind::Fpm,
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
        for name in ["results.md", "throughput.svg", "p99.svg"] {
            assert!(out.join(name).is_file(), "{name}");
        }
    }

    #[test]
    fn the_markdown_names_the_programs_and_shows_the_ratio() {
        let text = markdown(&results(5));
        assert!(text.contains("| 100 | Regent worker | 100,003 (100,001–100,005) | 4.00× |"), "{text}");
        assert!(
            text.contains("- nginx + php-fpm: nginx/1.22; answers with PHP 8.2.0, not thread-safe\n"),
            "{text}"
        );
        assert!(!text.contains("may be published"), "{text}");
    }

    #[test]
    fn too_few_rounds_are_not_for_publication() {
        assert!(summary(&results(2)).contains("no figure of this run may be published"));
    }
}
