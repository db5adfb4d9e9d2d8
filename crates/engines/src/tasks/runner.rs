//! The life of one process of a task: when it starts, and what follows its end.

use super::TaskPlan;
use super::board::{Order, RunEnd, Standing, TaskPhase, TaskRun};
use super::output::{Stream, follow};
use super::process::TaskProcess;
use super::schedule::until_next;
use regent_config::{Restart, TaskTime};
use regent_metrics::{Registry, TaskEnd};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
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
    orders: watch::Receiver<Order>,
    standing: Arc<Standing>,
    /// Before the next start.
    pause: Duration,
    registry: Arc<Registry>,
}

/// When the next run begins.
#[derive(Clone, Copy)]
enum Next {
    At(Instant),
    /// When somebody says so.
    Told(TaskPhase),
}

/// How a run ended.
enum Ended {
    Status(ExitStatus),
    /// It could not be started or waited for.
    Failed,
    /// The task was told to end.
    Told(Order),
}

impl Runner {
    pub(super) fn new(
        plan: TaskPlan,
        orders: watch::Receiver<Order>,
        standing: Arc<Standing>,
        registry: Arc<Registry>,
    ) -> Self {
        Self { plan, orders, standing, pause: FIRST_PAUSE, registry }
    }

    /// `before`: what is to have ended first.
    pub(super) async fn run(mut self, before: Option<JoinHandle<()>>) {
        if let Some(before) = before {
            // It ends by a deadline of its own.
            let _ = before.await;
        }
        let mut next = match self.plan.task.when {
            TaskTime::Schedule(_) => self.scheduled(),
            TaskTime::Always(_) | TaskTime::Every(_) => Next::At(Instant::now()),
        };
        while self.is_to_run(next).await {
            let started = Instant::now();
            let ended = self.run_once().await;
            let Some(after) = self.next_start(started, &ended) else { return };
            next = after;
        }
    }

    /// `None`: there is none.
    fn next_start(&mut self, started: Instant, ended: &Ended) -> Option<Next> {
        let failed = match ended {
            Ended::Told(Order::Stop) => return Some(Next::Told(TaskPhase::Stopped)),
            Ended::Told(Order::Restart) => {
                self.pause = FIRST_PAUSE;
                return Some(Next::At(Instant::now()));
            }
            Ended::Told(_) => return None,
            Ended::Status(status) => !status.success(),
            Ended::Failed => true,
        };
        Some(match &self.plan.task.when {
            TaskTime::Every(interval) => Next::At((started + *interval).max(Instant::now())),
            TaskTime::Schedule(_) => self.scheduled(),
            TaskTime::Always(Restart::Never) => Next::Told(TaskPhase::Over),
            TaskTime::Always(Restart::OnFailure) if !failed => Next::Told(TaskPhase::Over),
            TaskTime::Always(_) if started.elapsed() >= LONG_LIFE => {
                self.pause = FIRST_PAUSE;
                Next::At(Instant::now())
            }
            TaskTime::Always(_) => {
                let pause = self.pause;
                self.pause = (pause * 2).min(LONGEST_PAUSE);
                Next::At(Instant::now() + pause)
            }
        })
    }

    /// A clock that is set meanwhile is looked at before each start.
    fn scheduled(&self) -> Next {
        let TaskTime::Schedule(schedule) = &self.plan.task.when else { return Next::Told(TaskPhase::Over) };
        let wait = until_next(schedule, SystemTime::now());
        wait.map_or(Next::Told(TaskPhase::Over), |wait| Next::At(Instant::now() + wait))
    }

    /// Waits until it is time. Otherwise the task has come to its end.
    async fn is_to_run(&mut self, mut next: Next) -> bool {
        loop {
            self.standing.is(match next {
                Next::At(time) => TaskPhase::Waiting { until: SystemTime::now() + (time - Instant::now()) },
                Next::Told(phase) => phase,
            });
            let time = async {
                match next {
                    Next::At(time) => sleep_until(time).await,
                    Next::Told(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                order = order(&mut self.orders) => match order {
                    Order::Go => {}
                    Order::Run | Order::Restart => return true,
                    Order::Stop => next = Next::Told(TaskPhase::Stopped),
                    Order::End => return false,
                },
                () = time => return true,
            }
        }
    }

    async fn run_once(&mut self) -> Ended {
        let (task, number) = (self.plan.task.name.clone(), self.plan.number);
        let mut counted = Counted::new(&self.registry, &task);
        let started = SystemTime::now();
        self.standing.begins();
        let (mut process, stdout, stderr) = match TaskProcess::start(&self.plan) {
            Ok(process) => process,
            Err(error) => {
                tracing::error!(target: "task", task, number, %error, "the task could not be started");
                counted.end = TaskEnd::Failed;
                self.standing.ends(TaskRun { started, ended: SystemTime::now(), end: RunEnd::NotStarted });
                return Ended::Failed;
            }
        };
        let pid = process.pid();
        self.standing.is(TaskPhase::Running { pid, since: started });
        tracing::debug!(target: "task", task, number, pid, "the task has started");
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
        let end = ended.as_it_is_shown();
        if !matches!(end, RunEnd::Code(0) | RunEnd::Told) {
            counted.end = TaskEnd::Failed;
        }
        self.standing.ends(TaskRun { started, ended: SystemTime::now(), end });
        ended
    }

    async fn until_end(&mut self, process: &mut TaskProcess) -> Ended {
        let timeout = self.plan.task.timeout;
        let mut limit = pin!(async {
            match timeout {
                Some(timeout) => sleep(timeout).await,
                None => std::future::pending().await,
            }
        });
        let told = loop {
            tokio::select! {
                biased;
                status = process.wait() => return of(status),
                order = order(&mut self.orders) => match order {
                    // It runs.
                    Order::Go | Order::Run => {}
                    Order::Restart | Order::Stop | Order::End => break Some(order),
                },
                () = &mut limit => break None,
            }
        };
        if told.is_none() {
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
        told.map_or_else(|| of(status), Ended::Told)
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
            Ended::Told(_) => tracing::debug!(target: "task", task, number, "the task was stopped"),
        }
    }
}

/// The next one.
async fn order(orders: &mut watch::Receiver<Order>) -> Order {
    match orders.changed().await {
        Ok(()) => *orders.borrow_and_update(),
        // Whoever could tell is gone: so is the server.
        Err(_) => Order::End,
    }
}

impl Ended {
    fn as_it_is_shown(&self) -> RunEnd {
        match self {
            Self::Told(_) => RunEnd::Told,
            Self::Failed => RunEnd::NotStarted,
            Self::Status(status) => match (status.code(), status.signal()) {
                (Some(code), _) => RunEnd::Code(code),
                (None, signal) => RunEnd::Signal(signal.unwrap_or_default()),
            },
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
