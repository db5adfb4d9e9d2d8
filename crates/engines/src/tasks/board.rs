//! How tasks stand, and what they are told: for whoever asks, whatever else the server does meanwhile.

use super::TaskPlan;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::watch;

/// All tasks of the configuration, in its order.
#[derive(Clone, Default)]
pub struct TaskBoard(Arc<Mutex<Vec<Listed>>>);

/// A process of a task.
#[derive(Clone)]
pub(super) struct Listed {
    pub plan: TaskPlan,
    pub orders: watch::Sender<Order>,
    pub standing: Arc<Standing>,
}

/// What a process of a task is told. The last word counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// To do as its rules say.
    Go,
    Run,
    Restart,
    /// To end, and to wait for another order.
    Stop,
    /// To end for good.
    End,
}

/// What somebody wants of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOrder {
    /// To run now, instead of later.
    Run,
    /// To end and to start anew, or to start.
    Restart,
    /// To end, and not to start until it is told to.
    Stop,
}

/// Why a task was not told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefused {
    #[error("there is no task `{name}`; {known}")]
    Unknown { name: String, known: String },
    #[error("the task `{0}` is running; wait for its end, or restart it")]
    Running(String),
}

/// A process of a task, as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskView {
    pub task: regent_config::Task,
    /// Which of its processes, from 1.
    pub number: u16,
    pub phase: TaskPhase,
    /// That have begun.
    pub runs: u64,
    pub failures: u64,
    pub last: Option<TaskRun>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskPhase {
    Running {
        pid: u32,
        since: SystemTime,
    },
    /// For its next start.
    Waiting {
        until: SystemTime,
    },
    /// It has ended, and by its rules it does not start again.
    Over,
    /// Somebody has stopped it.
    Stopped,
}

/// A run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskRun {
    pub started: SystemTime,
    pub ended: SystemTime,
    pub end: RunEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    Code(i32),
    Signal(i32),
    /// It was told to end.
    Told,
    NotStarted,
}

impl TaskBoard {
    pub fn tasks(&self) -> Vec<TaskView> {
        self.lock().iter().map(Listed::view).collect()
    }

    /// Tells all processes of a task, but for those that do what is wanted anyway; how many were told.
    ///
    /// # Errors
    /// Then nobody was told anything.
    pub fn order(&self, name: &str, order: TaskOrder) -> Result<u16, TaskRefused> {
        let all = self.lock();
        let meant: Vec<&Listed> = all.iter().filter(|listed| listed.plan.task.name == name).collect();
        if meant.is_empty() {
            return Err(TaskRefused::Unknown { name: name.to_owned(), known: known(&all) });
        }
        let told: Vec<_> = meant.into_iter().filter(|listed| listed.has_to_be_told(order)).collect();
        if told.is_empty() && order == TaskOrder::Run {
            return Err(TaskRefused::Running(name.to_owned()));
        }
        for listed in &told {
            listed.orders.send_replace(order.into());
        }
        Ok(u16::try_from(told.len()).unwrap_or(u16::MAX))
    }

    pub(super) fn set(&self, listed: Vec<Listed>) {
        *self.lock() = listed;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listed {
    fn view(&self) -> TaskView {
        let State { phase, runs, failures, last, .. } = self.standing.lock().clone();
        TaskView { task: self.plan.task.clone(), number: self.plan.number, phase, runs, failures, last }
    }

    fn has_to_be_told(&self, order: TaskOrder) -> bool {
        let phase = self.standing.lock().phase;
        match order {
            TaskOrder::Run => !matches!(phase, TaskPhase::Running { .. }),
            TaskOrder::Restart => true,
            TaskOrder::Stop => phase != TaskPhase::Stopped,
        }
    }
}

impl From<TaskOrder> for Order {
    fn from(order: TaskOrder) -> Self {
        match order {
            TaskOrder::Run => Self::Run,
            TaskOrder::Restart => Self::Restart,
            TaskOrder::Stop => Self::Stop,
        }
    }
}

fn known(all: &[Listed]) -> String {
    let mut names: Vec<String> = all.iter().map(|listed| format!("`{}`", listed.plan.task.name)).collect();
    names.dedup();
    if names.is_empty() { "none is configured".to_owned() } else { format!("there are {}", names.join(", ")) }
}

/// What a process of a task tells of itself.
pub(super) struct Standing(Mutex<State>);

#[derive(Clone)]
struct State {
    phase: TaskPhase,
    runs: u64,
    failures: u64,
    last: Option<TaskRun>,
}

impl Default for Standing {
    fn default() -> Self {
        let phase = TaskPhase::Waiting { until: SystemTime::now() };
        Self(Mutex::new(State { phase, runs: 0, failures: 0, last: None }))
    }
}

impl Standing {
    pub fn is(&self, phase: TaskPhase) {
        self.lock().phase = phase;
    }

    /// A run has begun, which can still fail to.
    pub fn begins(&self) {
        self.lock().runs += 1;
    }

    pub fn ends(&self, run: TaskRun) {
        let mut state = self.lock();
        state.failures += u64::from(!matches!(run.end, RunEnd::Code(0) | RunEnd::Told));
        state.last = Some(run);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
