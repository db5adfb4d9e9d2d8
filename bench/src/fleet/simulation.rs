//! A discrete-event simulation of a fleet: from one moment at which something happens to the next.
//!
//! Simulated are queues: how long requests wait for a thread, given who is sent where, what fails, and how many nodes there
//! are. What a request takes, and what a way takes, are given. Networks, caches and the cores of a node are not simulated.

mod autoscaler;
mod balancer;
mod chance;
mod node;
mod outcome;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod theory;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

pub use self::outcome::Outcome;

use self::autoscaler::Autoscaler;
use self::balancer::Balancers;
use self::chance::Chance;
use self::node::{Node, Request, Taken};
use super::model::{Autoscaling, Fault, Fleet, Incident, Load};

/// Nanoseconds since the beginning.
type Moment = u64;

/// So many nodes are tried, as with `retries 3` of HAProxy.
const TRIES: u8 = 4;

/// Simulates the load on the fleet, with figures for each `bin` of time. Equal arguments have equal outcomes.
pub fn run(
    fleet: &Fleet,
    load: &Load,
    incidents: &[Incident],
    autoscaling: Option<&Autoscaling>,
    bin: Duration,
) -> Outcome {
    let mut simulation = Simulation {
        fleet,
        load,
        chance: Chance::new(load.seed),
        nodes: (0..fleet.nodes).map(|_| Node::serving(fleet.threads)).collect(),
        balancers: Balancers::new(fleet.balancing, fleet.nodes, load.seed),
        autoscaler: autoscaling.map(|options| Autoscaler::new(*options, fleet.nodes)),
        events: BinaryHeap::new(),
        number: 0,
        outcome: Outcome::new(bin, load.warm_up),
    };
    for incident in incidents {
        simulation.at(nanoseconds(incident.at), What::Fails { node: incident.node, fault: incident.what });
    }
    if let Some(options) = autoscaling {
        simulation.at(nanoseconds(options.sync), What::Look);
    }
    simulation.run()
}

struct Simulation<'a> {
    fleet: &'a Fleet,
    load: &'a Load,
    chance: Chance,
    nodes: Vec<Node>,
    balancers: Balancers,
    autoscaler: Option<Autoscaler>,
    events: BinaryHeap<Reverse<Event>>,
    /// Of events, so that those of one moment come in the order in which they were made.
    number: u64,
    outcome: Outcome,
}

struct Event {
    at: Moment,
    number: u64,
    what: What,
}

enum What {
    /// A thread has finished, unless its node has died or stood still since.
    Done {
        node: usize,
        life: u32,
        thread: usize,
    },
    /// A connection has timed out; another node is tried.
    Again(Request),
    Fails {
        node: usize,
        fault: Fault,
    },
    /// A balancer has found out that the node is gone.
    Missed {
        node: usize,
        balancer: usize,
    },
    /// It is there (again), and all balancers know.
    Serves {
        node: usize,
    },
    /// The autoscaler looks.
    Look,
}

impl Simulation<'_> {
    fn run(mut self) -> Outcome {
        let end = nanoseconds(self.load.duration);
        let mut next = self.next_arrival(0);
        while next < end {
            self.proceed_to(next);
            let balancer = self.balancers.one();
            self.place(next, Request { arrived: next, balancer, tries: 0, has_begun: false });
            next = self.next_arrival(next);
        }
        self.proceed_to(end);
        self.outcome
    }

    /// All that happens until then.
    fn proceed_to(&mut self, moment: Moment) {
        while self.events.peek().is_some_and(|Reverse(event)| event.at <= moment) {
            let Some(Reverse(Event { at, what, .. })) = self.events.pop() else { return };
            self.happen(at, what);
        }
    }

    fn happen(&mut self, now: Moment, what: What) {
        match what {
            What::Done { node, life, thread } => self.finish(now, node, life, thread),
            What::Again(request) => self.place(now, request),
            What::Fails { node, fault } => self.fail(now, node, fault),
            What::Missed { node, balancer } if !self.nodes[node].is_serving() => {
                self.balancers.unlist(node, balancer);
            }
            What::Missed { .. } => {}
            What::Serves { node } => self.serve(now, node),
            What::Look => self.look(now),
        }
    }

    fn next_arrival(&mut self, after: Moment) -> Moment {
        let is_begun = |(from, _): &&(Duration, f64)| nanoseconds(*from) <= after;
        let rate = self.load.rates.iter().take_while(is_begun).last().map_or(0.0, |(_, rate)| *rate);
        // A cast is not more than the greatest number.
        after.saturating_add((self.chance.pause(self.load.arrivals) / rate * 1e9) as Moment)
    }

    /// Sends a request to a node, and to another if that refuses the connection.
    fn place(&mut self, now: Moment, mut request: Request) {
        let mut refused = None;
        loop {
            request.tries += 1;
            let chosen = self.balancers.choose(request.balancer, refused);
            let Some(node) = chosen.filter(|_| request.tries <= TRIES) else {
                return self.outcome.lose(now, 1);
            };
            match self.nodes[node].take(request, self.fleet) {
                Taken::Runs { thread } => {
                    self.balancers.begin(request.balancer, node);
                    return self.begin(now, node, thread);
                }
                Taken::Waits => return self.balancers.begin(request.balancer, node),
                Taken::TooLong => return self.outcome.refuse(now),
                Taken::Refused => refused = Some(node),
                Taken::Silent => {
                    let timeout = nanoseconds(self.fleet.balancing.check.connect_timeout);
                    return self.at(now + timeout, What::Again(request));
                }
            }
        }
    }

    /// A thread begins with the request that it has.
    fn begin(&mut self, now: Moment, node: usize, thread: usize) {
        let service = self.chance.service(self.fleet.service);
        let (life, request) = self.nodes[node].begin(thread);
        if let Some(arrived) = request {
            let wait = now - arrived;
            self.outcome.begin(now, wait);
            if let Some(autoscaler) = &mut self.autoscaler {
                autoscaler.observe(wait, service);
            }
        }
        self.at(now + service, What::Done { node, life, thread });
    }

    fn finish(&mut self, now: Moment, node: usize, life: u32, thread: usize) {
        if self.nodes[node].life() != life {
            return;
        }
        let request = self.nodes[node].finish(thread);
        self.balancers.end(request.balancer, node);
        self.outcome.answer(now, now - request.arrived + nanoseconds(self.fleet.way));
        if self.nodes[node].next_for(thread) {
            self.begin(now, node, thread);
        }
    }

    fn fail(&mut self, now: Moment, node: usize, fault: Fault) {
        match fault {
            Fault::Killed | Fault::Lost => {
                let lost = match fault {
                    Fault::Lost => self.nodes[node].vanish(),
                    _ => self.nodes[node].die(),
                };
                self.balancers.forget(node);
                self.outcome.lose(now, lost);
                self.miss(now, node);
            }
            Fault::Frozen(duration) => {
                self.nodes[node].freeze();
                self.miss(now, node);
                self.at(now + nanoseconds(duration), What::Serves { node });
            }
            Fault::Restarted(duration) => {
                self.take_out(node);
                self.at(now + nanoseconds(duration), What::Serves { node });
            }
        }
    }

    /// Each balancer asks at moments of its own.
    fn miss(&mut self, now: Moment, node: usize) {
        let check = self.fleet.balancing.check;
        for balancer in 0..self.balancers.number() {
            let intervals = self.chance.part() + f64::from(check.fall.saturating_sub(1));
            let seconds = intervals * check.interval.as_secs_f64();
            self.at(now + (seconds * 1e9) as Moment, What::Missed { node, balancer });
        }
    }

    /// Balancers know first, and what it has is answered.
    fn take_out(&mut self, node: usize) {
        self.nodes[node].leave();
        (0..self.balancers.number()).for_each(|balancer| self.balancers.unlist(node, balancer));
    }

    fn serve(&mut self, now: Moment, node: usize) {
        for thread in self.nodes[node].come_back() {
            self.begin(now, node, thread);
        }
        self.balancers.list(node);
    }

    fn look(&mut self, now: Moment) {
        let serving: Vec<usize> =
            (0..self.nodes.len()).filter(|node| self.nodes[*node].is_serving()).collect();
        self.outcome.count_nodes(now, serving.len());
        let Some(autoscaler) = &mut self.autoscaler else { return };
        let threads = serving.len() * self.fleet.threads;
        let change = autoscaler.look(now, serving.len(), threads);
        let (start, sync) = (autoscaler.start(), autoscaler.sync());
        for _ in 0..change.more {
            let node = self.place_for_node();
            self.nodes[node].start();
            self.at(now + start, What::Serves { node });
        }
        serving.into_iter().rev().take(change.fewer).for_each(|node| self.take_out(node));
        self.at(now + sync, What::Look);
    }

    /// That of one that is gone, or a new one.
    fn place_for_node(&mut self) -> usize {
        if let Some(free) = self.nodes.iter().position(Node::is_gone) {
            return free;
        }
        self.nodes.push(Node::absent(self.fleet.threads));
        self.balancers.add();
        self.nodes.len() - 1
    }

    fn at(&mut self, at: Moment, what: What) {
        self.number += 1;
        self.events.push(Reverse(Event { at, number: self.number, what }));
    }
}

impl Event {
    fn key(&self) -> (Moment, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

fn nanoseconds(duration: Duration) -> Moment {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
