//! Scripts that run beside the pools.

use crate::families::{counter, gauge, labels};
use prometheus::proto::MetricFamily;
use std::collections::BTreeMap;

/// How a run of a task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    /// As it should, or because it was told to.
    Ended,
    /// With another status than 0, by a signal, or it could not be started.
    Failed,
}

/// By name. They change seldom, so that a lock is good enough.
#[derive(Default)]
pub(crate) struct TaskFigures(BTreeMap<String, Figures>);

#[derive(Default)]
struct Figures {
    running: u64,
    starts: u64,
    failures: u64,
}

impl TaskFigures {
    pub(crate) fn started(&mut self, task: &str) {
        let figures = self.0.entry(task.to_owned()).or_default();
        figures.running += 1;
        figures.starts += 1;
    }

    pub(crate) fn ended(&mut self, task: &str, end: TaskEnd) {
        let Some(figures) = self.0.get_mut(task) else { return };
        figures.running = figures.running.saturating_sub(1);
        figures.failures += u64::from(end == TaskEnd::Failed);
    }

    pub(crate) fn families(&self) -> Vec<MetricFamily> {
        let series = |value: fn(&Figures) -> u64| {
            self.0.iter().map(move |(task, figures)| (labels(&[("task", task)]), value(figures) as f64))
        };
        vec![
            gauge("regent_tasks_running", "Processes of background scripts.", series(|task| task.running)),
            counter("regent_task_starts_total", "Starts of background scripts.", series(|task| task.starts)),
            counter(
                "regent_task_failures_total",
                "Runs of background scripts that failed.",
                series(|task| task.failures),
            ),
        ]
    }
}
