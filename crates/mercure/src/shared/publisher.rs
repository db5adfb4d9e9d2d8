//! The thread that puts updates into the stream.

use super::Stream;
use super::entry::{FIELD, Place};
use crate::load::{Budget, Load};
use crate::update::Update;
use redis::streams::StreamRangeReply;
use redis::{RedisResult, cmd, pipe};
use regent_redis::{Connection, is_broken};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Updates that go to Redis together at most.
const MOST_TOGETHER: usize = 64;
/// After a failure to connect nobody waits for another one for so long.
const PAUSE: Duration = Duration::from_secs(1);
/// A connection that was not used for so long is asked whether it still is one: what is published is not sent twice.
const IDLE: Duration = Duration::from_secs(1);

/// The way to the thread, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Publisher {
    tasks: mpsc::Sender<Task>,
    budget: Budget,
}

enum Task {
    Publish(Waiting),
    /// Told the place of the stream's last entry, and dropped if that cannot be known.
    Latest(oneshot::Sender<Place>),
    /// Told when all before it is done.
    Flush(oneshot::Sender<()>),
}

/// An update on its way.
struct Waiting {
    update: Arc<Update>,
    _load: Load,
    /// Told when Redis has it, and dropped if that is not known. `None`: nobody wants to know.
    done: Option<oneshot::Sender<()>>,
}

struct Writer {
    stream: Arc<Stream>,
    connection: Option<Connection>,
    /// When the connection was last known to be one.
    used: Instant,
    /// When there was last no connection to be had.
    failed: Option<Instant>,
    /// The log has been told that updates are lost.
    has_complained: bool,
}

pub(super) fn start(stream: Arc<Stream>, budget: Budget) -> std::io::Result<Publisher> {
    let (tasks, waiting) = mpsc::channel();
    let mut writer =
        Writer { stream, connection: None, used: Instant::now(), failed: None, has_complained: false };
    let run = move || {
        while let Ok(first) = waiting.recv() {
            let together = std::iter::once(first).chain(waiting.try_iter().take(MOST_TOGETHER - 1));
            writer.carry_out(together.collect());
        }
    };
    std::thread::Builder::new().name("mercure-publish".into()).spawn(run)?;
    Ok(Publisher { tasks, budget })
}

impl Publisher {
    /// `done` is dropped if the update is not known to be in the stream.
    pub fn publish(&self, update: Arc<Update>, load: Load, done: oneshot::Sender<()>) {
        self.send(Task::Publish(Waiting { update, _load: load, done: Some(done) }));
    }

    /// Publishes what nobody waits for; not if too much waits already.
    pub fn tell(&self, update: Arc<Update>) {
        if let Some(load) = self.budget.take(update.size()) {
            self.send(Task::Publish(Waiting { update, _load: load, done: None }));
        }
    }

    /// The place of the stream's last entry; `told` is dropped if Redis does not say it.
    pub fn ask_for_latest(&self, told: oneshot::Sender<Place>) {
        self.send(Task::Latest(told));
    }

    pub fn flush(&self, done: oneshot::Sender<()>) {
        self.send(Task::Flush(done));
    }

    fn send(&self, task: Task) {
        // The thread runs as long as there is a sender.
        let _ = self.tasks.send(task);
    }
}

impl Writer {
    /// Updates first: a hub that is asked for the latest place by one that came later may have to wait for less then.
    fn carry_out(&mut self, tasks: Vec<Task>) {
        let (mut updates, mut asking, mut flushes) = (Vec::new(), Vec::new(), Vec::new());
        for task in tasks {
            match task {
                Task::Publish(waiting) => updates.push(waiting),
                Task::Latest(told) => asking.push(told),
                Task::Flush(done) => flushes.push(done),
            }
        }
        if !updates.is_empty() {
            self.publish(updates);
        }
        if !asking.is_empty()
            && let Ok(latest) = self.run(latest)
        {
            // Who has asked may be gone.
            asking.into_iter().for_each(|told| _ = told.send(latest));
        }
        flushes.into_iter().for_each(|done| _ = done.send(()));
    }

    fn publish(&mut self, updates: Vec<Waiting>) {
        let sent = self.run(|stream, connection| add(stream, connection, &updates));
        let failure = match sent {
            Err(error) => Some(error),
            Ok(answers) => {
                let mut failure = None;
                for (waiting, answer) in updates.into_iter().zip(answers) {
                    match (answer, waiting.done) {
                        (Ok(_), Some(done)) => _ = done.send(()),
                        (Ok(_), None) => {}
                        (Err(error), _) => failure = Some(error),
                    }
                }
                // The next is for whoever is the primary then.
                if failure.as_ref().is_some_and(is_broken) {
                    self.connection = None;
                }
                failure
            }
        };
        self.report(failure);
    }

    fn report(&mut self, failure: Option<redis::RedisError>) {
        match failure {
            Some(error) if !self.has_complained => {
                let redis = self.stream.client.url();
                tracing::error!(redis, %error, "updates of a Mercure hub cannot be published: who publishes over HTTP gets 503");
                self.has_complained = true;
            }
            Some(_) => {}
            None => self.has_complained = false,
        }
    }

    /// Nothing is tried twice: Redis may have heard it.
    fn run<T>(&mut self, what: impl FnOnce(&Stream, &mut Connection) -> RedisResult<T>) -> RedisResult<T> {
        let mut connection = self.connected()?;
        let result = what(&self.stream, &mut connection);
        if !result.as_ref().is_err_and(is_broken) {
            self.connection = Some(connection);
            self.used = Instant::now();
        }
        result
    }

    fn connected(&mut self) -> RedisResult<Connection> {
        if let Some(mut kept) = self.connection.take()
            && (self.used.elapsed() < IDLE || cmd("PING").exec(&mut kept).is_ok())
        {
            return Ok(kept);
        }
        if self.failed.is_some_and(|failed| failed.elapsed() < PAUSE) {
            return Err((redis::ErrorKind::Io, "Redis could not be reached a moment ago").into());
        }
        let connected = self.stream.connect();
        self.failed = connected.is_err().then(Instant::now);
        connected
    }
}

/// One answer for each: Redis may be full for a large one, and not for the next.
fn add(
    stream: &Stream,
    connection: &mut Connection,
    updates: &[Waiting],
) -> RedisResult<Vec<RedisResult<String>>> {
    let mut all = pipe();
    for Waiting { update, .. } in updates {
        let json = serde_json::to_vec(&**update).map_err(std::io::Error::other)?;
        let command = all.cmd("XADD").arg(&stream.key);
        command.arg("MAXLEN").arg("~").arg(stream.size).arg("*").arg(FIELD).arg(json);
    }
    all.ignore_errors().query(connection)
}

/// An empty stream has none, and is before all.
fn latest(stream: &Stream, connection: &mut Connection) -> RedisResult<Place> {
    let mut command = cmd("XREVRANGE");
    let reply: StreamRangeReply =
        command.arg(&stream.key).arg("+").arg("-").arg("COUNT").arg(1).query(connection)?;
    Ok(reply.ids.first().and_then(|id| id.id.parse().ok()).unwrap_or_default())
}
