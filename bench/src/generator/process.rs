//! Generators in processes of their own, so that their CPU time and descriptors are apart from those of the suite.

use std::fs::File;
use std::io::{Seek, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::outcome::Outcome;
use super::plan::{Limit, Pace, Plan, Stage};
use crate::interrupt::Interrupt;

/// How long an interrupt may go unseen: a signal between the question and the wait does not end the wait.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Runs the plan divided among `processes` copies of this program, at the same time, and merges what they saw.
///
/// Each has its share of the users, the rate and the requests, and its own random numbers; there are no more processes
/// than users, connections or requests. The arrivals of several open loops are each evenly spaced, their union is not.
///
/// An error of one ends all, as does an interrupt. They also end when this thread does.
pub fn run_in_processes(plan: &Plan, processes: u32, interrupt: &Interrupt) -> Result<Outcome> {
    let program = std::env::current_exe().context("this program's own path is unknown")?;
    run_program(&program, plan, processes, interrupt)
}

fn run_program(program: &Path, plan: &Plan, processes: u32, interrupt: &Interrupt) -> Result<Outcome> {
    let plans = divide(plan, processes);
    let spawn = |_: &Plan| Generator::spawn(load_command(program));
    let mut generators = plans.iter().map(spawn).collect::<Result<Vec<_>>>()?;
    // Each waits for its plan: the first does not start before the last is there.
    for (generator, plan) in generators.iter_mut().zip(&plans) {
        generator.start(plan)?;
    }
    let mut merged = Outcome::default();
    while !generators.is_empty() {
        interrupt.check()?;
        for ended in remove_ended(&mut generators)? {
            merged.merge(&ended.outcome()?);
        }
    }
    Ok(merged)
}

/// A process that runs a plan; dropping it ends it.
#[derive(Debug)]
struct Generator {
    child: Child,
    end: OwnedFd,
    /// A file, because an outcome does not fit in a pipe.
    output: File,
}

impl Generator {
    fn spawn(mut command: Command) -> Result<Self> {
        let output = tempfile::tempfile().context("a file for the outcome could not be made")?;
        let child = command
            // Ctrl-C is for the suite, which then ends its generators.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .spawn()
            .with_context(|| format!("{} could not be started", command.get_program().to_string_lossy()))?;
        let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Self { child, end, output })
    }

    /// Hands over the plan; the end of the input starts the run.
    fn start(&mut self, plan: &Plan) -> Result<()> {
        let mut input = self.child.stdin.take().expect("invariant: it is piped and started once");
        input.write_all(&serde_json::to_vec(plan)?).context("a load generator does not take its plan")
    }

    /// Of a process that has ended.
    fn outcome(mut self) -> Result<Outcome> {
        let status = self.child.wait()?;
        ensure!(status.success(), "a load generator failed ({status}); it said why above");
        self.output.rewind()?;
        serde_json::from_reader(&self.output).context("a load generator wrote no outcome")
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // Errors: it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn load_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["load", "--plan", "-", "--json"]);
    command
}

/// Waits until some have ended, a signal came or a moment is over, and takes those that have ended.
fn remove_ended(generators: &mut Vec<Generator>) -> Result<Vec<Generator>> {
    let mut ends: Vec<PollFd<'_>> =
        generators.iter().map(|generator| PollFd::new(&generator.end, PollFlags::IN)).collect();
    match poll(&mut ends, Some(&PATIENCE)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut has_ended: Vec<bool> = ends.iter().map(|end| !end.revents().is_empty()).collect();
    has_ended.reverse();
    let (ended, running) = std::mem::take(generators)
        .into_iter()
        .partition(|_| has_ended.pop().expect("invariant: there is one for each"));
    *generators = running;
    Ok(ended)
}

/// The plans of each process.
fn divide(plan: &Plan, processes: u32) -> Vec<Plan> {
    let processes = processes.min(most_processes(plan)).max(1);
    (0..processes).map(|index| part(plan, index, processes)).collect()
}

/// A process without a user, a connection or a request has nothing to do.
fn most_processes(plan: &Plan) -> u32 {
    let by_pace = match &plan.pace {
        Pace::Closed { users } => *users,
        Pace::Open { most_connections, .. } => *most_connections,
        Pace::Ramp { stages } => stages.iter().map(|stage| stage.users).max().unwrap_or(0),
    };
    match plan.limit {
        Limit::Requests(requests) => by_pace.min(u32::try_from(requests).unwrap_or(u32::MAX)),
        Limit::Duration(_) | Limit::Stages => by_pace,
    }
}

fn part(plan: &Plan, index: u32, processes: u32) -> Plan {
    let share = |whole: u32| share(u64::from(whole), index, processes) as u32;
    let pace = match &plan.pace {
        Pace::Closed { users } => Pace::Closed { users: share(*users) },
        Pace::Open { rate, most_connections } => {
            Pace::Open { rate: rate / f64::from(processes), most_connections: share(*most_connections) }
        }
        Pace::Ramp { stages } => Pace::Ramp {
            stages: stages.iter().map(|stage| Stage { users: share(stage.users), ..*stage }).collect(),
        },
    };
    let limit = match plan.limit {
        Limit::Requests(requests) => Limit::Requests(self::share(requests, index, processes)),
        other => other,
    };
    let seed = plan.seed.wrapping_add(u64::from(index));
    Plan { pace, limit, seed, source: source(plan, index), ..plan.clone() }
}

/// Every process after the first comes from a loopback address of its own, and so has ports of its own. (IPv6 has only
/// one.)
fn source(plan: &Plan, index: u32) -> Option<IpAddr> {
    let last = u8::try_from(index + 1).ok()?;
    let all_ipv4 = plan.targets.iter().all(SocketAddr::is_ipv4);
    (index > 0 && all_ipv4).then_some(IpAddr::from([127, 0, 0, last])).or(plan.source)
}

/// Shares that differ by one at most and sum up to the whole.
fn share(whole: u64, index: u32, processes: u32) -> u64 {
    let (quotient, rest) = (whole / u64::from(processes), whole % u64::from(processes));
    quotient + u64::from(u64::from(index) < rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::tests::plan;

    #[test]
    fn the_parts_sum_up_to_the_plan() {
        let whole = Plan { pace: Pace::Closed { users: 8 }, limit: Limit::Requests(100), seed: 7, ..plan() };
        let parts = divide(&whole, 3);
        let users = |plan: &Plan| match plan.pace {
            Pace::Closed { users } => users,
            _ => 0,
        };
        let requests = |plan: &Plan| match plan.limit {
            Limit::Requests(requests) => requests,
            _ => 0,
        };
        assert_eq!(parts.iter().map(users).collect::<Vec<_>>(), [3, 3, 2]);
        assert_eq!(parts.iter().map(requests).collect::<Vec<_>>(), [34, 33, 33]);
        assert_eq!(parts.iter().map(|plan| plan.seed).collect::<Vec<_>>(), [7, 8, 9]);
        let sources: Vec<_> = parts.iter().map(|plan| plan.source).collect();
        assert_eq!(sources, [None, Some([127, 0, 0, 2].into()), Some([127, 0, 0, 3].into())]);
    }

    #[test]
    fn there_are_no_idle_processes() {
        assert_eq!(divide(&Plan { pace: Pace::Closed { users: 2 }, ..plan() }, 8).len(), 2);
        assert_eq!(divide(&Plan { limit: Limit::Requests(1), ..plan() }, 8).len(), 1);
        let open = Pace::Open { rate: 10.0, most_connections: 100 };
        let parts = divide(&Plan { pace: open, ..plan() }, 4);
        assert_eq!(parts[3].pace, Pace::Open { rate: 2.5, most_connections: 25 });
    }

    #[test]
    fn a_generator_that_fails_is_an_error() {
        let error =
            run_program(Path::new("/bin/false"), &plan(), 1, &Interrupt::default()).expect_err("it fails");
        let text = format!("{error:#}");
        assert!(text.contains("failed") || text.contains("does not take its plan"), "{text}");
    }

    #[test]
    fn a_dropped_generator_ends() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let generator = Generator::spawn(command).expect("started");
        let end = generator.end.try_clone().expect("duplicated");
        drop(generator);
        let ended = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&Timespec { tv_sec: 5, tv_nsec: 0 }));
        assert_eq!(ended, Ok(1), "it outlived its owner");
    }
}
