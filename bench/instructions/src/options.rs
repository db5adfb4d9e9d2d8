//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::scenario::Scenario;

/// Counts the instructions of a request in the server and in the engine, and compares them with the stored figures.
#[derive(Debug, Parser)]
#[command(name = "regent-instructions", version)]
pub struct Options {
    /// Store the figures instead of comparing them
    #[arg(long)]
    pub update: bool,

    /// Also show the functions with the most instructions, this many for each process
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "15")]
    pub top: Option<usize>,

    /// Only these scenarios
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Scenario>,

    /// Counts everything this many times and shows the spread; the smallest count is compared, the largest stored
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,

    /// The regent binary; by default the one beside this program
    #[arg(long)]
    regent: Option<PathBuf>,

    /// The file with the stored figures
    #[arg(long, default_value = "bench/instructions.toml")]
    pub stored: PathBuf,
}

impl Options {
    /// The scenarios to be counted, in the order of the table.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let chosen = |scenario: &Scenario| self.only.is_empty() || self.only.contains(scenario);
        Scenario::ALL.into_iter().filter(chosen).collect()
    }

    /// The regent binary as an absolute path.
    pub fn regent_binary(&self) -> Result<PathBuf> {
        let path = match &self.regent {
            Some(path) => path.clone(),
            None => std::env::current_exe()
                .context("this program's own path is unknown; use --regent")?
                .with_file_name("regent"),
        };
        ensure!(
            path.is_file(),
            "{} does not exist: build it (make build), or name another with --regent",
            path.display()
        );
        std::path::absolute(&path).with_context(|| format!("{} has no absolute path", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_counted_once_and_in_the_order_of_the_table() {
        let options = Options::parse_from(["regent-instructions", "--only", "worker,file,worker"]);
        assert_eq!(options.scenarios(), [Scenario::File, Scenario::Worker]);
        assert_eq!(Options::parse_from(["regent-instructions"]).scenarios(), Scenario::ALL);
    }

    #[test]
    fn top_has_a_number_of_its_own() {
        assert_eq!(Options::parse_from(["regent-instructions"]).top, None);
        assert_eq!(Options::parse_from(["regent-instructions", "--top"]).top, Some(15));
        assert_eq!(Options::parse_from(["regent-instructions", "--top", "40"]).top, Some(40));
    }

    #[test]
    fn a_missing_binary_says_what_to_do() {
        let options = Options::parse_from(["regent-instructions", "--regent", "/nonexistent/regent"]);
        let error = options.regent_binary().expect_err("it does not exist").to_string();
        assert!(error.contains("make build") && error.contains("--regent"), "{error}");
    }
}
