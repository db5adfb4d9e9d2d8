//! Users in stages, and what their requests do. The scenarios are those that autoscaling of PHP threads was first
//! published with (79 to 106 % of the best fixed pool), with a tenth of the users for a tenth of the cores, and one
//! more: all users at once.

use super::machine::{MICROS, MILLIS, Nanos, SECONDS};
use fastrand::Rng;

/// The scenarios run in a quarter of their time, which makes the ramps four times as steep.
const PACE: f64 = 0.25;
/// PHP's and the server's own work for each request.
const OVERHEAD: Nanos = 60 * MICROS;
/// One turn of an empty loop in PHP.
const LOOP: Nanos = 10;
/// One line of output.
const LINE: Nanos = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Compute(Nanos),
    Sleep(Nanos),
}

/// What a user does when it is answered.
#[derive(Debug, Clone, Copy)]
pub enum Then {
    /// Thinks for this long in the mean, and asks again.
    Again(Nanos),
    Leave,
}

type Users = Box<dyn Fn(Nanos) -> f64>;
type Requests = Box<dyn Fn(&mut Rng, Nanos) -> Vec<Step>>;

/// How many users there are at a time, and what each of them asks for.
pub struct Load {
    pub lasts: Nanos,
    pub then: Then,
    users: Users,
    request: Requests,
}

impl Load {
    pub fn new(
        lasts: Nanos,
        users: impl Fn(Nanos) -> f64 + 'static,
        request: impl Fn(&mut Rng, Nanos) -> Vec<Step> + 'static,
    ) -> Self {
        Self { lasts, then: Then::Again(0), users: Box::new(users), request: Box::new(request) }
    }

    pub fn steady(
        users: u32,
        lasts: Nanos,
        request: impl Fn(&mut Rng, Nanos) -> Vec<Step> + 'static,
    ) -> Self {
        Self::new(lasts, move |_| f64::from(users), request)
    }

    pub fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }

    pub fn users(&self, now: Nanos) -> usize {
        (self.users)(now) as usize
    }

    pub fn request(&self, random: &mut Rng, now: Nanos) -> Vec<Step> {
        (self.request)(random, now)
    }
}

/// A request that computes for a moment, and waits for a database or another server.
pub fn blocking(millis: u64) -> impl Fn(&mut Rng, Nanos) -> Vec<Step> {
    move |_, _| request(millis * MILLIS, 10_000, 1)
}

/// The same, for half of the time to one and a half.
pub fn blocking_about(millis: u64) -> impl Fn(&mut Rng, Nanos) -> Vec<Step> {
    move |random, _| request(random.u64(millis * MILLIS / 2..=millis * MILLIS * 3 / 2), 10_000, 1)
}

pub fn computing(millis: u64) -> impl Fn(&mut Rng, Nanos) -> Vec<Step> {
    move |_, _| vec![Step::Compute(millis * MILLIS)]
}

/// With the work of the server for each request, which is as much again as PHP's.
pub fn hello_world() -> Load {
    staged(&[(5, 10), (20, 40), (5, 0)], |_, _| vec![Step::Compute(3 * OVERHEAD)])
}

pub fn database() -> Load {
    staged(&[(20, 10), (30, 20), (10, 0)], |random, _| {
        let iterations = random.usize(1..=2);
        let once = request(random.u64(1..=10) * MILLIS, random.u64(1..=30_000), random.u64(1..=40));
        once.repeat(iterations)
    })
}

pub fn external_api() -> Load {
    staged(&[(20, 15), (20, 100), (10, 0)], external_api_request)
}

pub fn computation() -> Load {
    staged(&[(20, 8), (20, 15), (5, 0)], |random, _| {
        request(random.u64(0..=2) * MILLIS, random.u64(1..=1_000_000), random.u64(1..=500))
    })
}

pub fn hanging_server() -> Load {
    staged(&[(20, 10), (20, 50), (20, 0)], |random, _| match random.u32(0..100) {
        0..2 => request(at_pace(15_000 * MILLIS), 0, 0),
        _ => request(5 * MILLIS, 10_000, 100),
    })
}

pub fn time_outs() -> Load {
    staged(&[(20, 10), (20, 50), (20, 0)], |_, now| match now / at_pace(10 * SECONDS) % 2 {
        0 => request(at_pace(50_000 * MILLIS), 0, 0),
        _ => request(5 * MILLIS, 30_000, 100),
    })
}

/// As the external API's, but all users come at once.
pub fn step() -> Load {
    Load::steady(100, at_pace(15 * SECONDS), external_api_request)
}

pub fn at_pace(time: Nanos) -> Nanos {
    (time as f64 * PACE) as Nanos
}

fn external_api_request(random: &mut Rng, _: Nanos) -> Vec<Step> {
    request(random.u64(10..=150) * MILLIS, random.u64(1..=30_000), random.u64(1..=40))
}

fn request(sleep: Nanos, loops: u64, lines: u64) -> Vec<Step> {
    let work = OVERHEAD + loops * LOOP + lines * LINE;
    match sleep {
        0 => vec![Step::Compute(work)],
        _ => vec![Step::Compute(work), Step::Sleep(sleep)],
    }
}

/// Linear ramps, each from the number of users where the last one ended.
fn staged(stages: &[(u64, u32)], request: impl Fn(&mut Rng, Nanos) -> Vec<Step> + 'static) -> Load {
    let stages: Vec<(Nanos, f64)> =
        stages.iter().map(|&(seconds, users)| (at_pace(seconds * SECONDS), f64::from(users))).collect();
    let lasts = stages.iter().map(|(time, _)| time).sum();
    Load::new(lasts, move |now| ramp(&stages, now), request)
}

fn ramp(stages: &[(Nanos, f64)], now: Nanos) -> f64 {
    let (mut begin, mut from) = (0, 0.0);
    for &(time, to) in stages {
        if now < begin + time {
            return from + (to - from) * (now - begin) as f64 / time as f64;
        }
        (begin, from) = (begin + time, to);
    }
    from
}
