//! Measurements and the file that keeps them while a run goes on, so that an interrupted run goes on where it was.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::generator::outcome::Outcome;
use crate::generator::plan::Plan;
use crate::machine::Machine;
use crate::peers::{Description, Pool};
use crate::usage::{ServerTick, Usage};

/// One load on one server, and what it used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// What is varied within the suite: a number of users, a scenario.
    pub point: String,
    /// The server's identity, and its name for readers.
    pub server: String,
    pub label: String,
    /// From 1.
    pub round: u32,
    pub pool: Pool,
    pub plan: Plan,
    pub outcome: Outcome,
    /// A second load on the same server, which began later.
    pub beside: Option<(Plan, Outcome)>,
    pub usage: Usage,
    pub server_ticks: Vec<ServerTick>,
}

/// The circumstances in which measurements may be put side by side: others are measured anew.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Circumstances {
    pub suite: String,
    pub bench: String,
    pub machine: Machine,
    /// When the Regent binaries were built, by their modification time; absent when no server is Regent.
    pub regent_built: Option<String>,
}

/// `measurements.jsonl`: the circumstances, and then each server and measurement as it comes.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    circumstances: Circumstances,
    measurements: HashMap<String, Measurement>,
    servers: Vec<Description>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Circumstances(Circumstances),
    Server(Description),
    Measurement { key: String, measurement: Box<Measurement> },
}

/// Whether what was measured before is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    GoOn,
    Discard,
}

impl Circumstances {
    /// The load of the machine differs from minute to minute; everything else must be the same.
    fn allow(&self, earlier: &Self) -> bool {
        self.suite == earlier.suite
            && self.bench == earlier.bench
            && self.regent_built == earlier.regent_built
            && self.machine.is_same_as(&earlier.machine)
    }
}

impl Store {
    /// Opens the file in `directory`, which is made if missing. Measurements that were made in the same circumstances
    /// are kept; a file of other circumstances moves to `measurements.jsonl.previous`.
    pub fn open(directory: &Path, circumstances: Circumstances, earlier: Earlier) -> Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("{} could not be made", directory.display()))?;
        let path = directory.join("measurements.jsonl");
        let lines = match earlier {
            Earlier::GoOn => usable_lines(&path, &circumstances),
            Earlier::Discard => Vec::new(),
        };
        if lines.is_empty() && path.exists() {
            fs::rename(&path, directory.join("measurements.jsonl.previous"))?;
        }
        // A last line that was cut off by a crash goes away with the rewriting.
        let mut store = Self {
            file: File::create(&path).with_context(|| cannot_write(&path))?,
            path,
            circumstances: circumstances.clone(),
            measurements: HashMap::new(),
            servers: Vec::new(),
        };
        store.append(&Line::Circumstances(circumstances))?;
        for line in lines {
            store.take(line)?;
        }
        store.file = OpenOptions::new().append(true).open(&store.path)?;
        Ok(store)
    }

    pub fn circumstances(&self) -> &Circumstances {
        &self.circumstances
    }

    pub fn len(&self) -> usize {
        self.measurements.len()
    }

    pub fn is_empty(&self) -> bool {
        self.measurements.is_empty()
    }

    pub fn find(&self, key: &str) -> Option<&Measurement> {
        self.measurements.get(key)
    }

    pub fn keep(&mut self, key: String, measurement: Measurement) -> Result<()> {
        self.take(Line::Measurement { key, measurement: Box::new(measurement) })
    }

    /// Keeps a description unless an equal one is there.
    pub fn describe(&mut self, server: Description) -> Result<()> {
        if self.servers.contains(&server) { Ok(()) } else { self.take(Line::Server(server)) }
    }

    pub fn servers(&self) -> &[Description] {
        &self.servers
    }

    fn take(&mut self, line: Line) -> Result<()> {
        self.append(&line)?;
        match line {
            Line::Circumstances(_) => {}
            Line::Server(server) => self.servers.push(server),
            Line::Measurement { key, measurement } => {
                self.measurements.insert(key, *measurement);
            }
        }
        Ok(())
    }

    fn append(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).with_context(|| cannot_write(&self.path))
    }
}

/// The lines after the first, if that allows them. Unreadable lines are as if they had not been measured.
fn usable_lines(path: &Path, circumstances: &Circumstances) -> Vec<Line> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let mut lines = BufReader::new(file)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str::<Line>(&line).ok());
    match lines.next() {
        Some(Line::Circumstances(earlier)) if circumstances.allow(&earlier) => lines.collect(),
        _ => Vec::new(),
    }
}

fn cannot_write(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}
