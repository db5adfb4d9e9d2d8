//! What must hold of a lane in any order of events: first come, first served, and as many places as there are.

use proptest::prelude::*;
use regent_dispatch::lanes::{Entry, LaneLimit, Lanes, Place, Turn};
use regent_dispatch::routes::{Route, Routes};
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// The moment at which the tests begin.
const START: Duration = Duration::from_secs(1_000);

/// Of a pinned lane, which is limited whether it is new or not.
fn no_newcomer() -> Arc<Route> {
    unreachable!("its route is limited")
}

/// What happens to a lane.
#[derive(Debug, Clone, Copy)]
enum Step {
    Arrive,
    /// A waiting request's client leaves.
    Leave(prop::sample::Index),
    /// A request that got its place ends.
    End(prop::sample::Index),
    /// Waiting requests see whether it is their turn, from any of them on.
    Look(prop::sample::Index),
    Resize(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Arrive),
        1 => any::<prop::sample::Index>().prop_map(Step::Leave),
        3 => any::<prop::sample::Index>().prop_map(Step::End),
        2 => any::<prop::sample::Index>().prop_map(Step::Look),
        1 => (1_u32..6).prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 1..300)
}

/// A lane beside the simplest thing that could be one: a list of numbers.
struct Checked {
    now: Duration,
    lanes: Lanes,
    route: Arc<Route>,
    limit: usize,
    arrived: u64,
    /// Waiting in the model, in the order of arrival.
    line: VecDeque<u64>,
    /// Let in by the model, not ended.
    inside: Vec<u64>,
    /// The last of these that had to wait, until it is on the pool's queue: nobody follows before.
    moving: Option<u64>,
    turns: Vec<(u64, Turn)>,
    places: Vec<(u64, Place)>,
}

impl Checked {
    fn new() -> Self {
        let now = START;
        let route = Routes::new(now).lane(0, "checked");
        let lanes = Lanes::new(8, 8, now);
        lanes.pin(&route, LaneLimit::Threads(2));
        Self {
            now,
            lanes,
            route,
            limit: 2,
            arrived: 0,
            line: VecDeque::new(),
            inside: Vec::new(),
            moving: None,
            turns: Vec::new(),
            places: Vec::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Arrive => self.arrive(),
            Step::Leave(index) if !self.turns.is_empty() => self.leave(index.index(self.turns.len())),
            Step::End(index) if !self.places.is_empty() => self.end(index.index(self.places.len())),
            Step::Look(index) if !self.turns.is_empty() => self.look(index.index(self.turns.len())),
            Step::Resize(limit) => self.resize(limit),
            Step::Leave(_) | Step::End(_) | Step::Look(_) => {}
        }
        self.advance();
    }

    fn arrive(&mut self) {
        let number = self.arrived;
        self.arrived += 1;
        match self.has_room() && self.line.is_empty() {
            true => self.inside.push(number),
            false => self.line.push_back(number),
        }
        match self.lanes.enter(&self.route, no_newcomer, self.now) {
            Entry::Enter(place) => self.places.push((number, place)),
            Entry::Wait(turn) => self.turns.push((number, turn)),
        }
    }

    fn leave(&mut self, index: usize) {
        let (number, turn) = self.turns.swap_remove(index);
        self.line.retain(|waiting| *waiting != number);
        self.inside.retain(|inside| *inside != number);
        self.moved(number);
        drop(turn);
    }

    fn end(&mut self, index: usize) {
        let (number, place) = self.places.swap_remove(index);
        self.inside.retain(|inside| *inside != number);
        drop(place);
    }

    fn look(&mut self, from: usize) {
        self.turns.rotate_left(from);
        for (number, mut turn) in std::mem::take(&mut self.turns) {
            match Pin::new(&mut turn).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(place) => {
                    place.queued();
                    self.places.push((number, place));
                    self.moved(number);
                    self.advance();
                }
                Poll::Pending => self.turns.push((number, turn)),
            }
        }
    }

    fn resize(&mut self, limit: u32) {
        self.limit = limit as usize;
        self.lanes.pin(&self.route, LaneLimit::Threads(limit));
    }

    fn advance(&mut self) {
        if self.has_room() {
            self.moving = self.line.pop_front();
            self.inside.extend(self.moving);
        }
    }

    fn has_room(&self) -> bool {
        self.moving.is_none() && self.inside.len() < self.limit
    }

    fn moved(&mut self, number: u64) {
        self.moving = self.moving.filter(|moving| *moving != number);
    }

    /// Those who have places are those who should.
    fn check(&mut self) {
        self.look_at_all();
        let mut found: Vec<_> = self.places.iter().map(|(number, _)| *number).collect();
        found.sort_unstable();
        self.inside.sort_unstable();
        assert_eq!(found, self.inside);
        assert_eq!(self.lanes.waiting(), self.line.len());
        assert_eq!(self.route.waiting() as usize, self.line.len() + self.inside.len());
    }

    /// Each that has its place lets the next one go.
    fn look_at_all(&mut self) {
        loop {
            let waiting = self.turns.len();
            if waiting > 0 {
                self.look(0);
            }
            if self.turns.len() == waiting {
                return;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_lane_is_strictly_first_in_first_out(steps in steps()) {
        let mut checked = Checked::new();
        for (number, step) in steps.into_iter().enumerate() {
            checked.step(step);
            // Not after each: turns that were given and not looked at are part of the game.
            if number % 3 == 0 {
                checked.check();
            }
        }
        checked.check();
    }

    #[test]
    fn no_place_is_lost(steps in steps()) {
        let mut checked = Checked::new();
        steps.into_iter().for_each(|step| checked.step(step));
        checked.turns.clear();
        checked.places.clear();
        let places: Vec<_> = (0..checked.limit).map(|_| checked.lanes.enter(&checked.route, no_newcomer, checked.now)).collect();
        prop_assert!(places.iter().all(|entry| matches!(entry, Entry::Enter(_))));
        prop_assert!(matches!(checked.lanes.enter(&checked.route, no_newcomer, checked.now), Entry::Wait(_)));
    }
}

/// Wakes a thread.
struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Waits for a turn as an executor does: it looks again only when it was woken. So a lost wake-up hangs.
fn wait(turn: Turn) -> Place {
    let mut turn = pin!(turn);
    let unpark = Arc::new(Unpark { thread: std::thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&unpark));
    loop {
        if let Poll::Ready(place) = turn.as_mut().poll(&mut Context::from_waker(&waker)) {
            return place;
        }
        while !unpark.woken.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}

const THREADS: u64 = 8;
const ROUNDS: u64 = 20_000;
const LIMIT: u32 = 3;

#[test]
fn many_threads_never_hold_more_than_the_limit_and_never_hang() {
    let now = START;
    let route = Routes::new(now).lane(0, "stressed");
    let lanes = Lanes::new(8, 8, now);
    lanes.pin(&route, LaneLimit::Threads(LIMIT));
    let (holding, served) = (AtomicU32::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lanes, route, holding, served) = (&lanes, &route, &holding, &served);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let place = match lanes.enter(route, no_newcomer, now) {
                        Entry::Enter(place) => place,
                        // Some leave, at a moment when they may have been given the place already.
                        Entry::Wait(_) if (round * 7 + thread) % 5 == 0 => continue,
                        Entry::Wait(turn) => wait(turn),
                    };
                    assert!(holding.fetch_add(1, Ordering::SeqCst) < LIMIT);
                    served.fetch_add(1, Ordering::Relaxed);
                    place.started(now);
                    holding.fetch_sub(1, Ordering::SeqCst);
                    place.finished(Duration::from_millis(1));
                }
            });
        }
    });
    assert!(served.load(Ordering::Relaxed) >= THREADS * ROUNDS * 4 / 5 - THREADS * ROUNDS / 100);
    assert_eq!((lanes.waiting(), route.waiting(), route.running()), (0, 0, 0));
}

#[test]
fn a_route_that_turns_slow_and_fast_under_load_loses_nobody() {
    let start = START;
    let routes = Routes::new(start);
    let (route, usual) = (routes.get(0, "/flips", start), routes.get(0, "/usual", start));
    let common = routes.shared(0, b"index.php", start);
    let lanes = Lanes::new(2, 2, start);
    // Each look at the clock is a second later: judgements come all the time, and so do limits and their end.
    let clock = Mutex::new(start);
    let tick = || {
        let mut clock = clock.lock().expect("no thread panics with it");
        *clock += Duration::from_secs(1);
        *clock
    };
    let flips = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (lanes, route, usual, flips, tick) = (&lanes, &route, &usual, &flips, &tick);
            let common = &common;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    if let Entry::Enter(place) = lanes.enter(usual, || Arc::clone(common), tick()) {
                        place.finished(Duration::from_millis(5));
                    }
                    let limited = route.is_limited();
                    let place = match lanes.enter(route, || Arc::clone(common), tick()) {
                        Entry::Enter(place) => place,
                        Entry::Wait(turn) => wait(turn),
                    };
                    place.finished(Duration::from_millis(if round / 50 % 2 == 0 { 1000 } else { 5 }));
                    flips.fetch_add(u64::from(limited != route.is_limited()), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(flips.load(Ordering::Relaxed) > 10, "the test is about this");
    assert_eq!((lanes.waiting(), route.waiting(), usual.waiting()), (0, 0, 0));
}
