//! The event loop: starts requests when they are due, and ends those that are not answered in time.
//!
//! One thread, one epoll instance. No step looks at all connections: what is due is at the front of queues. What a
//! request needs is in its connection's place, which the next one uses again.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

use super::connection::{Connection, Request};
use super::deadlines::{Deadlines, Ticket};
use super::exchange::Ports;
use super::outcome::Outcome;
use super::plan::{Connections, Pace, Plan};
use super::poller::Poller;
use super::raw_log::RawLog;
use super::request::Mix;
use super::schedule::Schedule;
use super::tally::{End, Tally};
use crate::interrupt::Interrupt;

/// Requests that are started before answers are looked at: a crowd of new users does not delay those that are there.
const STARTS_AT_ONCE: usize = 64;
const BUFFER: usize = 64 * 1024;

pub struct Engine<'a> {
    pub(super) plan: &'a Plan,
    interrupt: &'a Interrupt,
    start: Instant,
    pub(super) mix: Mix,
    schedule: Schedule,
    pub(super) poller: Poller,
    pub(super) connections: Vec<Connection>,
    /// Places without a request: the next user takes the last one, which has an open connection if any has; the next
    /// arrival the first one, so that all connections share the load.
    pub(super) free: VecDeque<usize>,
    /// Arrivals without a connection.
    waiting: VecDeque<Request>,
    /// How many of `waiting`, from the front, found no connection free when they were due.
    delayed: usize,
    timeouts: Deadlines,
    /// By the kind.
    departures: Vec<Option<Deadlines>>,
    pub(super) tally: Tally,
    pub(super) buffer: Vec<u8>,
    /// Places with a request, or with a connection that the server is about to close.
    pub(super) busy: u32,
    pub(super) under_way: u32,
    pub(super) open: u32,
    /// Connections so far; the next one goes to the target with this number.
    pub(super) opened: usize,
    pub(super) ports: Ports,
    /// Whether a socket serves one connection after the other.
    pub(super) reuses_sockets: bool,
}

/// Whether everything that is due was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Started,
    More,
}

impl<'a> Engine<'a> {
    pub fn new(plan: &'a Plan, raw_log: Option<&Path>, interrupt: &'a Interrupt) -> Result<Self> {
        let schedule = Schedule::new(plan)?;
        let mix = Mix::new(plan)?;
        let raw_log = raw_log.map(RawLog::create).transpose()?;
        Ok(Self {
            plan,
            interrupt,
            mix,
            poller: Poller::new().context("epoll is not available")?,
            connections: Vec::new(),
            free: VecDeque::new(),
            waiting: VecDeque::new(),
            delayed: 0,
            timeouts: Deadlines::new(plan.timeout),
            departures: plan.mix.iter().map(|kind| kind.leave_after.map(Deadlines::new)).collect(),
            tally: Tally::new(plan, schedule.end(), raw_log),
            schedule,
            buffer: vec![0; BUFFER],
            busy: 0,
            under_way: 0,
            open: 0,
            opened: 0,
            ports: Ports::default(),
            reuses_sockets: can_reuse_sockets(plan),
            start: Instant::now(),
        })
    }

    /// The most connections that the plan opens at once.
    pub fn most_connections(&self) -> u32 {
        self.schedule.most_connections()
    }

    pub fn run(mut self) -> Result<Outcome> {
        let cpu = cpu_time();
        self.start = Instant::now();
        loop {
            let now = self.now();
            self.tally.advance(now, self.busy, self.under_way);
            self.expire(now)?;
            let due = self.start_due(now, STARTS_AT_ONCE)?;
            if self.is_done(now) {
                return self.tally.finish(cpu_time().saturating_sub(cpu));
            }
            self.interrupt.check()?;
            let events = self.wait(due)?;
            self.serve(events)?;
        }
    }

    /// Since the start of the run.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn is_done(&self, now: Duration) -> bool {
        self.under_way == 0 && self.waiting.is_empty() && self.schedule.is_over(now)
    }

    fn wait(&mut self, due: Due) -> Result<usize> {
        let now = self.now();
        if due == Due::More {
            return self.poller.wait(Duration::ZERO);
        }
        if let Some(moment) = self.schedule.next_arrival().filter(|_| !self.schedule.is_over(now)) {
            self.poller.set_alarm(now, moment)?;
        }
        let next = self.next_moment(now);
        self.poller.wait(next.saturating_sub(now))
    }

    /// When there is something to do at the latest. A tick ends every tenth of a second, so this is never far.
    fn next_moment(&self, now: Duration) -> Duration {
        let departures = self.departures.iter().flatten().filter_map(Deadlines::next);
        [
            self.timeouts.next(),
            self.waiting.front().map(|request| self.deadline(request)),
            self.mix.next_window(now),
        ]
        .into_iter()
        .flatten()
        .chain(departures)
        .chain([self.schedule.next_change(now)])
        .fold(self.tally.tick_end(), Duration::min)
    }

    fn serve(&mut self, events: usize) -> Result<()> {
        let begin = self.now();
        for index in 0..events {
            if let Some((place, readiness)) = self.poller.event(index) {
                self.on_event(place, readiness)?;
            }
            let now = self.now();
            self.start_due(now, 1)?;
        }
        if events > 0 && self.schedule.next_arrival().is_none() {
            self.tally.add_lag(self.now() - begin);
        }
        Ok(())
    }

    fn start_due(&mut self, now: Duration, most: usize) -> Result<Due> {
        match self.schedule.users(now) {
            Some(users) => self.start_users(users, now, most),
            None => self.start_arrivals(now, most),
        }
    }

    fn start_users(&mut self, users: u32, now: Duration, most: usize) -> Result<Due> {
        for _ in 0..most {
            if self.busy >= users || self.schedule.is_over(now) {
                self.leave();
                return Ok(Due::Started);
            }
            let Some(kind) = self.mix.choose(now) else { return Ok(Due::Started) };
            let place = self.free.pop_back().unwrap_or_else(|| self.new_place());
            self.schedule.count();
            self.start_request(place, self.mix.request(kind, now), now)?;
        }
        Ok(Due::More)
    }

    /// The user whose request ended last is one too many.
    fn leave(&mut self) {
        if let Some(&place) = self.free.back() {
            self.close(place);
        }
    }

    fn start_arrivals(&mut self, now: Duration, most: usize) -> Result<Due> {
        self.enqueue_arrivals(now);
        for _ in 0..most {
            let Some(&request) = self.waiting.front() else { return Ok(Due::Started) };
            let Some(place) = self.free_place() else {
                self.delayed = self.waiting.len();
                return Ok(Due::Started);
            };
            self.waiting.pop_front();
            self.start_arrival(place, request)?;
        }
        Ok(Due::More)
    }

    /// While the windows let nothing be sent, nothing arrives.
    fn enqueue_arrivals(&mut self, now: Duration) {
        while let Some(moment) = self.due_arrival(now) {
            self.schedule.count();
            if let Some(kind) = self.mix.choose(moment) {
                self.waiting.push_back(self.mix.request(kind, moment));
            }
        }
    }

    fn due_arrival(&self, now: Duration) -> Option<Duration> {
        self.schedule.next_arrival().filter(|moment| *moment <= now && !self.schedule.is_over(now))
    }

    fn start_arrival(&mut self, place: usize, request: Request) -> Result<()> {
        let now = self.now();
        match self.delayed.checked_sub(1) {
            Some(others) => self.delayed = others,
            None => self.tally.add_lag(now.saturating_sub(request.start)),
        }
        self.start_request(place, request, now)
    }

    fn free_place(&mut self) -> Option<usize> {
        let has_room = self.connections.len() < self.schedule.most_connections() as usize;
        self.free.pop_front().or_else(|| has_room.then(|| self.new_place()))
    }

    fn new_place(&mut self) -> usize {
        self.connections.push(Connection::default());
        self.connections.len() - 1
    }

    /// Notes when the request that begins now at the place must be given up.
    pub(super) fn set_deadlines(&mut self, place: usize, now: Duration) {
        let connection = &self.connections[place];
        let Request { kind, start, .. } = connection.request();
        let ticket = connection.ticket(place);
        self.timeouts.push(start, ticket);
        if let Some(departures) = &mut self.departures[kind] {
            departures.push(now, ticket);
        }
    }

    fn expire(&mut self, now: Duration) -> Result<()> {
        while let Some(ticket) = self.pop_timeout(now) {
            self.give_up(ticket.place, End::Timeout)?;
        }
        for kind in 0..self.departures.len() {
            while let Some(ticket) = self.pop_departure(kind, now) {
                self.give_up(ticket.place, End::Left)?;
            }
        }
        self.expire_waiting(now)
    }

    fn pop_timeout(&mut self, now: Duration) -> Option<Ticket> {
        self.timeouts.pop_expired(now, |ticket| !self.connections[ticket.place].is_occupied(ticket))
    }

    fn pop_departure(&mut self, kind: usize, now: Duration) -> Option<Ticket> {
        let departures = self.departures[kind].as_mut()?;
        departures.pop_expired(now, |ticket| !self.connections[ticket.place].is_under_way(ticket))
    }

    /// Requests that wait for a connection are given up like those that have one.
    fn expire_waiting(&mut self, now: Duration) -> Result<()> {
        while let Some(&request) = self.waiting.front().filter(|request| self.deadline(request) <= now) {
            self.waiting.pop_front();
            self.delayed = self.delayed.saturating_sub(1);
            self.tally.add(request.kind, request.start, now, End::Timeout)?;
        }
        Ok(())
    }

    fn deadline(&self, request: &Request) -> Duration {
        request.start.saturating_add(self.plan.timeout)
    }
}

/// Whether connections look the same to the server if sockets serve several, and whether that saves anything.
fn can_reuse_sockets(plan: &Plan) -> bool {
    // Another user follows at once. A socket without a connection would wake the generator by its end.
    let is_closed = matches!(plan.pace, Pace::Closed { .. });
    let has_one_family = plan.targets.windows(2).all(|pair| pair[0].is_ipv4() == pair[1].is_ipv4());
    // What is left of a body when the server has answered would be lost with the connection.
    let has_bodies = plan.mix.iter().any(|kind| kind.body_bytes > 0);
    plan.connections == Connections::PerRequest
        && is_closed
        && has_one_family
        && !has_bodies
        && has_timestamps()
}

/// Whether TCP's timestamps are on. By them a server takes a connection from the port of one that it has ended less than a
/// minute ago; the sequence numbers of a socket that had one before do not say which is the later (RFC 6191).
fn has_timestamps() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps").is_ok_and(|on| on.trim() != "0")
}

/// CPU time of this thread: the generator has one.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
