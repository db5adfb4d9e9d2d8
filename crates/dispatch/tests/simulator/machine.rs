//! A machine of a few cores that runnable threads share evenly, and a clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nanoseconds, of time or of work.
pub type Nanos = u64;

pub const MICROS: Nanos = 1_000;
pub const MILLIS: Nanos = 1_000_000;
pub const SECONDS: Nanos = 1_000_000_000;

/// What one switch to another thread costs, with the caches that it finds cold.
const SWITCH: f64 = 50e3;
/// A scheduler gives each of the runnable threads a turn in this time…
const PERIOD: f64 = 6e6;
/// …but none a shorter one than this.
const SHORTEST_TURN: f64 = 0.75e6;

/// Events of type `E` come at the times that they were set for, and when computations that carry them are done.
pub struct Machine<E> {
    cores: f64,
    now: Nanos,
    /// What each thread that was runnable all the time has computed.
    computed: Nanos,
    computing: BinaryHeap<Reverse<(Nanos, E)>>,
    timers: BinaryHeap<Reverse<(Nanos, E)>>,
}

impl<E: Ord> Machine<E> {
    pub fn new(cores: f64) -> Self {
        Self { cores, now: 0, computed: 0, computing: BinaryHeap::new(), timers: BinaryHeap::new() }
    }

    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The event comes when a thread has computed so much.
    pub fn compute(&mut self, work: Nanos, then: E) {
        self.computing.push(Reverse((self.computed + work, then)));
    }

    pub fn at(&mut self, time: Nanos, event: E) {
        self.timers.push(Reverse((time.max(self.now), event)));
    }

    /// Goes on to the next event.
    pub fn next(&mut self) -> Option<E> {
        let timer = self.timers.peek().map(|Reverse((time, _))| *time);
        let done = self.computing.peek().map(|Reverse((work, _))| self.time_of(*work));
        match (timer, done) {
            (None, None) => None,
            (Some(time), Some(done)) if done <= time => self.finish(done),
            (None, Some(done)) => self.finish(done),
            (Some(time), _) => {
                self.advance(time);
                self.timers.pop().map(|Reverse((_, event))| event)
            }
        }
    }

    fn finish(&mut self, time: Nanos) -> Option<E> {
        let Reverse((work, event)) = self.computing.pop()?;
        self.now = time;
        self.computed = work;
        Some(event)
    }

    fn advance(&mut self, time: Nanos) {
        self.computed += ((time - self.now) as f64 * self.speed()) as Nanos;
        self.now = time;
    }

    fn time_of(&self, work: Nanos) -> Nanos {
        self.now + (work.saturating_sub(self.computed) as f64 / self.speed()).ceil() as Nanos
    }

    /// Of each runnable thread: the share of a core that it has, less what switches cost.
    fn speed(&self) -> f64 {
        let runnable = self.computing.len().max(1) as f64;
        if runnable <= self.cores {
            return 1.0;
        }
        let share = self.cores / runnable;
        let turn = (PERIOD * share).max(SHORTEST_TURN);
        share / (1.0 + SWITCH / turn)
    }
}
