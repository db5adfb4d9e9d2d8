//! `regent tasks`.

use super::client::{Client, Patience};
use super::table::{Align, Span, Table, Tone, plain_text};
use super::threads::print;
use super::units;
use crate::arguments::{Tasks, TasksChange};
use anyhow::Result;
use http::Method;
use regent_admin::{Task, TaskEnd, TaskList, TaskRun, TaskStarts, TaskState, TasksTold};
use serde_json::Value;
use std::time::SystemTime;

const PATH: &str = "/regent/tasks";

/// Lists the background scripts of a running server, or tells one something.
pub fn tasks(options: &Tasks) -> Result<()> {
    let client = Client::new(options.admin.address.clone())?;
    let answer: Value = match &options.change {
        None => client.get(PATH)?,
        Some(change) => {
            let (order, task) = parts(change);
            let mut query = form_urlencoded::Serializer::new(String::new());
            let query = query.append_pair("task", task).finish();
            client.call(Method::POST, &format!("{PATH}/{order}?{query}"), Patience::Short)?
        }
    };
    let text = match &options.change {
        _ if options.json => serde_json::to_string_pretty(&answer)?,
        None => list(&serde_json::from_value(answer)?, SystemTime::now()),
        Some(change) => told(change, &serde_json::from_value(answer)?),
    };
    print(&text)
}

fn parts(change: &TasksChange) -> (&'static str, &str) {
    match change {
        TasksChange::Run { task } => ("run", task),
        TasksChange::Restart { task } => ("restart", task),
        TasksChange::Stop { task } => ("stop", task),
    }
}

fn told(change: &TasksChange, TasksTold { task, told }: &TasksTold) -> String {
    let task = units::printable(task);
    let what = match change {
        TasksChange::Run { .. } => "starts",
        TasksChange::Restart { .. } => "starts anew",
        TasksChange::Stop { .. } if *told == 0 => return format!("{task} was stopped already"),
        TasksChange::Stop { .. } => "ends",
    };
    match told {
        1 => format!("{task} {what}"),
        many => format!("{task} {what}: {many} processes"),
    }
}

fn list(TaskList { tasks }: &TaskList, now: SystemTime) -> String {
    if tasks.is_empty() {
        return "the configuration has no `task`".to_owned();
    }
    let columns = [
        ("TASK", Align::Left),
        ("#", Align::Right),
        ("STATE", Align::Left),
        ("PID", Align::Right),
        ("RUNS", Align::Right),
        ("FAILED", Align::Right),
        ("LAST RUN", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for task in tasks {
        table.row(vec![
            Span::plain(&task.task),
            Span::plain(task.number.to_string()),
            state(task, now),
            Span::plain(task.pid.map_or(String::new(), |pid| pid.to_string())),
            Span::plain(task.runs.to_string()),
            Span::plain(task.failures.to_string()),
            Span::plain(task.last.as_ref().map_or(String::new(), |run| last(run, now))),
        ]);
    }
    let lines: Vec<String> = table.lines().iter().map(plain_text).collect();
    lines.join("\n")
}

fn state(task: &Task, now: SystemTime) -> Span {
    let ago = |time: SystemTime| units::duration(now.duration_since(time).unwrap_or_default());
    let left = |time: SystemTime| units::duration(time.duration_since(now).unwrap_or_default());
    match (task.state, task.started_at, task.next_start) {
        (TaskState::Running, Some(since), _) => Span::new(format!("runs for {}", ago(since)), Tone::Active),
        (TaskState::Running, None, _) => Span::new("runs", Tone::Active),
        (TaskState::Waiting, _, Some(next)) if task.starts == TaskStarts::Always => {
            Span::new(format!("starts again in {}", left(next)), Tone::Warning)
        }
        (TaskState::Waiting, _, Some(next)) => Span::new(format!("starts in {}", left(next)), Tone::Quiet),
        (TaskState::Waiting, _, None) => Span::new("waits", Tone::Quiet),
        (TaskState::Over, ..) => Span::new("has ended", Tone::Quiet),
        (TaskState::Stopped, ..) => Span::new("stopped", Tone::Warning),
    }
}

fn last(run: &TaskRun, now: SystemTime) -> String {
    let how = match (run.end, run.code, run.signal) {
        (TaskEnd::Succeeded, ..) => "ended well".to_owned(),
        (TaskEnd::Told, ..) => "was told to end".to_owned(),
        (TaskEnd::NotStarted, ..) => "could not be started".to_owned(),
        (TaskEnd::Failed, Some(code), _) => format!("failed with status {code}"),
        (TaskEnd::Failed, None, signal) => format!("failed by signal {}", signal.unwrap_or_default()),
    };
    let lasted = run.ended_at.duration_since(run.started_at).unwrap_or_default();
    let ago = now.duration_since(run.ended_at).unwrap_or_default();
    format!("{how} {} ago, after {}", units::duration(ago), units::duration(lasted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_list_says_how_each_stands() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
        let failed = TaskRun {
            started_at: now - Duration::from_secs(90),
            ended_at: now - Duration::from_secs(60),
            end: TaskEnd::Failed,
            code: Some(3),
            signal: None,
        };
        let nightly = Task {
            task: "nightly".into(),
            number: 1,
            file: "/a.php".into(),
            arguments: Vec::new(),
            starts: TaskStarts::Schedule,
            state: TaskState::Waiting,
            pid: None,
            started_at: None,
            next_start: Some(now + Duration::from_secs(7200)),
            runs: 2,
            failures: 1,
            last: Some(failed),
        };
        let queue = Task {
            task: "queue".into(),
            starts: TaskStarts::Always,
            state: TaskState::Running,
            pid: Some(42),
            started_at: Some(now - Duration::from_secs(5)),
            next_start: None,
            last: None,
            ..nightly.clone()
        };
        let text = list(&TaskList { tasks: vec![nightly, queue] }, now);
        let expected = "\
TASK     #  STATE              PID  RUNS  FAILED  LAST RUN
nightly  1  starts in 2 h 0 min         2       1  failed with status 3 1 min 0 s ago, after 30 s
queue    1  runs for 5.0 s      42     2       1";
        assert_eq!(
            text.split_whitespace().collect::<Vec<_>>(),
            expected.split_whitespace().collect::<Vec<_>>()
        );
        assert_eq!(list(&TaskList { tasks: Vec::new() }, now), "the configuration has no `task`");
    }
}
