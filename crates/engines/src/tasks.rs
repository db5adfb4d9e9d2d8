//! Scripts that run beside the pools (`task`): started, watched, started again, and ended with the server or when a
//! configuration has them no more.

mod output;
mod process;
mod runner;
mod schedule;

use crate::plan::confinement;
use regent_config::{Config, EngineUser, Task};
use regent_metrics::Registry;
use regent_wire::confine::Confinement;
use runner::Runner;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// One of the processes of a task, as it is to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskPlan {
    pub(crate) task: Task,
    /// Which of them, from 1.
    pub(crate) number: u16,
    /// The program of the engine, which becomes PHP's command line program.
    pub(crate) program: PathBuf,
    /// Overrides of php.ini.
    pub(crate) ini: Vec<(String, String)>,
    /// `None`: as the server.
    pub(crate) user: Option<EngineUser>,
    pub(crate) confinement: Confinement,
}

/// All tasks of a configuration. Dropped, their processes are killed.
pub struct Tasks {
    members: Vec<Member>,
    registry: Arc<Registry>,
}

struct Member {
    plan: TaskPlan,
    /// Becomes true once.
    stop: watch::Sender<bool>,
    runner: JoinHandle<()>,
}

/// What becomes of those that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchanged {
    Stay,
    StartAnew,
}

fn plans(config: &Config, program: &std::path::Path) -> Vec<TaskPlan> {
    let php = &config.global.php;
    let plan = |task: &Task, number| TaskPlan {
        task: task.clone(),
        number,
        program: php.program.clone().unwrap_or_else(|| program.to_owned()),
        ini: php.php_ini.clone(),
        user: php.user.clone(),
        confinement: confinement::of_task(&php.confine),
    };
    php.tasks.iter().flat_map(|task| (1..=task.num).map(move |number| plan(task, number))).collect()
}

impl Tasks {
    pub fn new(registry: &Arc<Registry>) -> Self {
        Self { members: Vec::new(), registry: Arc::clone(registry) }
    }

    /// Goes on with those of this configuration: what is not in it is told to end, and what takes its place waits for that.
    /// Returns at once. Must be called within the runtime of the server's main thread, whose end theirs follows.
    pub fn change_to(&mut self, config: &Config, program: &std::path::Path, unchanged: Unchanged) {
        let mut wanted = plans(config, program);
        let mut ending = Vec::new();
        for member in std::mem::take(&mut self.members) {
            let place = wanted.iter().position(|plan| *plan == member.plan);
            match place.filter(|_| unchanged == Unchanged::Stay) {
                Some(place) => {
                    wanted.remove(place);
                    self.members.push(member);
                }
                None => ending.push(member.end()),
            }
        }
        for plan in wanted {
            let (name, number) = (plan.task.name.as_str(), plan.number);
            let before = ending
                .iter()
                .position(|(ended, _)| (ended.task.name.as_str(), ended.number) == (name, number));
            let before = before.map(|place| ending.swap_remove(place).1);
            let (stop, stopped) = watch::channel(false);
            let runner =
                tokio::spawn(Runner::new(plan.clone(), stopped, Arc::clone(&self.registry)).run(before));
            self.members.push(Member { plan, stop, runner });
        }
    }

    /// Tells all of them to end, and waits until they have; what has not by the deadline is killed.
    pub async fn stop(&mut self, deadline: Instant) {
        let ending: Vec<_> = std::mem::take(&mut self.members).into_iter().map(Member::end).collect();
        for (_, mut runner) in ending {
            if tokio::time::timeout_at(deadline.into(), &mut runner).await.is_err() {
                // Its process is killed as it is dropped.
                runner.abort();
                let _ = runner.await;
            }
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.members.iter().for_each(|member| member.runner.abort());
    }
}

impl Member {
    fn end(self) -> (TaskPlan, JoinHandle<()>) {
        self.stop.send_replace(true);
        (self.plan, self.runner)
    }
}
