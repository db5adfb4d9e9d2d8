//! Runs a server until it is told to stop.

use crate::addresses::{self, Scheme, Served};
use crate::arguments::Run;
use crate::autosave::{Autosave, Saved};
use crate::configuration::{Configurations, Origin};
use crate::embedded::Embedded;
use crate::log::{self, ServerLogs};
use crate::pid_file::PidFile;
use crate::successor::{self, Program};
use crate::{activation, build_info, environment_file, service_manager, watch};
use anyhow::{Context, Result};
use regent_config::Listen;
use regent_server::{AccessLogs, EngineKind, Force, Options, Reloader, Running, Sockets, StartError};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Set to 1, it leaves the server open to debuggers, profilers and core dumps, and so to scripts.
const DUMPABLE: &str = "REGENT_DUMPABLE";

/// How long work in the background may go on after the last request, as that of a certificate that is being stored.
const LAST_WORK: Duration = Duration::from_secs(1);

/// How long a server that is told to stop while it starts goes on with that: PHP may hang in its configuration.
const LAST_START: Duration = Duration::from_secs(5);

/// How a server begins, beside its configuration.
#[derive(Debug, Default)]
pub struct Begin {
    watching: Watching,
    resumption: Resumption,
    pid_file: Option<PathBuf>,
    /// Where it works, if not where it was started.
    directory: Option<PathBuf>,
}

impl Begin {
    pub fn within(directory: &Path) -> Self {
        Self { directory: Some(directory.to_owned()), ..Self::default() }
    }
}

/// Whether it begins with what the admin API has loaded last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Resumption {
    #[default]
    No,
    Yes,
}

/// Whether a changed Caddyfile is noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Watching {
    #[default]
    No,
    Yes,
}

/// `regent run`. Without a configuration that is named, it is that of the application which is in this program.
pub fn run(options: Run, embedded: Option<&Embedded>) -> Result<()> {
    environment_file::become_with(&options.environment_files)?;
    if options.detach {
        // It leads a session already otherwise.
        let _ = rustix::process::setsid();
    }
    if options.environ {
        print!("{}", build_info::environment());
    }
    let begin = Begin {
        watching: if options.watch { Watching::Yes } else { Watching::No },
        resumption: if options.resume { Resumption::Yes } else { Resumption::No },
        pid_file: options
            .pidfile
            .map(std::path::absolute)
            .transpose()
            .context("finding the place of --pidfile")?,
        directory: embedded
            .filter(|_| options.config.config.is_none())
            .map(|embedded| embedded.directory().to_owned()),
    };
    serve(Origin::File(options.config), begin)
}

/// Serves until SIGINT or SIGTERM: then drains; a second one stops at once. So it does when another process has taken its
/// place.
pub fn serve(origin: Origin, begin: Begin) -> Result<()> {
    let program = Program::of_process()?;
    regent_rights::keep_to_itself().context("keeping its capabilities from the programs that it starts")?;
    if let Some(directory) = &begin.directory {
        std::env::set_current_dir(directory).with_context(|| format!("entering {}", directory.display()))?;
    }
    let Some((predecessor, legacy)) = successor::predecessor()? else {
        let sockets = Sockets { inherited: activation::sockets()?, predecessor: None };
        let resumed = match begin.resumption {
            Resumption::Yes => Autosave::of_user().map(|autosave| autosave.read()).transpose()?.flatten(),
            Resumption::No => None,
        };
        return serve_at(sockets, origin.settled(None)?, resumed, begin, program);
    };
    let sockets = Sockets { inherited: legacy.inherited, predecessor: Some(predecessor.clone()) };
    // It goes on with what is served now.
    let current = legacy.configuration.as_deref().map(Saved::of_text).transpose();
    let served = current
        .and_then(|current| serve_at(sockets, origin.settled(current.as_ref())?, current, begin, program));
    served.inspect_err(|error| predecessor.refuse(&format!("{error:#}")))
}

fn serve_at(
    sockets: Sockets,
    origin: Origin,
    current: Option<Saved>,
    begin: Begin,
    program_of_process: Program,
) -> Result<()> {
    let Begin { watching, pid_file, .. } = begin;
    let predecessor = sockets.predecessor.clone();
    // That of the server before is right as long as it serves.
    let mut held = match predecessor {
        None => pid_file.as_deref().map(PidFile::write).transpose()?,
        Some(_) => None,
    };
    let configurations = Configurations::new(origin.clone(), current);
    let configuration = configurations.load()?;
    let config = &configuration.config;
    let log = log::start(&config.global.server_logs())?;
    let _closed_at_end = log.closed_at_end();
    // What was resumed is not what is watched.
    let watched =
        (watching == Watching::Yes).then(|| origin.read_quietly().unwrap_or_else(|_| config.clone()));
    let served: Vec<_> = config.servers.iter().map(Served::new).collect();
    raise_descriptor_limit();
    close_memory();
    let options = Options {
        php: program(EngineKind::Php)?.into(),
        native: program(EngineKind::Native)?.into(),
        source: Arc::new(configurations),
        successor: Arc::new(program_of_process),
    };
    let runtime = regent_server::runtime().build()?;
    let served = runtime.block_on(async {
        tokio::spawn(regent_server::keep_one_thread());
        let mut stops = Stops::new()?;
        let rotations = signal(SignalKind::user_defined1()).context("handling SIGUSR1")?;
        let hangups = signal(SignalKind::hangup()).context("handling SIGHUP")?;
        let upgrades = signal(SignalKind::user_defined2()).context("handling SIGUSR2")?;
        let starting = regent_server::start(configuration, options, sockets);
        let running = match started(starting, &mut stops).await? {
            Started::Whole(running) => running,
            Started::Unwanted(running) => {
                stop(running, &mut stops).await;
                return Ok(());
            }
            Started::Not => return Ok(()),
        };
        announce(&running, &served);
        if let Some(predecessor) = predecessor {
            held = pid_file.as_deref().map(PidFile::write).transpose()?;
            predecessor.serving().context("taking over from the server before")?;
        }
        let logs = Logs { own: log, access: running.access_logs() };
        tokio::spawn(follow_rotations(rotations, logs.clone()));
        tokio::spawn(follow_hangups(hangups, logs, running.reloader()));
        tokio::spawn(follow_upgrades(upgrades, running.reloader()));
        tokio::spawn(service_manager::keep_watchdog(running.pulse()));
        if let Some(loaded) = watched {
            tokio::spawn(watch::follow(origin, loaded, running.reloader()));
        }
        service_manager::ready();
        let mut is_succeeded = false;
        tokio::select! {
            () = stops.next() => {}
            () = running.stop_wanted() => tracing::info!("the admin API was asked to stop the server"),
            () = running.succeeded() => is_succeeded = true,
        }
        // The service goes on otherwise.
        if !is_succeeded {
            service_manager::stopping();
        }
        linger_and_stop(running, &mut stops).await;
        Ok(())
    });
    // Programs of the system, and disks, may hang.
    runtime.shutdown_timeout(LAST_WORK);
    drop(held);
    served
}

/// What came of a start.
enum Started {
    Whole(Running),
    /// To be stopped, though it began well.
    Unwanted(Running),
    Not,
}

/// A server serves what needs no PHP before PHP runs: when a signal stops it then, this waits for the rest, so that it can be
/// stopped in good order.
async fn started(
    starting: impl Future<Output = Result<Running, StartError>>,
    stops: &mut Stops,
) -> Result<Started> {
    let mut starting = pin!(starting);
    tokio::select! {
        running = &mut starting => return Ok(Started::Whole(running?)),
        () = stops.next() => say_stopping(),
    }
    tokio::select! {
        running = tokio::time::timeout(LAST_START, starting) => {
            Ok(running.map_or(Ok(Started::Not), |running| running.map(Started::Unwanted))?)
        }
        () = stops.next() => Ok(Started::Not),
    }
}

fn say_stopping() {
    tracing::info!("stopping: running requests are answered first; a second signal stops at once");
}

/// First for as long as the configuration says.
async fn linger_and_stop(running: Running, stops: &mut Stops) {
    tokio::select! {
        () = running.linger() => {}
        () = stops.next() => return tracing::warn!("stopped at once"),
    }
    say_stopping();
    stop(running, stops).await;
}

async fn stop(running: Running, stops: &mut Stops) {
    tokio::select! {
        () = running.stop() => tracing::info!("stopped"),
        () = stops.next() => tracing::warn!("stopped at once"),
    }
}

/// The signals that stop a server.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
}

impl Stops {
    fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("handling SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("handling SIGTERM")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// All log files.
#[derive(Clone)]
struct Logs {
    own: ServerLogs,
    access: AccessLogs,
}

impl Logs {
    fn reopen(&self) {
        self.own.reopen();
        self.access.reopen();
        tracing::info!("opening the log files again");
    }
}

/// Opens the log files again after each rotation, of which SIGUSR1 tells, as it does nginx and php-fpm.
async fn follow_rotations(mut rotations: Signal, logs: Logs) {
    while rotations.recv().await.is_some() {
        logs.reopen();
    }
}

/// Has another process take this one's place on SIGUSR2, as nginx does.
async fn follow_upgrades(mut upgrades: Signal, reloader: Reloader) {
    while upgrades.recv().await.is_some() {
        // What goes wrong is in the log. A panic must not end this task.
        let reloader = reloader.clone();
        let _ = tokio::spawn(async move { reloader.upgrade().await }).await;
    }
}

/// Loads the configuration again on each SIGHUP, and opens the log files again, as most daemons do. A terminal that hangs up
/// does not end the server, and changes nothing as long as the configuration is the same.
async fn follow_hangups(mut hangups: Signal, logs: Logs, reloader: Reloader) {
    while hangups.recv().await.is_some() {
        logs.reopen();
        let reloader = reloader.clone();
        // A task of its own: its panic must not end this one, and with it all reloads to come.
        let reload =
            tokio::spawn(async move { service_manager::reloading(reloader.reload(Force::No)).await });
        let error = match reload.await {
            Ok(Ok(_)) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(bug) => bug.to_string(),
        };
        tracing::error!("the configuration was not loaded, and the one before goes on: {error}");
    }
}

fn announce(running: &Running, served: &[Served]) {
    for (address, served) in running.addresses().iter().zip(served) {
        match address {
            Listen::Tcp(address) => {
                tracing::info!(address = %address, "serving {}", served.urls(address).join(", "));
            }
            Listen::Unix(socket) => tracing::info!("serving the Unix socket {}", socket.path.display()),
            // Known by where it is bound.
            Listen::Descriptor(number) => tracing::info!("serving the socket fd/{number}"),
        }
    }
    if let Some(address) = running.admin_addresses().first() {
        let url = addresses::local_url(Scheme::Http, address);
        tracing::info!(address = %address, "the dashboard and the admin API are at {url}");
    }
}

/// Each connection is a descriptor; the soft limit of most systems is 1,024.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}

/// Keeps scripts, which run as the same user, from this process's memory and descriptors (`/proc/PID/mem`, ptrace(2)),
/// unless a developer wants to have a look. The kernel writes no core dump of such a process either.
fn close_memory() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if std::env::var_os(DUMPABLE).is_some_and(|value| value == "1") {
        tracing::warn!("{DUMPABLE}=1: scripts can read and change the memory of this process");
    } else if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "scripts can read and change the memory of this process");
    }
}

/// Beside this program, unless the environment names another. Where a link is there, as of Debian's alternatives, what it leads to
/// now: a server keeps its PHP when the link is changed.
pub fn program(engine: EngineKind) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(engine.variable()) {
        return Ok(named.into());
    }
    let own = std::env::current_exe().context("finding this program's own path")?;
    let beside = own.with_file_name(engine.program());
    // What is missing is said where it is needed.
    Ok(std::fs::canonicalize(&beside).unwrap_or(beside))
}
