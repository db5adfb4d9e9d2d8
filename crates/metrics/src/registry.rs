//! The names, all recorders, and the events that no request causes.

use crate::administration::{AdminRequest, Administration, ReloadOutcome};
use crate::connections::{ConnectionFamily, ConnectionMeter};
use crate::history::History;
use crate::http::{Hosts, HttpFamily, HttpLabels, HttpMeter};
use crate::names::{Names, Pool, PoolId, RouteId, Serves, Standing};
use crate::reading::{PoolEvents, PoolReading, Reading, RouteReading};
use crate::recorder::Recorder;
use crate::report::Report;
use crate::tasks::{TaskEnd, TaskFigures};
use crate::threads::AllThreads;
use prometheus::proto::MetricFamily;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

/// Which way a pool was scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
}

/// One for the server, for its whole life: pools and routes of a new configuration are added to those of the old one.
pub struct Registry {
    began: Instant,
    started: SystemTime,
    names: Mutex<Names>,
    threads: Mutex<AllThreads>,
    events: Mutex<Events>,
    history: Mutex<History>,
    administration: Mutex<Administration>,
    tasks: Mutex<TaskFigures>,
    pub(crate) http: HttpFamily,
    pub(crate) connections: ConnectionFamily,
}

#[derive(Clone, Default)]
struct Events {
    generations: u64,
    engine_deaths: u64,
    pools: HashMap<PoolId, PoolEvents>,
}

impl Registry {
    pub fn new(now: Instant) -> Self {
        Self {
            began: now,
            started: SystemTime::now(),
            names: Mutex::default(),
            threads: Mutex::default(),
            events: Mutex::default(),
            history: Mutex::default(),
            administration: Mutex::default(),
            tasks: Mutex::default(),
            http: HttpFamily::default(),
            connections: ConnectionFamily::default(),
        }
    }

    /// A pool, which is new or was registered under this name before. FrankenPHP's metrics show the name of a worker's
    /// pool as the label `worker`.
    pub fn pool(&self, name: &str, serves: Serves) -> PoolId {
        hold(&self.names).pool(name, serves)
    }

    /// A route of a pool, by this name if it has one, or gets it by its standing. Not for every request: it locks.
    pub fn route(&self, pool: PoolId, name: &str, standing: Standing) -> RouteId {
        hold(&self.names).route(pool, name, standing)
    }

    /// A recorder for one more I/O thread.
    pub fn recorder(&self) -> Recorder {
        Recorder::new(hold(&self.threads).add())
    }

    /// For one more I/O thread.
    pub fn http_meter(&self) -> HttpMeter {
        self.http.meter()
    }

    /// For one more I/O thread.
    pub fn connection_meter(&self) -> ConnectionMeter {
        self.connections.meter()
    }

    /// Under what the requests of a listening address are counted, in Caddy's words: `server` is the name of the address, `handler`
    /// what answers there.
    pub fn http_labels(&self, server: &str, handler: &'static str, hosts: Hosts<'_>) -> HttpLabels {
        self.http.scopes.labels(server, handler, hosts)
    }

    /// A configuration was loaded, or refused.
    pub fn reloaded(&self, outcome: ReloadOutcome) {
        hold(&self.administration).reloaded(outcome, SystemTime::now());
    }

    /// The admin API answered a request.
    pub fn admin_answered(&self, request: AdminRequest<'_>) {
        hold(&self.administration).answered(request);
    }

    /// A process of a background script was started.
    pub fn task_started(&self, task: &str) {
        hold(&self.tasks).started(task);
    }

    /// It has ended.
    pub fn task_ended(&self, task: &str, end: TaskEnd) {
        hold(&self.tasks).ended(task, end);
    }

    pub(crate) fn tasks(&self) -> Vec<MetricFamily> {
        hold(&self.tasks).families()
    }

    pub(crate) fn administration(&self) -> Vec<MetricFamily> {
        hold(&self.administration).families()
    }

    /// Threads were added to a pool, or taken away, by the scaler or by hand: one event, however many.
    pub fn scaled(&self, pool: PoolId, direction: Direction) {
        self.pool_event(pool, |events| match direction {
            Direction::Up => events.scaled_up += 1,
            Direction::Down => events.scaled_down += 1,
        });
    }

    /// A worker script ended without having been asked to.
    pub fn worker_crashed(&self, pool: PoolId) {
        self.pool_event(pool, |events| events.crashes += 1);
    }

    /// A worker script was started anew on purpose: by the admin API, a change of files, or `max_requests`.
    pub fn worker_restarted(&self, pool: PoolId) {
        self.pool_event(pool, |events| events.restarts += 1);
    }

    /// A thread of the pool does not come back from its request.
    pub fn thread_written_off(&self, pool: PoolId) {
        self.pool_event(pool, |events| events.written_off += 1);
    }

    /// A request of the pool was ended that waited for something when its client had long left.
    pub fn departed_request_ended(&self, pool: PoolId) {
        self.pool_event(pool, |events| events.departed += 1);
    }

    /// From which on counters count.
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// An engine was started: the first, or one in the place of another.
    pub fn generation_started(&self) {
        hold(&self.events).generations += 1;
    }

    /// An engine ended without having been asked to.
    pub fn engine_died(&self) {
        hold(&self.events).engine_deaths += 1;
    }

    /// To be called once a second, from one thread, since what is recent moves with it. It reads all counters of all
    /// threads, which takes some microseconds for each route. A call within the same second does nothing.
    pub fn tick(&self, now: Instant) {
        let seconds = now.saturating_duration_since(self.began).as_secs();
        hold(&self.history).tick(seconds, &self.pools(), &self.threads());
    }

    /// All figures, as data for people.
    pub fn report(&self) -> Report {
        Report::from(&self.read())
    }

    pub(crate) fn read(&self) -> Reading {
        let (pools, threads) = (self.pools(), self.threads());
        // Who reports an event does not wait for a reader.
        let events = hold(&self.events).clone();
        let history = hold(&self.history);
        Reading {
            started: self.started,
            uptime: history.seconds(),
            generations: events.generations,
            engine_deaths: events.engine_deaths,
            pools: pools.into_iter().map(|pool| read_pool(pool, &threads, &history, &events)).collect(),
        }
    }

    fn pool_event(&self, pool: PoolId, count: impl FnOnce(&mut PoolEvents)) {
        count(hold(&self.events).pools.entry(pool).or_default());
    }

    fn pools(&self) -> Vec<Pool> {
        hold(&self.names).pools().to_vec()
    }

    fn threads(&self) -> AllThreads {
        hold(&self.threads).clone()
    }
}

fn read_pool(pool: Pool, threads: &AllThreads, history: &History, events: &Events) -> PoolReading {
    PoolReading {
        id: pool.id,
        name: pool.name,
        serves: pool.serves,
        events: events.pools.get(&pool.id).copied().unwrap_or_default(),
        totals: threads.pool(pool.id),
        recent: history.pool(pool.id),
        routes: pool.routes.into_iter().map(|(id, name)| read_route(id, name, threads, history)).collect(),
    }
}

fn read_route(id: RouteId, name: String, threads: &AllThreads, history: &History) -> RouteReading {
    RouteReading { name, totals: threads.route(id), recent: history.route(id) }
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
