//! The life of one process of a task: when it starts, and what follows its end.

use super::TaskPlan;
use super::output::{Stream, follow};
use super::process::TaskProcess;
use super::schedule::until_next;
use regent_config::{Restart, TaskTime};
use regent_metrics::{Registry, TaskEnd};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

/// Before one that has ended soon is started again; each time that it has, twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// One that has lived for so long has not ended soon.
const LONG_LIFE: Duration = Duration::from_secs(10);
/// How long its last lines are waited for: what it has started may hold its pipes open.
const LAST_LINES: Duration = Duration::from_secs(1);

pub(super) struct Runner {
    plan: TaskPlan,
    stopped: watch::Receiver<bool>,
    /// Before the next start.
    pause: Duration,
    registry: Arc<Registry>,
}

/// How a run ended.
enum Ended {
    Status(ExitStatus),
    /// It could not be started or waited for.
    Failed,
    /// The task is to end.
    Stopped,
}

impl Runner {
    pub(super) fn new(plan: TaskPlan, stopped: watch::Receiver<bool>, registry: Arc<Registry>) -> Self {
        Self { plan, stopped, pause: FIRST_PAUSE, registry }
    }

    /// `before`: what is to have ended first.
    pub(super) async fn run(mut self, before: Option<JoinHandle<()>>) {
        if let Some(before) = before {
            // It ends by a deadline of its own.
            let _ = before.await;
        }
        let mut next = Instant::now();
        loop {
            if let TaskTime::Schedule(schedule) = &self.plan.task.when {
                // A clock that is set meanwhile is looked at before each start.
                match until_next(schedule, SystemTime::now()) {
                    Some(wait) => next = Instant::now() + wait,
                    None => return,
                }
            }
            if self.is_stopped_until(next).await {
                return;
            }
            let started = Instant::now();
            let ended = self.run_once().await;
            let Some(start) = self.next_start(started, &ended) else { return };
            next = start;
        }
    }

    /// `None`: there is none.
    fn next_start(&mut self, started: Instant, ended: &Ended) -> Option<Instant> {
        let failed = match ended {
            Ended::Stopped => return None,
            Ended::Status(status) => !status.success(),
            Ended::Failed => true,
        };
        match &self.plan.task.when {
            TaskTime::Every(interval) => Some((started + *interval).max(Instant::now())),
            TaskTime::Schedule(_) => Some(Instant::now()),
            TaskTime::Always(Restart::Never) => None,
            TaskTime::Always(Restart::OnFailure) if !failed => None,
            TaskTime::Always(_) => {
                if started.elapsed() >= LONG_LIFE {
                    self.pause = FIRST_PAUSE;
                    return Some(Instant::now());
                }
                let pause = self.pause;
                self.pause = (pause * 2).min(LONGEST_PAUSE);
                Some(Instant::now() + pause)
            }
        }
    }

    /// Whether the task is told to end before that time.
    async fn is_stopped_until(&mut self, time: Instant) -> bool {
        tokio::select! {
            biased;
            // Whoever could tell is gone: so is the server.
            _ = self.stopped.wait_for(|stopped| *stopped) => true,
            () = sleep_until(time) => false,
        }
    }

    async fn run_once(&mut self) -> Ended {
        let (task, number) = (self.plan.task.name.clone(), self.plan.number);
        let mut counted = Counted::new(&self.registry, &task);
        let (mut process, stdout, stderr) = match TaskProcess::start(&self.plan) {
            Ok(started) => started,
            Err(error) => {
                tracing::error!(target: "task", task, number, %error, "the task could not be started");
                counted.end = TaskEnd::Failed;
                return Ended::Failed;
            }
        };
        tracing::debug!(target: "task", task, number, pid = process.pid(), "the task has started");
        let lines = [
            tokio::spawn(follow(self.plan.clone(), Stream::Out, stdout)),
            tokio::spawn(follow(self.plan.clone(), Stream::Error, stderr)),
        ];
        let ended = self.until_end(&mut process).await;
        for mut reader in lines {
            if tokio::time::timeout(LAST_LINES, &mut reader).await.is_err() {
                reader.abort();
            }
        }
        self.tell(&ended);
        if matches!(&ended, Ended::Failed) || matches!(&ended, Ended::Status(status) if !status.success()) {
            counted.end = TaskEnd::Failed;
        }
        ended
    }

    async fn until_end(&mut self, process: &mut TaskProcess) -> Ended {
        let timeout = self.plan.task.timeout;
        let limit = async {
            match timeout {
                Some(timeout) => sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let stopped = tokio::select! {
            biased;
            status = process.wait() => return of(status),
            _ = self.stopped.wait_for(|stopped| *stopped) => true,
            () = limit => false,
        };
        if !stopped {
            let (task, number) = (self.plan.task.name.as_str(), self.plan.number);
            tracing::warn!(target: "task", task, number, "the task has run for longer than its `timeout`");
        }
        process.signal(Signal::TERM);
        let ended = tokio::time::timeout(self.plan.task.stop_timeout, process.wait()).await;
        let status = match ended {
            Ok(status) => status,
            Err(_) => {
                process.signal(Signal::KILL);
                process.wait().await
            }
        };
        if stopped { Ended::Stopped } else { of(status) }
    }

    fn tell(&self, ended: &Ended) {
        let (task, number) = (self.plan.task.name.as_str(), self.plan.number);
        match ended {
            Ended::Status(status) if status.success() => {
                tracing::debug!(target: "task", task, number, "the task has ended");
            }
            Ended::Status(status) => {
                let (code, signal) = (status.code(), status.signal());
                tracing::error!(target: "task", task, number, code, signal, "the task has failed");
            }
            Ended::Failed => {}
            Ended::Stopped => tracing::debug!(target: "task", task, number, "the task was stopped"),
        }
    }
}

/// A run, in the metrics. One that is dropped on its way has ended too.
struct Counted {
    registry: Arc<Registry>,
    task: String,
    end: TaskEnd,
}

impl Counted {
    fn new(registry: &Arc<Registry>, task: &str) -> Self {
        registry.task_started(task);
        Self { registry: Arc::clone(registry), task: task.to_owned(), end: TaskEnd::Ended }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.registry.task_ended(&self.task, self.end);
    }
}

fn of(status: std::io::Result<ExitStatus>) -> Ended {
    status.map_or(Ended::Failed, Ended::Status)
}
