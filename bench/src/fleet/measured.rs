//! Four Regents behind HAProxy on this machine, and the simulation of the same.
//!
//! Their scripts sleep, so that the cores of this machine are not what is waited for: what is measured is the queue of each
//! server and the choice of the balancer.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Options;
use super::model::{self, Arrivals, Check, Fleet, Load, Policy, Service};
use super::simulation;
use crate::generator::histogram::Latencies;
use crate::generator::plan::{Connections, Expect, Kind, Limit, Pace, Plan};
use crate::generator::process::run_in_processes;
use crate::interrupt::Interrupt;
use crate::peers::programs::{find, version_line};
use crate::peers::{free_port, run_command};
use crate::samples::listens;
use crate::site::{SLEEP_PATH, Site};
use crate::supervise::Daemon;
use crate::usage::{Snapshot, Usage};

/// Of the load generator, and of HAProxy on each side.
pub const MOST_CONNECTIONS: u32 = 1000;
const NODES: usize = 4;
const THREADS: usize = 4;
const SLEEP_MS: u32 = 20;
/// Parts of the capacity, which the measured service time makes.
const LOADS: [f64; 2] = [0.6, 0.8];
const POLICIES: [Policy; 4] = [Policy::RoundRobin, Policy::Random, Policy::P2c, Policy::LeastConn];
/// A load at which nobody waits.
const IDLE_RATE: f64 = 20.0;

pub struct Balancing {
    pub points: Vec<Point>,
    /// What a request takes of a thread, and the rest of its time: as measured when nobody waits.
    pub service: Duration,
    pub way: Duration,
    pub software: Vec<String>,
}

pub struct Point {
    pub policy: Policy,
    pub load: f64,
    pub rate: f64,
    pub failed: u64,
    pub measured: Latencies,
    pub simulated: Latencies,
    /// CPU time of HAProxy for each request.
    pub balancer_us: Option<f64>,
}

pub fn measure(options: &Options, site: &Site, interrupt: &Interrupt) -> Result<Balancing> {
    let regent = options.regent_binary()?;
    let haproxy = find("haproxy").context("haproxy is not installed")?;
    let mut ports = Vec::new();
    let mut servers = Vec::new();
    for _ in 0..NODES {
        let port = free_port(1)?;
        servers.push(start_regent(&regent, site, port, interrupt)?);
        ports.push(port);
    }
    let (service, idle) = alone(&haproxy, site, &ports, options.measure, interrupt)?;
    let way = idle.saturating_sub(service);
    let mut points = Vec::new();
    for load in LOADS {
        for policy in POLICIES {
            let rate = (NODES * THREADS) as f64 / service.as_secs_f64() * load;
            let port = free_port(1)?;
            let proxy = start_haproxy(&haproxy, site, policy, port, &ports, interrupt)?;
            let before = Snapshot::of(&[proxy.leader()]);
            let outcome = run_in_processes(&plan(port, rate, options.measure), 1, interrupt)?;
            let usage = Usage::since(&before, &[proxy.leader()], outcome.requests());
            servers.iter_mut().try_for_each(Daemon::check_alive)?;
            eprintln!("measured {policy} at {:.0} %: {} requests", load * 100.0, outcome.requests());
            points.push(Point {
                policy,
                load,
                rate,
                failed: outcome.failed(),
                measured: outcome.latencies(),
                simulated: simulate(options, policy, rate, service, way),
                balancer_us: usage.cpu_us_per_request,
            });
        }
    }
    let software = vec![version_line(&regent, "version"), version_line(&haproxy, "-v")];
    Ok(Balancing { points, service, way, software })
}

/// What a request takes of a thread, as all of them have it who are always busy; and what it takes altogether when nobody
/// waits: half of them no longer than that.
fn alone(
    haproxy: &Path,
    site: &Site,
    ports: &[u16],
    duration: Duration,
    interrupt: &Interrupt,
) -> Result<(Duration, Duration)> {
    let port = free_port(1)?;
    let _proxy = start_haproxy(haproxy, site, Policy::LeastConn, port, ports, interrupt)?;
    let idle = run_in_processes(&plan(port, IDLE_RATE, duration), 1, interrupt)?;
    let users = (NODES * THREADS * 3) as u32;
    let busy = Plan { pace: Pace::Closed { users }, ..plan(port, IDLE_RATE, duration) };
    let busy = run_in_processes(&busy, 1, interrupt)?;
    for outcome in [&idle, &busy] {
        ensure!(outcome.failed() == 0, "requests failed: {:?}", outcome.failures());
    }
    let median = idle.latencies().quantile_ms(0.5).context("no request was answered")?;
    let service = (NODES * THREADS) as f64 / busy.throughput();
    Ok((Duration::from_secs_f64(service), Duration::from_secs_f64(median / 1e3)))
}

/// For long enough that its own chance does not show.
fn simulate(options: &Options, policy: Policy, rate: f64, service: Duration, way: Duration) -> Latencies {
    let balancing = model::Balancing { policy, balancers: 1, check: Check::HAPROXY };
    let fleet = Fleet {
        nodes: NODES,
        threads: THREADS,
        service: Service::Fixed(service),
        balancing,
        way,
        longest_wait: None,
    };
    let duration = Duration::from_secs(600);
    let load = Load {
        arrivals: Arrivals::Even,
        ..Load::steady(rate, duration, Duration::from_secs(10), options.seed)
    };
    simulation::run(&fleet, &load, &[], None, duration).total.latency
}

fn plan(port: u16, rate: f64, duration: Duration) -> Plan {
    Plan {
        targets: vec![([127, 0, 0, 1], port).into()],
        source: None,
        host: format!("127.0.0.1:{port}"),
        pace: Pace::Open { rate, most_connections: MOST_CONNECTIONS },
        connections: Connections::KeepAlive,
        limit: Limit::Duration(duration),
        timeout: Duration::from_secs(10),
        mix: vec![Kind {
            name: "sleep".to_owned(),
            weight: 1,
            method: "GET".to_owned(),
            target: format!("{SLEEP_PATH}?sleep={SLEEP_MS}&work=0&output=1&iterations=1"),
            body_bytes: 0,
            window: None,
            leave_after: None,
            expect: Expect::Any,
        }],
        seed: 1,
    }
}

fn start_regent(program: &Path, site: &Site, port: u16, interrupt: &Interrupt) -> Result<Daemon> {
    let directory = site.server_directory("fleet")?;
    let text = format!(
        "{{\n\tadmin off\n\tregent {{\n\t\tnum_threads {THREADS}\n\t}}\n}}\n\n\
         http://127.0.0.1:{port} {{\n\tbind 127.0.0.1\n\troot * \"{}\"\n\tphp_server\n}}\n",
        site.document_root().display(),
    );
    let config = directory.join("Caddyfile");
    fs::write(&config, text)?;
    let command = run_command(program, &config, &site.php_settings(&directory, None)?);
    let mut daemon = Daemon::start("regent", command, &directory.join("output.log"))?;
    daemon.wait_until_ready(interrupt, || listens(port))?;
    Ok(daemon)
}

fn start_haproxy(
    program: &Path,
    site: &Site,
    policy: Policy,
    port: u16,
    nodes: &[u16],
    interrupt: &Interrupt,
) -> Result<Daemon> {
    let directory = site.server_directory("haproxy")?;
    let balance = match policy {
        Policy::Random => "random(1)",
        Policy::P2c => "random(2)",
        Policy::RoundRobin => "roundrobin",
        Policy::LeastConn => "leastconn",
    };
    let servers: String = nodes
        .iter()
        .enumerate()
        .map(|(number, node)| format!("\tserver s{number} 127.0.0.1:{node}\n"))
        .collect();
    let text = format!(
        "global\n\tmaxconn {limit}\n\tnbthread 1\ndefaults\n\tmode http\n\ttimeout connect 2s\n\ttimeout client 60s\n\
         \ttimeout server 60s\nfrontend web\n\tbind 127.0.0.1:{port}\n\tdefault_backend regent\nbackend regent\n\
         \tbalance {balance}\n{servers}",
        limit = MOST_CONNECTIONS * 2,
    );
    let config = directory.join("haproxy.cfg");
    fs::write(&config, text)?;
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(&config);
    let mut daemon = Daemon::start("haproxy", command, &directory.join("output.log"))?;
    daemon.wait_until_ready(interrupt, || listens(port))?;
    Ok(daemon)
}
