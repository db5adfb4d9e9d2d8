//! Background scripts, in the words of the admin API.

use regent_admin::{Refusal, Task, TaskEnd, TaskRun, TaskStarts, TaskState};
use regent_config::TaskTime;
use regent_engines::{RunEnd, TaskOrder, TaskPhase, TaskRefused, TaskView};

pub fn listed(view: TaskView) -> Task {
    let (mut pid, mut started_at, mut next_start) = (None, None, None);
    let state = match view.phase {
        TaskPhase::Running { pid: id, since } => {
            (pid, started_at) = (Some(id), Some(since));
            TaskState::Running
        }
        TaskPhase::Waiting { until } => {
            next_start = Some(until);
            TaskState::Waiting
        }
        TaskPhase::Over => TaskState::Over,
        TaskPhase::Stopped => TaskState::Stopped,
    };
    Task {
        task: view.task.name,
        number: view.number,
        file: view.task.file.display().to_string(),
        arguments: view.task.arguments,
        starts: match view.task.when {
            TaskTime::Always(_) => TaskStarts::Always,
            TaskTime::Every(_) => TaskStarts::Every,
            TaskTime::Schedule(_) => TaskStarts::Schedule,
        },
        state,
        pid,
        started_at,
        next_start,
        runs: view.runs,
        failures: view.failures,
        last: view.last.map(run),
    }
}

fn run(run: regent_engines::TaskRun) -> TaskRun {
    let (end, code, signal) = match run.end {
        RunEnd::Code(0) => (TaskEnd::Succeeded, Some(0), None),
        RunEnd::Code(code) => (TaskEnd::Failed, Some(code), None),
        RunEnd::Signal(signal) => (TaskEnd::Failed, None, Some(signal)),
        RunEnd::Told => (TaskEnd::Told, None, None),
        RunEnd::NotStarted => (TaskEnd::NotStarted, None, None),
    };
    TaskRun { started_at: run.started, ended_at: run.ended, end, code, signal }
}

pub fn order(order: regent_admin::TaskOrder) -> TaskOrder {
    match order {
        regent_admin::TaskOrder::Run => TaskOrder::Run,
        regent_admin::TaskOrder::Restart => TaskOrder::Restart,
        regent_admin::TaskOrder::Stop => TaskOrder::Stop,
    }
}

pub fn refusal(refused: TaskRefused) -> Refusal {
    match refused {
        TaskRefused::Unknown { .. } => Refusal::UnknownTask(refused.to_string()),
        TaskRefused::Running(_) => Refusal::TaskRuns(refused.to_string()),
    }
}
