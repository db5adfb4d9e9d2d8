//! The machine that measured.

use std::fs;

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub system: String,
    pub kernel: String,
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    /// Mean number of runnable tasks over the minute before the run.
    pub load_average: f64,
    /// The kernel's bound of every listen backlog.
    pub somaxconn: u64,
}

impl Machine {
    pub fn describe() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            system: value_of(&read("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or("unknown").to_owned(),
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            cpu: value_of(&read("/proc/cpuinfo"), "model name", ':').unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            load_average: first_number(&read("/proc/loadavg")),
            somaxconn: read("/proc/sys/net/core/somaxconn").trim().parse().unwrap_or(0),
        }
    }

    /// Whether figures of both may be put side by side: everything but the load is equal.
    pub fn is_same_as(&self, other: &Self) -> bool {
        Self { load_average: 0.0, ..self.clone() } == Self { load_average: 0.0, ..other.clone() }
    }

    /// Says on stderr what would spoil the figures: other work, or a kernel that cuts the backlogs.
    pub fn warn_when_busy(&self) {
        if self.load_average > 0.5 * self.cores as f64 {
            eprintln!(
                "warning: the load average is {:.1} on {} cores; other work on this machine disturbs the figures",
                self.load_average, self.cores
            );
        }
        if self.somaxconn < 4096 {
            eprintln!(
                "warning: net.core.somaxconn is {}, so that listen backlogs of 4096 are cut to it; \
                 raise it: sysctl net.core.somaxconn=4096",
                self.somaxconn
            );
        }
    }
}

/// Raises this process's limit of open files to the hard limit; the servers and wrk inherit it.
pub fn raise_descriptor_limit(connections: u32) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .context("the limit of open files could not be raised to the hard limit")?;
    check_descriptor_limit(limit.maximum, connections)
}

fn check_descriptor_limit(maximum: Option<u64>, connections: u32) -> Result<()> {
    // A proxy holds two descriptors for each connection, and every server some of its own.
    let needed = u64::from(connections) * 2 + 200;
    match maximum {
        Some(maximum) if maximum < needed => bail!(
            "{connections} connections need {needed} open files, but the hard limit is {maximum}; \
             raise it (ulimit -Hn {needed}) or measure fewer --connections"
        ),
        _ => Ok(()),
    }
}

fn value_of<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().trim_matches('"'))
}

fn memory_bytes(meminfo: &str) -> u64 {
    value_of(meminfo, "MemTotal", ':')
        .and_then(|value| value.strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kibibytes| kibibytes * 1024)
}

fn first_number(text: &str) -> f64 {
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_both_formats() {
        assert_eq!(value_of("NAME=x\nPRETTY_NAME=\"Debian 12\"\n", "PRETTY_NAME", '='), Some("Debian 12"));
        assert_eq!(value_of("model name\t: Some CPU\n", "model name", ':'), Some("Some CPU"));
        assert_eq!(memory_bytes("MemTotal:       2048 kB\n"), 2 * 1024 * 1024);
        assert!((first_number("0.28 0.58 0.62 1/2 3") - 0.28).abs() < 1e-9);
    }

    #[test]
    fn too_many_connections_for_the_hard_limit_is_an_error() {
        let error = check_descriptor_limit(Some(1024), 500).expect_err("1200 are needed").to_string();
        assert!(error.contains("ulimit -Hn 1200"), "{error}");
        assert!(check_descriptor_limit(Some(1024), 10).is_ok());
        assert!(check_descriptor_limit(None, 10_000).is_ok());
    }
}
