//! What is asked of a running server: its threads, a profile, its workers and modules, a look at all of it.

use super::Admin;
use clap::{Args, Subcommand, ValueEnum};
use regent_admin::Address;
use std::num::NonZeroU16;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = THREADS_EXAMPLES)]
pub struct Threads {
    #[command(flatten)]
    pub admin: Admin,
    /// Print what the admin API answers, as JSON
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub change: Option<ThreadsChange>,
}

const THREADS_EXAMPLES: &str = "\
Examples:
  regent threads                                           what each thread is at
  regent threads add                                       one more for classic requests
  regent threads add 4 --worker public/worker.php          four more for a worker, by its file or name
  regent threads add 2 --service hello                     two more for a native service
  regent threads remove 2                                  two fewer; busy ones finish their request first
  regent threads stack 3                                   which functions of PHP the thread is in
  regent threads --admin unix//run/regent.sock             of another server";

#[derive(Debug, Subcommand)]
pub enum ThreadsChange {
    /// Add threads: all of them or, if the limit would be passed, none
    Add(Selection),
    /// Remove threads: busy ones finish their request first, and one always stays
    Remove(Selection),
    /// Show which functions of PHP a thread is in
    Stack {
        /// Its number in the list
        index: u16,
    },
}

#[derive(Debug, Args)]
pub struct Selection {
    /// How many
    #[arg(default_value = "1", value_name = "COUNT")]
    pub count: NonZeroU16,
    /// The worker, by its file or name, or the native service by its name [default: the threads of classic requests]
    #[arg(short, long, visible_alias = "service", value_name = "FILE")]
    pub worker: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = PROFILE_EXAMPLES)]
pub struct Profile {
    #[command(flatten)]
    pub admin: Admin,
    /// Look for so long, in seconds: 1 to 300
    #[arg(short, long, default_value = "10", value_parser = clap::value_parser!(u16).range(1..=300))]
    pub seconds: u16,
    /// Look so often in each second: 1 to 1000
    #[arg(long, default_value = "99", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub hertz: u32,
    /// Only the threads of this worker, by its file or name
    #[arg(short, long, value_name = "FILE")]
    pub worker: Option<String>,
    /// Only requests whose path begins so
    #[arg(short, long, value_name = "PATH")]
    pub path: Option<String>,
    /// Where it is written to; - is the standard output [default: regent-profile and the format's ending]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What is written
    #[arg(short, long, default_value = "html")]
    pub format: ProfileFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileFormat {
    /// A flame graph for the browser
    Html,
    /// The same as a picture
    Svg,
    /// A line for each stack, with its samples
    Folded,
    /// The same with microseconds of CPU time
    FoldedCpu,
    /// A file for speedscope
    Speedscope,
    /// All that was seen
    Json,
}

const PROFILE_EXAMPLES: &str = "\
Examples:
  regent profile                                           ten seconds of all of PHP, to regent-profile.html
  regent profile --seconds 60 --path /shop                 a minute of the requests below /shop
  regent profile --worker public/worker.php -o w.html      one worker only
  regent profile --format folded -o - | sort -k2           for other tools";

#[derive(Debug, Args)]
pub struct Workers {
    #[command(flatten)]
    pub admin: Admin,
    #[command(subcommand)]
    pub change: WorkersChange,
}

#[derive(Debug, Subcommand)]
pub enum WorkersChange {
    /// Start all workers anew, to load changed code; no request is lost or refused
    Restart,
}

#[derive(Debug, Args)]
pub struct Native {
    #[command(flatten)]
    pub admin: Admin,
    #[command(subcommand)]
    pub change: NativeChange,
}

#[derive(Debug, Subcommand)]
pub enum NativeChange {
    /// Load all modules anew; no request is lost or refused, and modules that cannot be loaded leave the old ones serving
    Restart,
}

#[derive(Debug, Args)]
#[command(after_help = TASKS_EXAMPLES)]
pub struct Tasks {
    #[command(flatten)]
    pub admin: Admin,
    /// Print what the admin API answers, as JSON
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub change: Option<TasksChange>,
}

const TASKS_EXAMPLES: &str = "\
Examples:
  regent tasks                                             how each background script stands
  regent tasks run 'artisan schedule:run'                  now, instead of at its next time
  regent tasks restart queue                               after a deployment: it ends by SIGTERM, and starts again
  regent tasks stop queue                                  until it is told to run, or the configuration is loaded by force";

#[derive(Debug, Subcommand)]
pub enum TasksChange {
    /// Run one now, instead of at its next time; one that was stopped, too
    Run {
        /// Its name in the list
        task: String,
    },
    /// Tell one to end, and start it again
    Restart {
        /// Its name in the list
        task: String,
    },
    /// Tell one to end, and leave it so
    Stop {
        /// Its name in the list
        task: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub struct Top {
    #[command(flatten)]
    pub admin: Admin,
    /// Watch several servers, one a line: their admin listeners, with commas between
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',')]
    pub fleet: Vec<Address>,
    /// Print the figures once, as text, and end
    #[arg(long)]
    pub once: bool,
}

const TOP_EXAMPLES: &str = "\
Examples:
  regent top                                               of the server on this machine
  regent top --once                                        its figures as text, once
  regent top --fleet 10.0.0.11:2019,10.0.0.12:2019         of several, one a line";
