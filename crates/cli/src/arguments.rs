//! The command line.

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Regent: the PHP application server with a deadline.
#[derive(Debug, Parser)]
#[command(name = "regent", version, propagate_version = true, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  regent php-server --root public --listen :8080           serve a directory of PHP files
  regent php-server -r public -l :8080 -w worker.php,4     with a worker script on four threads
  regent run --config Caddyfile                            serve what a Caddyfile says
  regent validate --config Caddyfile                       only check it
  regent bench sweep                                       how many users at once, beside other servers";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve what a Caddyfile says
    Run(Config),
    /// Serve a directory of PHP files, without a configuration file
    PhpServer(PhpServer),
    /// Check a Caddyfile: all of its errors at once
    Validate(Config),
    /// Print a Caddyfile's meaning as JSON
    Adapt(Config),
    /// Format a Caddyfile; without --overwrite print it, with exit code 1 if it was not formatted
    Fmt(Fmt),
    /// Measure Regent beside other servers: `regent bench --help` says what there is
    #[command(disable_help_flag = true)]
    Bench(Bench),
    /// Print the version
    Version,
}

#[derive(Debug, Args)]
pub struct Config {
    /// The Caddyfile [default: Caddyfile in the current directory]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The configuration's language
    #[arg(short, long, value_name = "NAME", default_value = "caddyfile", value_parser = ["caddyfile"])]
    pub adapter: String,
}

#[derive(Debug, Args)]
pub struct PhpServer {
    /// The directory to serve [default: the current one, or its `public` if there is one]
    #[arg(short, long, value_name = "DIRECTORY")]
    pub root: Option<PathBuf>,
    /// Where to listen: :PORT, or HOST:PORT
    #[arg(short, long, value_name = "ADDRESS", default_value = ":80")]
    pub listen: String,
    /// A worker script, and how many threads run it; may be given several times
    #[arg(short, long = "worker", value_name = "FILE[,N]")]
    pub workers: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Fmt {
    /// The Caddyfile [default: Caddyfile in the current directory]
    pub file: Option<PathBuf>,
    /// Write the result back
    #[arg(short = 'w', long)]
    pub overwrite: bool,
}

#[derive(Debug, Args)]
pub struct Bench {
    /// What regent-bench is told
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<OsString>,
}
