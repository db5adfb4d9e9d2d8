//! `regent doctor`.

use super::Config;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_HELP)]
pub struct Doctor {
    #[command(flatten)]
    pub config: Config,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
    /// Judge PHP's version by this table instead of the one that is built in; -: that on the standard input
    #[arg(long, value_name = "FILE")]
    pub advisories: Option<PathBuf>,
}

const DOCTOR_HELP: &str = "\
Nothing is changed. What may be written and listened on is looked at for the user who asks, so ask as the server's user:
  sudo -u www-data regent doctor --config /etc/regent/Caddyfile

A PHP with known critical holes is a problem. Which versions have them, a table says that is as old as this program; a newer one:
  curl -sS https://example.com/php-floor.json | regent doctor --advisories -

The exit code is 1 if there is a problem, and 0 if there is only advice. A table that cannot be read is a problem.";
