//! The real server under callgrind, from its start to its end.
//!
//! What is alike in all runs: one CPU and strict turns ([`crate::turns`]), one PHP thread for each mode, the
//! environment (`$_SERVER` is a copy of it), the lengths of all paths, the number of digits of the port (those that the
//! kernel gives away have five), and the requests before those that are counted. What is left is the clock, which lets
//! hyper write a new `Date` each second.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::client::Client;
use crate::profile::Profile;
use crate::scenario::{Process, Scenario};
use crate::site::{self, Site};

/// Time for the start and for the end: a hundred times what they take, since only a failure waits this long.
const DEADLINE: Duration = Duration::from_secs(120);
/// valgrind runs one thread of a process at a time, and by default none has a right to be the next: the one that tells
/// the server that the engine lives waited for seconds, and the engine was taken for hung.
const FAIR: &str = "--fair-sched=yes";
const RETRY: Duration = Duration::from_millis(10);

/// What one run of the server has cost.
#[derive(Debug)]
pub struct Run {
    pub server: Profile,
    pub engine: Profile,
    pub php_version: String,
}

/// Starts the server, sends it one request of each kind and then `requests` of the scenario's, and stops it.
pub fn run(site: &Site, regent: &Path, scenario: Scenario, requests: u32) -> Result<Run> {
    let profiles = tempfile::tempdir_in(site.path())?;
    let mut server = Server::start(site, regent, profiles.path())?;
    let php_version = match server.load(scenario, requests) {
        Ok(version) => version,
        Err(error) => bail!("{error:#}{}", server.log_end()),
    };
    server.stop()?;
    let (server, engine) = read_profiles(profiles.path())?;
    Ok(Run { server, engine, php_version })
}

/// Killed when dropped; its engine goes with it.
struct Server {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Server {
    fn start(site: &Site, regent: &Path, profiles: &Path) -> Result<Self> {
        let port = free_port()?;
        let config = site.configure(port)?;
        let log = site.path().join("output.log");
        let output = File::create(&log)?;
        let mut command = valgrind(profiles);
        command.arg(regent).arg("run").arg("--config").arg(config);
        command.current_dir(site.path()).env("PHP_INI_SCAN_DIR", site.php_settings_directory());
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command
            .spawn()
            .context("running valgrind: install the package of this name (tools/setup valgrind)")?;
        Ok(Self { child, port, log })
    }

    /// Returns PHP's version.
    fn load(&mut self, scenario: Scenario, requests: u32) -> Result<String> {
        let mut client = self.connect()?;
        let version = client.get(site::VERSION_PATH)?;
        for warm_up in Scenario::ALL {
            self.get(&mut client, warm_up)?;
        }
        for _ in 0..requests {
            self.get(&mut client, scenario)?;
        }
        Ok(version)
    }

    fn get(&mut self, client: &mut Client, scenario: Scenario) -> Result<()> {
        let path = site::url_path(scenario);
        let body = match scenario {
            Scenario::Connection => self.connect()?.get_last(path)?,
            _ => client.get(path)?,
        };
        ensure!(body.len() == site::body_length(scenario), "{scenario} was answered with {body:?}");
        Ok(())
    }

    fn connect(&mut self) -> Result<Client> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match Client::connect(self.port) {
                Ok(client) => return Ok(client),
                Err(error) if Instant::now() > deadline => {
                    return Err(error).context("the server does not listen");
                }
                Err(_) => std::thread::sleep(RETRY),
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the server has ended ({status})");
            }
        }
    }

    fn stop(&mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the server ended with {status}{}", self.log_end());
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the server did not stop{}", self.log_end());
            std::thread::sleep(RETRY);
        }
    }

    fn log_end(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("; the server's last words:\n  {}", lines[lines.len().saturating_sub(10)..].join("\n  "))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors are of a process that has ended, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn valgrind(profiles: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--quiet", "--trace-children=yes", FAIR]);
    command.arg(format!("--callgrind-out-file={}/%p", profiles.display()));
    command.env_clear();
    for name in ["PATH", "LD_LIBRARY_PATH"] {
        command.env(name, std::env::var_os(name).unwrap_or_default());
    }
    command
}

fn read_profiles(directory: &Path) -> Result<(Profile, Profile)> {
    let (mut server, mut engine) = (None, None);
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        let profile = Profile::parse(&text).with_context(|| format!("reading {}", path.display()))?;
        match profile.process() {
            Process::Server => server = Some(profile),
            Process::Engine => engine = Some(profile),
        }
    }
    Ok((server.context("callgrind wrote nothing of the server")?, engine.context("nor of the engine")?))
}

/// A port that nobody listens on, of five digits, below those that the kernel gives to whoever asks for any.
fn free_port() -> Result<u16> {
    const PORTS: std::ops::Range<u16> = 12_000..32_000;
    // Of each process another: a server before may still have its own.
    let start = u16::try_from(std::process::id() % u32::from(PORTS.end - PORTS.start))?;
    (0..PORTS.end - PORTS.start)
        .map(|number| PORTS.start + (start + number) % (PORTS.end - PORTS.start))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .context("no port is free on 127.0.0.1")
}
