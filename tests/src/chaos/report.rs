//! The report of a run: one page of HTML that loads nothing, and the same as Markdown.

use super::chart::{Timeline, escape};
use super::faults::FAULTS;
use super::injector::Injection;
use super::load::{Protocol, Record};
use super::oracle::{Judgement, Verdict};
use super::question::Route;
use super::timeline::{Percentiles, Second, percentiles, seconds};
use super::usage::Usage;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

const STYLE: &str = include_str!("report.css");
/// Failures that are listed.
const LISTED: usize = 50;

/// Everything that is known of a run.
pub struct Run<'a> {
    pub records: &'a [Record],
    pub injections: &'a [Injection],
    pub judgement: &'a Judgement,
    pub usages: &'a [Usage],
    /// Errors and warnings of the log.
    pub troubles: &'a BTreeMap<String, usize>,
    pub phases: &'a [(Duration, &'static str)],
    /// What the machine could do, and what was asked for, in requests a second.
    pub capacity: f64,
    pub rate: f64,
    pub seed: u64,
    /// The server's process at rest, after the first and after the last phase.
    pub at_rest: (Usage, Usage),
    /// What is wrong; nothing if all is well.
    pub complaints: &'a [String],
}

/// Where reports are written: beside what cargo builds.
pub fn directory() -> PathBuf {
    crate::server::built_directory().join("chaos")
}

/// A table, in both forms.
struct Table {
    heading: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Run<'_> {
    /// Writes `chaos.html` and `chaos.md` into the directory, which is made if missing; gives the page's path.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(directory)?;
        fs::write(directory.join("chaos.md"), self.markdown())?;
        let page = directory.join("chaos.html");
        fs::write(&page, self.html())?;
        Ok(page)
    }

    /// The tables as Markdown.
    pub fn markdown(&self) -> String {
        let tables = self.tables().iter().map(Table::markdown).collect::<String>();
        let verdict: String = self.verdict().iter().map(|line| format!("{line}\n\n")).collect();
        format!("# Chaos\n\n{verdict}{tables}")
    }

    fn html(&self) -> String {
        let seconds = self.seconds();
        let timeline = Timeline {
            seconds: &seconds,
            injections: self.injections,
            usages: self.usages,
            phases: self.phases,
        };
        let paragraph = |line: &String| format!("<p class=\"verdict\">{}</p>\n", escape(line));
        let verdict: String = self.verdict().iter().map(paragraph).collect();
        let tables: String = self.tables().iter().map(Table::html).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
             <title>Chaos</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Chaos</h1>\n{verdict}\
             <div class=\"scroll\">\n{}</div>\n{tables}</body>\n</html>\n",
            timeline.svg()
        )
    }

    fn seconds(&self) -> Vec<Second> {
        seconds(self.records, self.judgement)
    }

    fn verdict(&self) -> Vec<String> {
        let lost = self.judgement.lost().count();
        let excused = self.judgement.failures.len() - lost;
        let mut lines = vec![format!(
            "{} requests at {:.0} a second (the machine could do {:.0}), {} faults, {} engines died: {lost} requests lost, and \
             {excused} that ran in an engine that was made to die.",
            self.records.len(),
            self.rate,
            self.capacity,
            self.injections.len(),
            self.judgement.deaths.len(),
        )];
        lines.push(format!("The order of the faults is that of REGENT_CHAOS_SEED={}.", self.seed));
        lines.extend(self.complaints.iter().map(|complaint| format!("NOT AS IT SHOULD BE: {complaint}")));
        lines
    }

    fn tables(&self) -> Vec<Table> {
        vec![self.faults(), self.routes(), self.phase_table(), self.memory(), self.failures(), self.log()]
    }

    fn faults(&self) -> Table {
        let rows = FAULTS.iter().enumerate().filter_map(|(number, fault)| {
            let own =
                || self.injections.iter().enumerate().filter(move |(_, injection)| injection.fault == number);
            let times = own().count();
            let failed = own()
                .filter(|(place, _)| self.judgement.complaint(*place, self.injections).is_some())
                .count();
            let deaths = self
                .judgement
                .deaths
                .iter()
                .filter(|death| death.cause.is_some_and(|cause| self.injections[cause].fault == number));
            let cost: usize = own().map(|(place, _)| self.judgement.cost(place)).sum();
            let row = vec![
                fault.name.to_owned(),
                fault.kind.to_string(),
                times.to_string(),
                failed.to_string(),
                deaths.count().to_string(),
                cost.to_string(),
            ];
            (times > 0).then_some(row)
        });
        Table {
            heading: "Faults",
            columns: vec![
                "fault",
                "kind",
                "times",
                "not as expected",
                "engines that died",
                "requests that it cost",
            ],
            rows: rows.collect(),
        }
    }

    fn routes(&self) -> Table {
        let mut rows = Vec::new();
        for route in Route::ALL {
            rows.push(self.row_of(&route.to_string(), |record| record.route == route));
        }
        for (name, protocol) in [
            ("HTTP/1.1, kept connections", Protocol::Kept),
            ("HTTP/1.1, a new connection each", Protocol::New),
            ("HTTP/2 over TLS", Protocol::Http2),
        ] {
            rows.push(self.row_of(name, |record| record.protocol == protocol));
        }
        Table { heading: "Requests", columns: Self::COLUMNS.to_vec(), rows }
    }

    const COLUMNS: [&'static str; 6] = ["requests", "count", "p50 ms", "p99 ms", "greatest ms", "failed"];

    fn phase_table(&self) -> Table {
        let ends = self.phases.iter().skip(1).map(|(begin, _)| *begin).chain([Duration::MAX]);
        let rows = self
            .phases
            .iter()
            .zip(ends)
            .map(|((begin, name), end)| self.row_of(name, |record| (*begin..end).contains(&record.due)));
        Table { heading: "Phases", columns: Self::COLUMNS.to_vec(), rows: rows.collect() }
    }

    fn row_of(&self, name: &str, is_one: impl Fn(&Record) -> bool) -> Vec<String> {
        let all: Vec<&Record> = self.records.iter().filter(|record| is_one(record)).collect();
        let answered = all.iter().filter(|record| record.trouble.is_none());
        let Percentiles { p50, p99, max } = percentiles(answered.map(|record| record.latency()).collect());
        let failed = all.iter().filter(|record| record.trouble.is_some()).count();
        let times = [p50, p99, max].map(|time| format!("{time:.1}"));
        [name.to_owned(), all.len().to_string()]
            .into_iter()
            .chain(times)
            .chain([failed.to_string()])
            .collect()
    }

    fn memory(&self) -> Table {
        let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
        let row = |name: &str, usage: &Usage| {
            vec![
                name.to_owned(),
                usage.pid.to_string(),
                mib(usage.resident),
                mib(usage.written),
                usage.descriptors.to_string(),
                usage.threads.to_string(),
            ]
        };
        Table {
            heading: "The server at rest",
            columns: vec!["when", "process", "resident MiB", "written MiB", "descriptors", "threads"],
            rows: vec![row("warm", &self.at_rest.0), row("at the end", &self.at_rest.1)],
        }
    }

    fn failures(&self) -> Table {
        let rows = self.judgement.failures.iter().take(LISTED).map(|(place, verdict)| {
            let record = &self.records[*place];
            let verdict = match verdict {
                Verdict::Lost => "LOST".to_owned(),
                Verdict::Running(cause) => format!("ran in the engine: {}", self.name_of(*cause)),
                Verdict::Ruined(cause) => format!("its process was ruined: {}", self.name_of(*cause)),
            };
            let trouble = record.trouble.as_ref().map(|trouble| format!("{trouble:?}")).unwrap_or_default();
            vec![
                format!("{:.3}", record.sent.as_secs_f64()),
                format!("{:.0}", (record.ended - record.sent).as_secs_f64() * 1000.0),
                record.route.to_string(),
                format!("{:?}", record.protocol),
                record.number.to_string(),
                trouble.chars().take(160).collect(),
                verdict,
            ]
        });
        Table {
            heading: "Requests that failed",
            columns: vec!["sent s", "after ms", "route", "over", "number", "what came", "verdict"],
            rows: rows.collect(),
        }
    }

    fn name_of(&self, injection: usize) -> &'static str {
        FAULTS[self.injections[injection].fault].name
    }

    fn log(&self) -> Table {
        let rows = self.troubles.iter().map(|(message, count)| vec![message.clone(), count.to_string()]);
        Table {
            heading: "Errors and warnings in the server's log",
            columns: vec!["message", "times"],
            rows: rows.collect(),
        }
    }
}

impl Table {
    fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let class = |column: usize| if self.is_number(column) { " class=\"number\"" } else { "" };
        let head: String = self
            .columns
            .iter()
            .enumerate()
            .map(|(column, name)| format!("<th{}>{}</th>", class(column), escape(name)))
            .collect();
        let row = |row: &Vec<String>| {
            let cells = row.iter().enumerate();
            let cells: String =
                cells.map(|(column, cell)| format!("<td{}>{}</td>", class(column), escape(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        format!(
            "<h2>{}</h2>\n<div class=\"scroll\">\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n",
            escape(self.heading),
            self.rows.iter().map(row).collect::<String>()
        )
    }

    fn markdown(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let head: Vec<String> = self.columns.iter().map(|name| (*name).to_owned()).collect();
        let rule: Vec<String> = (0..self.columns.len())
            .map(|column| if self.is_number(column) { "---:" } else { "---" }.to_owned())
            .collect();
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<String> =
                row.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
            line(&cells)
        });
        format!("## {}\n\n{}{}{}\n", self.heading, line(&head), line(&rule), rows.collect::<String>())
    }

    fn is_number(&self, column: usize) -> bool {
        let is_one = |row: &Vec<String>| row.get(column).is_some_and(|cell| cell.parse::<f64>().is_ok());
        self.rows.iter().all(is_one)
    }
}
