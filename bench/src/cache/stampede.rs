//! Many who come at once for a page that is not there yet, and how often PHP ran for them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::server::{Ground, Keeper};
use crate::load::figures::Figures;
use crate::load::h2load;
use crate::samples::Running;
use crate::supervise::run_to_end;

/// All have their answer by then, or it has failed.
const MOST: Duration = Duration::from_secs(60);
/// The name in the query that makes a page a new one.
const NAME: &str = "stampede";

/// One of them, of one server.
#[derive(Clone, Debug)]
pub struct Stampede {
    pub server: Keeper,
    pub figures: Figures,
    /// Of PHP, for this page.
    pub runs: u64,
}

/// Has WordPress say how often it has run for such a page.
pub fn count_runs(root: &Path) -> Result<()> {
    let text = include_str!("count-runs.php").replace("NAME", NAME);
    Ok(fs::write(root.join("wp-content/mu-plugins/count-runs.php"), text)?)
}

/// As often as there are rounds, on each server that has a cache, for another page each time.
pub fn run_all(servers: &mut [Running<Keeper>], ground: &Ground<'_>) -> Result<Vec<Stampede>> {
    let mut all = Vec::new();
    for round in 1..=ground.options.rounds {
        for server in servers.iter_mut().filter(|server| server.server.keeps()) {
            server.check_alive()?;
            let stampede =
                run(round, server, ground).with_context(|| format!("a stampede on {}", server.server))?;
            eprintln!("stampede {round}, {}: {} runs of PHP", server.server, stampede.runs);
            all.push(stampede);
        }
    }
    Ok(all)
}

fn run(round: u32, server: &Running<Keeper>, ground: &Ground<'_>) -> Result<Stampede> {
    let connections = ground.options.stampede;
    let mut command = h2load::command(connections, 1);
    command.arg("--h1").arg(format!("http://127.0.0.1:{}/?{NAME}={round}", server.port));
    let log = ground.site.path().join("h2load.log");
    let figures = h2load::measure_each(command, connections, MOST, &log, ground.interrupt)?;
    Ok(Stampede { server: server.server, figures, runs: runs(round, server, ground)? })
}

/// PHP tells it itself, in an answer that no cache keeps.
fn runs(round: u32, server: &Running<Keeper>, ground: &Ground<'_>) -> Result<u64> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--max-time", "30", "--request", "POST"]);
    curl.arg(format!("http://127.0.0.1:{}/?{NAME}-runs={round}", server.port));
    let (status, text) = run_to_end(curl, Duration::from_secs(35), ground.interrupt)?;
    let number = text.trim().parse().ok().filter(|_| status.success());
    number.with_context(|| format!("the number of runs could not be had ({status}): {text}"))
}
