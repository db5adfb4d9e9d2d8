//! The process of a task, and all that it has started.

use super::TaskPlan;
use crate::program::{SERVICE_MANAGERS, spawn_as};
use regent_wire::control;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::{ExitStatus, Stdio};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// Dropped, it is killed with its group.
pub(super) struct TaskProcess {
    child: Child,
    /// As long as it has not been waited for, its number belongs to no other.
    group: Option<Pid>,
}

impl TaskProcess {
    /// Starts it. What it prints is to be read, or it waits.
    pub(super) fn start(plan: &TaskPlan) -> io::Result<(Self, ChildStdout, ChildStderr)> {
        let mut command = Command::new(&plan.program);
        command.arg("--task").arg(String::from_utf8_lossy(&control::encode(&plan.confinement)).trim_end());
        for (key, value) in &plan.ini {
            command.arg("-d").arg(format!("{key}={value}"));
        }
        command.arg("-f").arg(&plan.task.file).arg("--").args(&plan.task.arguments);
        // A group of its own, as engines have.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command.kill_on_drop(true);
        SERVICE_MANAGERS.into_iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(plan.task.env.iter().map(|(name, value)| (name, value)));
        let mut child = spawn_as(plan.user.as_ref(), &mut command)?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        let (stdout, stderr) = pipes.ok_or_else(|| io::Error::other("it has no pipes"))?;
        let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok((Self { child, group }, stdout, stderr))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Waits for its end, and ends what it leaves behind. Nothing is lost when it is dropped before it is ready.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        // Those that it has started are in the group still, which so belongs to no other.
        self.signal(Signal::KILL);
        self.group = None;
        status
    }

    /// To all of its group.
    pub(super) fn signal(&self, signal: Signal) {
        // There is nobody in it otherwise.
        let _ = self.group.map(|group| kill_process_group(group, signal));
    }
}

impl Drop for TaskProcess {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
