//! Scripts that run beside the pools (`task`): started, watched, started again, and ended with the server or when a
//! configuration has them no more.

mod board;
mod output;
mod process;
mod runner;
mod schedule;

pub use board::{RunEnd, TaskBoard, TaskOrder, TaskPhase, TaskRefused, TaskRun, TaskView};

use crate::plan::confinement;
use board::{Listed, Order};
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
    board: TaskBoard,
    registry: Arc<Registry>,
}

struct Member {
    listed: Listed,
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
        ini: php.written_php_ini(),
        user: php.user.clone(),
        confinement: confinement::of_task(&php.confine),
    };
    php.tasks.iter().flat_map(|task| (1..=task.num).map(move |number| plan(task, number))).collect()
}

impl Tasks {
    pub fn new(registry: &Arc<Registry>) -> Self {
        Self { members: Vec::new(), board: TaskBoard::default(), registry: Arc::clone(registry) }
    }

    /// For whoever looks at them or tells them something.
    pub fn board(&self) -> &TaskBoard {
        &self.board
    }

    /// Goes on with those of this configuration: what is not in it is told to end, and what takes its place waits for that.
    /// Returns at once. Must be called within the runtime of the server's main thread, whose end theirs follows.
    pub fn change_to(&mut self, config: &Config, program: &std::path::Path, unchanged: Unchanged) {
        let order = plans(config, program);
        let mut wanted = order.clone();
        let mut ending = Vec::new();
        for member in std::mem::take(&mut self.members) {
            let place = wanted.iter().position(|plan| *plan == member.listed.plan);
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
            let (orders, told) = watch::channel(Order::Go);
            let listed = Listed { plan, orders, standing: Arc::default() };
            let (plan, standing) = (listed.plan.clone(), Arc::clone(&listed.standing));
            let runner = Runner::new(plan, told, standing, Arc::clone(&self.registry));
            self.members.push(Member { listed, runner: tokio::spawn(runner.run(before)) });
        }
        let place = |member: &Member| order.iter().position(|plan| *plan == member.listed.plan);
        self.members.sort_by_key(place);
        self.board.set(self.members.iter().map(|member| member.listed.clone()).collect());
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
        self.listed.orders.send_replace(Order::End);
        (self.listed.plan, self.runner)
    }
}
