//! Scripts that run beside the pools.

use super::as_text;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// A script that PHP's command line program runs, for as long as the server does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    /// What the log calls it; of no other task.
    pub name: String,
    /// Absolute.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    pub arguments: Vec<String>,
    /// How many run at the same time; more than one only with [`TaskTime::Always`].
    pub num: u16,
    pub when: TaskTime,
    pub env: Vec<(String, String)>,
    /// Longest time of one run. `None`: as long as it takes.
    pub timeout: Option<Duration>,
    /// How long it may take to end when it is told to, before it is killed.
    pub stop_timeout: Duration,
}

/// When a task runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum TaskTime {
    /// All the time: it is started again by this rule.
    Always(Restart),
    /// So long after each start, or at once if it took longer.
    Every(Duration),
    Schedule(Schedule),
}

/// Whether a task that has ended is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Restart {
    Always,
    /// If it has ended with another status than 0, or by a signal.
    OnFailure,
    Never,
}

/// Minutes of the calendar, in UTC, as crontab(5) has them: bit N of a field is its value N.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Schedule {
    pub minutes: u64,
    pub hours: u32,
    /// From 1.
    pub days: u32,
    /// From 1.
    pub months: u16,
    /// Sunday is 0.
    pub weekdays: u8,
    pub days_by: DaysBy,
}

/// Which of the two fields for days counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DaysBy {
    /// Both must fit: one of them at least says nothing.
    Both,
    /// Each says something: one must fit.
    Either,
}
