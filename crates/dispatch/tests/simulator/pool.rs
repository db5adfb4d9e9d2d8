//! The pool: threads, a queue, users and the policy.

use super::load::{Load, Step, Then};
use super::machine::{MICROS, MILLIS, Machine, Nanos};
use super::outcome::{Change, Outcome};
use super::{Setup, Size};
use fastrand::Rng;
use regent_dispatch::scaling::{Decision, Memory, Observation, Scaler, Threads};
use std::collections::VecDeque;
use std::time::Duration;

/// From an answer to the user's next request.
const ROUND_TRIP: Nanos = 100 * MICROS;
const RAMP: Nanos = 5 * MILLIS;
/// How long the server waits between two looks while requests wait: at first, and at last if the looks change nothing.
const SHORTEST_LOOK: Nanos = MILLIS;
const LONGEST_LOOK: Nanos = 20 * MILLIS;
/// And otherwise, if no request has to wait meanwhile.
const REST: Nanos = 100 * MILLIS;
/// Requests that run for longer, and for so many times the time of one that waits, are slow beside that.
const SLOW_LEAST: Nanos = 500 * MILLIS;
const SLOW_TIMES: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Step(usize),
    Arrive(usize),
    Ramp,
    /// Calls that were replaced by an earlier one have an older number.
    Decide(u64),
    ByHand(u16),
}

struct Request {
    user: usize,
    arrived: Nanos,
    /// The last one first.
    steps: Vec<Step>,
}

impl Request {
    /// What it has to do yet, alone on the machine.
    fn work(&self) -> Nanos {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Compute(time) | Step::Sleep(time) => time,
            })
            .sum()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Cpu,
    Sleep,
}

enum Thread {
    Booting { ordered: Nanos, on: On },
    Idle,
    Busy { request: Request, since: Nanos, on: On },
    Gone,
}

pub struct Pool<'a> {
    setup: &'a Setup,
    load: &'a Load,
    machine: Machine<Event>,
    /// Each user draws from numbers of his own, so that he asks for the same whatever the pool is like.
    users: Vec<Rng>,
    away: Vec<usize>,
    scaler: Option<Scaler>,
    threads: Vec<Thread>,
    queue: VecDeque<Request>,
    started: u64,
    boot_time: Nanos,
    /// Threads that end when they have finished a request.
    leaving: u16,
    decisions: u64,
    /// Between two looks; none while the server rests.
    look_after: Option<Nanos>,
    outcome: Outcome,
}

impl<'a> Pool<'a> {
    pub fn new(setup: &'a Setup, load: &'a Load) -> Self {
        let (scaler, threads) = match setup.size {
            Size::Fixed(threads) => (None, threads),
            Size::Scaled(limits) => (Some(Scaler::new(limits)), limits.least),
        };
        Self {
            setup,
            load,
            machine: Machine::new(setup.cores.into()),
            users: Vec::new(),
            away: Vec::new(),
            scaler,
            threads: (0..threads).map(|_| Thread::Idle).collect(),
            queue: VecDeque::new(),
            started: 0,
            boot_time: 0,
            leaving: 0,
            decisions: 0,
            look_after: None,
            outcome: Outcome::default(),
        }
    }

    pub fn run(mut self) -> Outcome {
        self.machine.at(0, Event::Ramp);
        for &(time, least) in &self.setup.by_hand {
            self.machine.at(time, Event::ByHand(least));
        }
        self.decide_at(0);
        while let Some(event) = self.machine.next() {
            if self.machine.now() >= self.load.lasts {
                break;
            }
            self.on(event);
        }
        self.outcome.latencies.sort_unstable();
        self.outcome
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Step(thread) => self.step(thread),
            Event::Arrive(user) => self.ask(user),
            Event::Ramp => self.ramp(),
            Event::Decide(number) if number == self.decisions => self.decide(),
            Event::Decide(_) => {}
            Event::ByHand(least) => self.scaler.iter_mut().for_each(|scaler| scaler.set_least(least)),
        }
    }

    fn ramp(&mut self) {
        for _ in self.present()..self.load.users(self.machine.now()) {
            let user = self.away.pop().unwrap_or_else(|| self.new_user());
            self.ask(user);
        }
        if matches!(self.load.then, Then::Again(_)) {
            self.machine.at(self.machine.now() + RAMP, Event::Ramp);
        }
    }

    fn present(&self) -> usize {
        self.users.len() - self.away.len()
    }

    fn new_user(&mut self) -> usize {
        let user = self.users.len();
        self.users.push(Rng::with_seed(self.setup.seed << 32 | user as u64));
        user
    }

    fn ask(&mut self, user: usize) {
        let now = self.machine.now();
        let mut steps = self.load.request(&mut self.users[user], now);
        steps.reverse();
        let request = Request { user, arrived: now, steps };
        match self.threads.iter().position(|thread| matches!(thread, Thread::Idle)) {
            Some(thread) => self.start(thread, request),
            None => {
                self.queue.push_back(request);
                if self.look_after.is_none() {
                    self.decide_at(now);
                }
            }
        }
    }

    fn start(&mut self, thread: usize, request: Request) {
        self.started += 1;
        self.threads[thread] = Thread::Busy { request, since: self.machine.now(), on: On::Cpu };
        self.work(thread);
    }

    /// What the thread has done last is over.
    fn step(&mut self, thread: usize) {
        let now = self.machine.now();
        match &mut self.threads[thread] {
            Thread::Booting { ordered, on: On::Sleep } => {
                self.boot_time = now - *ordered;
                self.free(thread);
            }
            Thread::Booting { on, .. } => {
                *on = On::Sleep;
                self.machine.at(now + self.setup.boot.sleep, Event::Step(thread));
            }
            Thread::Busy { .. } => self.work(thread),
            Thread::Idle | Thread::Gone => unreachable!("it does nothing that could be over"),
        }
    }

    /// The next step of the thread's request.
    fn work(&mut self, thread: usize) {
        let now = self.machine.now();
        let Thread::Busy { request, since, on } = &mut self.threads[thread] else { return };
        let time_limit = *since + self.setup.time_limit;
        match request.steps.pop() {
            None => self.answer(thread),
            Some(_) if now >= time_limit => self.end(thread),
            Some(Step::Compute(work)) => {
                *on = On::Cpu;
                self.machine.compute(work, Event::Step(thread));
            }
            Some(Step::Sleep(time)) => {
                *on = On::Sleep;
                if now + time > time_limit {
                    // Something is left to do, so that the request is seen to be cut off.
                    request.steps.push(Step::Sleep(0));
                }
                self.machine.at(time_limit.min(now + time), Event::Step(thread));
            }
        }
    }

    fn answer(&mut self, thread: usize) {
        if let Thread::Busy { request, .. } = &self.threads[thread] {
            self.outcome.latencies.push(self.machine.now() - request.arrived);
        }
        self.end(thread);
    }

    fn end(&mut self, thread: usize) {
        if let Thread::Busy { request, .. } = &self.threads[thread] {
            self.go_on(request.user);
        }
        match self.leaving {
            0 => self.free(thread),
            _ => {
                self.leaving -= 1;
                self.threads[thread] = Thread::Gone;
            }
        }
    }

    /// The user has been answered.
    fn go_on(&mut self, user: usize) {
        let now = self.machine.now();
        match self.load.then {
            Then::Again(think) if self.present() <= self.load.users(now) => {
                let think = (think as f64 * -(1.0 - self.users[user].f64()).ln()) as Nanos;
                self.machine.at(now + ROUND_TRIP + think, Event::Arrive(user));
            }
            _ => self.away.push(user),
        }
    }

    /// The thread takes the oldest request.
    fn free(&mut self, thread: usize) {
        self.threads[thread] = Thread::Idle;
        if let Some(request) = self.queue.pop_front() {
            self.start(thread, request);
        }
    }

    fn decide_at(&mut self, time: Nanos) {
        self.decisions += 1;
        self.machine.at(time, Event::Decide(self.decisions));
    }

    fn decide(&mut self) {
        let seen = self.observe();
        self.outcome.note(&seen);
        let decision = self.scaler.as_mut().map_or(Decision::Keep, |scaler| scaler.decide(&seen));
        match decision {
            Decision::Keep => {}
            Decision::Add { count, .. } => (0..count).for_each(|_| self.boot()),
            Decision::Remove { count, .. } => (0..count).for_each(|_| self.take_away()),
        }
        if decision != Decision::Keep {
            self.outcome.changes.push(Change { at: self.machine.now(), decision });
        }
        self.look_after = self.pause_after(&seen, decision);
        self.decide_at(self.machine.now() + self.look_after.unwrap_or(REST));
    }

    fn pause_after(&self, seen: &Observation, decision: Decision) -> Option<Nanos> {
        let longer = self.look_after.unwrap_or(0) * 3 / 2;
        match decision {
            _ if seen.waiting == 0 && seen.threads.booting == 0 => None,
            Decision::Keep => Some(longer.clamp(SHORTEST_LOOK, LONGEST_LOOK)),
            _ => Some(SHORTEST_LOOK),
        }
    }

    fn boot(&mut self) {
        let booting = Thread::Booting { ordered: self.machine.now(), on: On::Cpu };
        let place = match self.threads.iter().position(|thread| matches!(thread, Thread::Gone)) {
            Some(place) => place,
            None => {
                self.threads.push(Thread::Gone);
                self.threads.len() - 1
            }
        };
        self.threads[place] = booting;
        self.machine.compute(self.setup.boot.compute, Event::Step(place));
    }

    fn take_away(&mut self) {
        match self.threads.iter_mut().find(|thread| matches!(thread, Thread::Idle)) {
            Some(idle) => *idle = Thread::Gone,
            None => self.leaving += 1,
        }
    }

    fn observe(&self) -> Observation {
        let now = self.machine.now();
        Observation {
            now: Duration::from_nanos(now),
            waiting: self.queue.len() as u32,
            held_back: 0,
            lanes_need: 0,
            oldest_wait: Duration::from_nanos(self.queue.front().map_or(0, |head| now - head.arrived)),
            started: self.started,
            threads: self.count_threads(),
            boot_time: Duration::from_nanos(self.boot_time),
            cores: self.setup.cores,
            runnable_elsewhere: 0,
            memory: self.memory(),
        }
    }

    /// From this age on a request takes far longer than those that wait, of which all is known here.
    fn slow_from(&self) -> Nanos {
        let shortest = self.queue.iter().map(Request::work).min().unwrap_or(Nanos::MAX);
        SLOW_LEAST.max(shortest.saturating_mul(SLOW_TIMES))
    }

    fn count_threads(&self) -> Threads {
        let mut seen = Threads::default();
        let slow_from = self.slow_from();
        for thread in &self.threads {
            match thread {
                Thread::Gone => {}
                Thread::Idle => seen.idle += 1,
                Thread::Booting { on, .. } => {
                    seen.booting += 1;
                    seen.booting_runnable += u16::from(*on == On::Cpu);
                }
                Thread::Busy { on, since, .. } => {
                    let age = self.machine.now() - since;
                    let stuck = age > self.setup.stuck_after && *on == On::Sleep;
                    seen.busy += 1;
                    seen.runnable += u16::from(*on == On::Cpu);
                    seen.stuck += u16::from(stuck);
                    seen.slow += u16::from(age > slow_from && !stuck);
                }
            }
        }
        seen.busy = seen.busy.saturating_sub(self.leaving);
        seen
    }

    fn memory(&self) -> Option<Memory> {
        self.setup.memory.map(|model| {
            let ready =
                self.threads.iter().filter(|thread| matches!(thread, Thread::Idle | Thread::Busy { .. }));
            let threads = ready.count() as u64;
            Memory {
                limit: model.limit,
                used: model.base + threads * model.per_thread,
                per_thread: if self.boot_time > 0 { model.per_thread } else { 0 },
            }
        })
    }
}
