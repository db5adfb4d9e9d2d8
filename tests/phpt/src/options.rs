//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use serde::Deserialize;

/// Runs PHP's own tests over HTTP, and compares with php-cgi where the answer is not the expected one.
#[derive(Parser)]
#[command(name = "regent-phpt")]
pub struct Options {
    /// Where the installed PHP is that the engine is built with (php-config --prefix)
    #[arg(long, env = "PHP_PREFIX")]
    pub php: PathBuf,
    /// How the tests are run; may be given several times
    #[arg(long, value_enum, default_values_t = [Mode::Classic, Mode::Shuffled, Mode::Worker])]
    pub mode: Vec<Mode>,
    /// Only tests whose path fits, such as 'ext/session/*'; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,
    /// Only a selection of what a SAPI has a part in, and a sample of the rest
    #[arg(long)]
    pub short: bool,
    /// At most so many tests
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Which tests php-cgi runs
    #[arg(long, value_enum, default_value_t = Base::Differing)]
    pub base: Base,
    /// The order of a shuffled run
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where expected and actual output of what differs is written to
    #[arg(long, value_name = "DIRECTORY", default_value = "target/phpt")]
    pub report: PathBuf,
    /// The list of known differences
    #[arg(long, value_name = "FILE", default_value = "tests/phpt/differences.toml")]
    pub differences: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One after the other, in classic mode
    Classic,
    /// In classic mode, in any order over sixteen connections
    Shuffled,
    /// A worker that includes the test, one after the other
    Worker,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Shuffled => "shuffled",
            Self::Worker => "worker",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Base {
    /// Those whose answer was not the expected one
    Differing,
    /// All
    All,
}
