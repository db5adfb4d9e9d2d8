//! A node: threads, and one queue before them.

use std::collections::VecDeque;

use super::{Moment, nanoseconds};
use crate::fleet::model::Fleet;

/// On its way.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub arrived: Moment,
    pub balancer: usize,
    pub tries: u8,
    /// A thread has had it.
    pub has_begun: bool,
}

#[derive(Debug)]
pub struct Node {
    state: State,
    /// What each thread runs.
    threads: Vec<Option<Request>>,
    idle: Vec<usize>,
    queue: VecDeque<Request>,
    /// How often it has died or stood still: what threads were about to finish then, they do not.
    life: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Starting,
    Serving,
    /// Answers what it has.
    Leaving,
    Frozen,
    /// Its port refuses connections.
    Killed,
    /// Nobody refuses them.
    Lost,
}

/// What becomes of a request that is sent there.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    Runs {
        thread: usize,
    },
    Waits,
    /// It would wait too long, and is answered that.
    TooLong,
    /// There is no connection.
    Refused,
    /// Nor anybody who says so.
    Silent,
}

impl Node {
    pub fn serving(threads: usize) -> Self {
        Self { state: State::Serving, ..Self::absent(threads) }
    }

    pub fn absent(threads: usize) -> Self {
        Self {
            state: State::Absent,
            threads: vec![None; threads],
            idle: (0..threads).collect(),
            queue: VecDeque::new(),
            life: 0,
        }
    }

    pub fn life(&self) -> u32 {
        self.life
    }

    pub fn is_serving(&self) -> bool {
        self.state == State::Serving
    }

    /// Its place may be another's.
    pub fn is_gone(&self) -> bool {
        let is_empty = self.queue.is_empty() && self.idle.len() == self.threads.len();
        matches!(self.state, State::Absent | State::Leaving) && is_empty
    }

    pub fn take(&mut self, request: Request, fleet: &Fleet) -> Taken {
        match self.state {
            State::Absent | State::Starting | State::Killed => Taken::Refused,
            State::Lost => Taken::Silent,
            State::Frozen => self.wait(request),
            State::Serving | State::Leaving => match self.idle.pop() {
                Some(thread) => {
                    self.threads[thread] = Some(request);
                    Taken::Runs { thread }
                }
                None if self.is_too_long(fleet) => Taken::TooLong,
                None => self.wait(request),
            },
        }
    }

    /// A thread begins: the life that it does so in, and when the request arrived unless a thread has had it before.
    pub fn begin(&mut self, thread: usize) -> (u32, Option<Moment>) {
        let request = self.threads[thread].as_mut().expect("invariant: the thread has a request");
        let arrived = (!std::mem::replace(&mut request.has_begun, true)).then_some(request.arrived);
        (self.life, arrived)
    }

    /// What the thread has finished.
    pub fn finish(&mut self, thread: usize) -> Request {
        self.threads[thread].take().expect("invariant: the thread has a request")
    }

    /// Gives a thread that has finished the next request, if one waits.
    pub fn next_for(&mut self, thread: usize) -> bool {
        self.threads[thread] = self.queue.pop_front();
        if self.threads[thread].is_none() {
            self.idle.push(thread);
        }
        self.threads[thread].is_some()
    }

    /// How many requests it had.
    pub fn die(&mut self) -> u64 {
        self.end(State::Killed)
    }

    /// As its machine does.
    pub fn vanish(&mut self) -> u64 {
        self.end(State::Lost)
    }

    pub fn freeze(&mut self) {
        self.state = State::Frozen;
        self.life += 1;
    }

    pub fn leave(&mut self) {
        self.state = State::Leaving;
    }

    pub fn start(&mut self) {
        self.state = State::Starting;
    }

    /// It serves from now on; the threads that begin at once, with what it has kept.
    pub fn come_back(&mut self) -> Vec<usize> {
        let was_frozen = self.state == State::Frozen;
        self.state = State::Serving;
        if !was_frozen {
            return Vec::new();
        }
        while let Some(thread) = self.idle.pop() {
            let Some(request) = self.queue.pop_front() else {
                self.idle.push(thread);
                break;
            };
            self.threads[thread] = Some(request);
        }
        (0..self.threads.len()).filter(|thread| self.threads[*thread].is_some()).collect()
    }

    fn wait(&mut self, request: Request) -> Taken {
        self.queue.push_back(request);
        Taken::Waits
    }

    /// By how many are before it, as Regent's admission control has it.
    fn is_too_long(&self, fleet: &Fleet) -> bool {
        fleet.longest_wait.is_some_and(|longest| {
            let before = (self.queue.len() + 1) as u64;
            before * nanoseconds(fleet.service.mean()) / self.threads.len() as u64 > nanoseconds(longest)
        })
    }

    fn end(&mut self, state: State) -> u64 {
        let running = self.threads.len() - self.idle.len();
        let had = running + self.queue.len();
        *self = Self { state, life: self.life + 1, ..Self::absent(self.threads.len()) };
        had as u64
    }
}
