//! Background scripts, and how they stand.

use crate::milliseconds;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// A process of a background script (`task`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The name of the script.
    pub task: String,
    /// Which of its processes, from 1.
    pub number: u16,
    /// Absolute.
    pub file: String,
    pub arguments: Vec<String>,
    pub starts: TaskStarts,
    pub state: TaskState,
    /// `None`: it does not run.
    pub pid: Option<u32>,
    /// When the run that is under way has begun.
    #[serde(with = "milliseconds::unix_optional", rename = "started_at_unix_ms")]
    pub started_at: Option<SystemTime>,
    /// `None`: it runs, or does not start by itself.
    #[serde(with = "milliseconds::unix_optional", rename = "next_start_unix_ms")]
    pub next_start: Option<SystemTime>,
    /// Since the configuration has had it as it is, those that could not be started among them.
    pub runs: u64,
    pub failures: u64,
    /// `None`: none has ended yet.
    pub last: Option<TaskRun>,
}

/// By which rule it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStarts {
    /// With the server, and again when it has ended, as `restart` says.
    Always,
    /// After an interval.
    Every,
    /// At times of the calendar.
    Schedule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    Running,
    /// For its next start.
    Waiting,
    /// It has ended, and does not start again by itself.
    Over,
    /// It was stopped, and does not start until somebody says so.
    Stopped,
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRun {
    #[serde(with = "milliseconds::unix", rename = "started_at_unix_ms")]
    pub started_at: SystemTime,
    #[serde(with = "milliseconds::unix", rename = "ended_at_unix_ms")]
    pub ended_at: SystemTime,
    pub end: TaskEnd,
    /// The status that it has ended with; `None`: by a signal, or otherwise.
    pub code: Option<i32>,
    /// The signal that has ended it.
    pub signal: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// With status 0.
    Succeeded,
    /// With another one, or by a signal.
    Failed,
    /// It was told to.
    Told,
    /// It could not be started.
    NotStarted,
}

/// The response to `GET /regent/tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskList {
    pub tasks: Vec<Task>,
}

/// What is wanted of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOrder {
    /// To run now.
    Run,
    /// To end and to start anew.
    Restart,
    /// To end, and not to start until somebody says so.
    Stop,
}

/// Who was told so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksTold {
    pub task: String,
    /// Processes of it.
    pub told: u16,
}
