//! The command line.

mod doctor;
mod hash_password;
mod import;
mod running;
mod sites;

pub use doctor::Doctor;
pub use hash_password::HashPassword;
pub use import::{Import, ImportFile, ImportFrom};
pub use sites::{FileServer, PhpServer, Respond, ReverseProxy, Site};

use crate::written;
use clap::{Args, Parser, Subcommand};
use regent_admin::{Address, Language};
use std::ffi::OsString;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

pub use running::{
    Native, NativeChange, Profile, ProfileFormat, Selection, Tasks, TasksChange, Threads, ThreadsChange, Top,
    Workers, WorkersChange,
};

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
  regent php-server -r public -d localhost                 with HTTPS, at https://localhost
  regent run --config Caddyfile                            serve what a Caddyfile says
  regent validate --config Caddyfile                       only check it
  regent embed . -o my-app                                 one executable with PHP and the application in it
  regent top                                               watch a running server
  regent bench sweep                                       how many users at once, beside other servers";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve what a Caddyfile says
    Run(Run),
    /// The same in the background; returns when it serves
    Start(Run),
    /// Have a running server stop; returns when it has
    Stop(Stop),
    /// Serve a directory of PHP files, without a configuration file
    PhpServer(PhpServer),
    /// Have a running server load its Caddyfile again; no request is lost or refused
    Reload(Reload),
    /// Have the program that is at a running server's path now take its place; no request is lost or refused
    Upgrade(Upgrade),
    /// Serve a directory of files, without PHP and without a configuration file
    FileServer(FileServer),
    /// Hand all requests on to another server, without a configuration file
    ReverseProxy(ReverseProxy),
    /// Give every request the same response, without a configuration file
    Respond(Respond),
    /// Have browsers and other programs of this machine accept the certificates of the local CA
    Trust(Trust),
    /// Undo `trust`
    Untrust(Untrust),
    /// Check a Caddyfile and the certificates that it names: all errors at once
    Validate(Config),
    /// Look at this machine and a Caddyfile as an experienced operator would, and say what to improve
    Doctor(Doctor),
    /// Print a configuration as Caddy's JSON
    Adapt(Adapt),
    /// Format a Caddyfile; without --overwrite print it, with exit code 1 if it was not formatted
    Fmt(Fmt),
    /// Make a Caddyfile of the configuration of another server
    Import(Import),
    /// Make the hash of a password for `basic_auth`; without --plaintext it is read from the standard input
    HashPassword(HashPassword),
    /// List, add or remove the threads of a running server
    Threads(Threads),
    /// Show where the PHP code of a running server spends its time, as a flame graph
    Profile(Profile),
    /// Start the workers of a running server anew
    Workers(Workers),
    /// Load the native modules of a running server anew
    Native(Native),
    /// List the background scripts of a running server, or tell one to run, to start anew or to stop
    Tasks(Tasks),
    /// Watch a running server: threads, queues, times, routes, scaling
    Top(Top),
    /// Run PHP's own command line program: `regent php-cli script.php`, `regent php-cli -r CODE`
    #[command(disable_help_flag = true)]
    PhpCli(PhpCli),
    /// Ask about the PHP that serves
    Php(Php),
    /// Make one executable of this program, PHP and an application
    Embed(Embed),
    /// Print the environment, as `run --environ` does
    Environ,
    /// Print the names of all directives, in the order in which they are carried out
    ListModules,
    /// Print of what this program was built
    BuildInfo,
    /// Print a script that completes commands and options in a shell: `source <(regent completion bash)`
    Completion(Completion),
    /// Write the manual pages of all commands (regent.1, regent-run.1, …) to a directory
    Manpage(Manpage),
    /// Measure Regent beside other servers: `regent bench --help` says what there is
    #[command(disable_help_flag = true)]
    Bench(Bench),
    /// Print the version
    Version,
}

impl Command {
    /// The configuration that a command reads at once, if it is about one and one is named.
    pub fn configuration(&self) -> Option<Option<&Path>> {
        let config = match self {
            Self::Validate(config) => config,
            Self::Adapt(options) => &options.config,
            Self::Doctor(options) => &options.config,
            Self::Php(Php { question: PhpQuestion::Extensions(options) }) => &options.config,
            _ => return None,
        };
        Some(config.config.as_deref())
    }
}

#[derive(Debug, Clone, Default, Args)]
pub struct Config {
    /// The Caddyfile, or Caddy's JSON; - is the standard input [default: Caddyfile in the current directory]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub adapter: Adapter,
}

/// What a configuration is written in.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Adapter {
    /// The configuration's language: caddyfile or json [default: what its name says, FILE.json being JSON]
    #[arg(id = "adapter", short, long = "adapter", value_name = "NAME", value_parser = adapter)]
    pub named: Option<Chosen>,
}

/// What --adapter says; an empty name leaves it to the file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen(Option<Language>);

fn adapter(name: &str) -> Result<Chosen, String> {
    match name {
        "" => Ok(Chosen(None)),
        "caddyfile" => Ok(Chosen(Some(Language::Caddyfile))),
        "json" => Ok(Chosen(Some(Language::Json))),
        _ => Err("there are caddyfile and json".to_owned()),
    }
}

impl Adapter {
    /// `None`: the file's name says it.
    pub fn language(self) -> Option<Language> {
        self.named.and_then(|Chosen(language)| language)
    }
}

impl Config {
    pub fn of_file(path: PathBuf, language: Option<Language>) -> Self {
        Self { config: Some(path), adapter: Adapter { named: Some(Chosen(language)) } }
    }

    pub fn is_input(&self) -> bool {
        self.config.as_deref() == Some(Path::new(written::INPUT))
    }

    pub fn language(&self) -> Option<Language> {
        self.adapter.language()
    }
}

#[derive(Debug, Args)]
pub struct Adapt {
    #[command(flatten)]
    pub config: Config,
    /// Print it over several lines, indented
    #[arg(short, long)]
    pub pretty: bool,
    /// Check the certificates that it names too, as `validate` does
    #[arg(long)]
    pub validate: bool,
}

/// What a server that runs for long is told, beside its configuration.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    pub config: Config,
    /// Load the Caddyfile again whenever it changes
    #[arg(short, long)]
    pub watch: bool,
    /// Add what this file says (NAME=value lines) to the environment, but change nothing that is there; may be given several times
    #[arg(long = "envfile", value_name = "FILE")]
    pub environment_files: Vec<PathBuf>,
    /// Print the environment before all else: with what is secret in it
    #[arg(short, long)]
    pub environ: bool,
    /// Begin with the configuration that was loaded last by the admin API, if there is one
    #[arg(short, long)]
    pub resume: bool,
    /// Write the process ID to this file, which is removed at the end
    #[arg(long, value_name = "FILE")]
    pub pidfile: Option<PathBuf>,
    /// Leave the terminal, as `start` has its server do
    #[arg(long, hide = true)]
    pub detach: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  regent run                                               the Caddyfile in the current directory
  regent run --config /etc/regent/Caddyfile                another one
  regent run --watch                                       while you work on it
  regent run --envfile .env --pidfile /run/regent.pid      with an environment of its own
  regent start && regent stop                              in the background";

#[derive(Debug, Args)]
pub struct Stop {
    /// The configuration of the server, which names its admin listener
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub adapter: Adapter,
    /// The admin listener of the server, if no Caddyfile is named: HOST:PORT, or unix//PATH
    #[arg(
        long,
        visible_alias = "admin",
        value_name = "ADDRESS",
        env = "REGENT_ADMIN",
        default_value = usual_admin()
    )]
    pub address: Address,
}

/// Where the service of the Debian package has its admin API: closed to scripts, which have another user.
const ADMIN_OF_SERVICE: &str = "/run/regent/admin.sock";

/// Of the service where it runs, else that of a server whose configuration names none.
fn usual_admin() -> &'static str {
    if Path::new(ADMIN_OF_SERVICE).exists() { "unix//run/regent/admin.sock" } else { "localhost:2019" }
}

/// Commands all of whose words are another program's.
const HANDED_ON: [&str; 2] = ["bench", "php-cli"];

impl Arguments {
    /// The words of the command line, with the program's name.
    pub fn of_words(mut words: Vec<OsString>) -> Self {
        if words.get(1).is_some_and(|name| HANDED_ON.iter().any(|own| name == own)) {
            // Clap takes the first one for its own, and a `--` that follows is a word like any other.
            words.insert(2, "--".into());
        }
        Self::parse_from(words)
    }
}

#[derive(Debug, Args)]
pub struct PhpCli {
    /// What PHP is told
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Php {
    #[command(subcommand)]
    pub question: PhpQuestion,
}

#[derive(Debug, Subcommand)]
pub enum PhpQuestion {
    /// List its extensions, which of them go well with threads, and how to add one
    Extensions(Extensions),
}

#[derive(Debug, Args)]
pub struct Extensions {
    #[command(flatten)]
    pub config: Config,
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EMBED_HELP)]
pub struct Embed {
    /// The application's directory, with its `public`, its Caddyfile and its php.ini, as far as it has them
    pub app: PathBuf,
    /// The executable that is made; it may lie in the application's directory, and is no part of it
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Leave this out: a name wherever it is (`.git`, `*.log`), or a path (`var/cache/*`); may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
}

const EMBED_HELP: &str = "\
Examples:
  regent embed . -o my-app --exclude .git --exclude node_modules
  ./my-app php-server --listen :8080                       serve it; without options, as its Caddyfile says
  ./my-app run                                             the same
  ./my-app php-cli bin/console cache:clear                 its scripts";

#[derive(Debug, Args)]
pub struct Completion {
    /// For which shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct Manpage {
    /// Where to; it is made if need be
    #[arg(short = 'o', long, value_name = "DIRECTORY")]
    pub directory: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = RELOAD_EXAMPLES)]
pub struct Reload {
    /// The configuration, which the server reads [default: the one that it was started with]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub adapter: Adapter,
    /// The admin listener of the server: HOST:PORT, or unix//PATH
    #[arg(
        long,
        visible_alias = "admin",
        value_name = "ADDRESS",
        env = "REGENT_ADMIN",
        default_value = usual_admin()
    )]
    pub address: Address,
    /// Load it even if it is the current one: workers, links to directories and certificates anew
    #[arg(short, long)]
    pub force: bool,
    /// Return when the requests that began before have ended too, after so many seconds with an error
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "30")]
    pub wait: Option<NonZeroU16>,
}

const RELOAD_EXAMPLES: &str = "\
Examples:
  regent reload                                            the Caddyfile that the server was started with
  regent reload --config /etc/regent/Caddyfile             another one
  regent reload --force                                    after a deployment that has moved a link
  regent reload --force --wait && rm -r releases/41        nothing runs in the release before any more
  regent reload --address unix//run/regent.sock            of another server";

#[derive(Debug, Args)]
#[command(after_help = UPGRADE_HELP)]
pub struct Upgrade {
    /// The admin listener of the server: HOST:PORT, or unix//PATH
    #[arg(
        long,
        visible_alias = "admin",
        value_name = "ADDRESS",
        env = "REGENT_ADMIN",
        default_value = usual_admin()
    )]
    pub address: Address,
    /// Seconds in which the new process has to be ready, with its workers
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    pub timeout: NonZeroU16,
}

const UPGRADE_HELP: &str = "\
The new process has the arguments, the environment and the directory of the running one, and reads the Caddyfile as it is now.
If it does not come to serve, the running one goes on, and the exit code is 1.";

/// Whose local CA is meant.
#[derive(Debug, Args)]
pub struct CaStorage {
    /// The storage that holds the CA [default: that of the configuration]
    #[arg(long, value_name = "DIRECTORY")]
    pub ca_storage: Option<PathBuf>,
    /// The configuration whose storage it is [default: none, and so the usual storage]
    #[arg(short, long, value_name = "FILE", conflicts_with = "ca_storage")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub adapter: Adapter,
}

#[derive(Debug, Args)]
#[command(after_help = TRUST_HELP)]
pub struct Trust {
    #[command(flatten)]
    pub storage: CaStorage,
}

const TRUST_HELP: &str = "\
The CA is made if there is none. Stores of the system are for root to change; name the storage of the server's user then:
  sudo regent trust --ca-storage ~/.local/share/caddy

The exit code is 1 if no store took the certificate.";

#[derive(Debug, Args)]
pub struct Untrust {
    #[command(flatten)]
    pub storage: CaStorage,
    /// The root certificate, for one that is no longer in a storage
    #[arg(short = 'p', long, value_name = "FILE", conflicts_with_all = ["ca_storage", "config"])]
    pub cert: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Fmt {
    /// The Caddyfile [default: Caddyfile in the current directory]
    pub file: Option<PathBuf>,
    /// Write the result back
    #[arg(short = 'w', long)]
    pub overwrite: bool,
}

/// Which running server is meant.
#[derive(Debug, Args)]
pub struct Admin {
    /// The admin listener of the server: HOST:PORT, or unix//PATH
    #[arg(
        long = "admin",
        global = true,
        value_name = "ADDRESS",
        env = "REGENT_ADMIN",
        default_value = usual_admin()
    )]
    pub address: Address,
}

#[derive(Debug, Args)]
pub struct Bench {
    /// What regent-bench is told
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<OsString>,
}
