//! The lanes of one pool as their callers see them.

use super::*;
use crate::routes::Routes;
use std::task::{Context, Poll, Waker};

/// The moment at which the tests begin.
const START: Duration = Duration::from_secs(1_000);

struct Pool {
    now: Duration,
    routes: Routes,
    lanes: Lanes,
}

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

impl Pool {
    fn new(most: u32) -> Self {
        let now = START;
        Self { now, routes: Routes::new(now), lanes: Lanes::new(most, most, now) }
    }

    /// With fast requests, and a route that is slow already.
    fn with_slow(most: u32, path: &str) -> Self {
        let mut pool = Self::new(most);
        pool.fast();
        pool.make_slow(path);
        pool
    }

    fn fast(&mut self) {
        for _ in 0..100 {
            entered(self.enter("/fast")).finished(ms(5));
        }
    }

    fn make_slow(&mut self, path: &str) {
        entered(self.enter(path)).finished(ms(1000));
        self.pass(ms(20));
        assert!(self.route(path).is_limited());
    }

    fn route(&self, path: &str) -> Arc<Route> {
        self.routes.get(0, path, self.now)
    }

    fn enter(&self, path: &str) -> Entry {
        let common = || self.routes.shared(0, b"index.php", self.now);
        self.lanes.enter(&self.route(path), common, self.now)
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.lanes.tick(self.now);
    }

    fn fill(&self, path: &str, places: usize) -> Vec<Place> {
        (0..places).map(|_| entered(self.enter(path))).collect()
    }
}

#[track_caller]
fn entered(entry: Entry) -> Place {
    match entry {
        Entry::Enter(place) => place,
        Entry::Wait(_) => panic!("it has to wait"),
    }
}

#[track_caller]
fn waits(entry: Entry) -> Turn {
    match entry {
        Entry::Enter(place) => panic!("it got {place:?}"),
        Entry::Wait(turn) => turn,
    }
}

/// The place, if it is there, of a request that goes to the pool's queue at once.
fn poll(turn: &mut Turn) -> Option<Place> {
    take(turn).inspect(Place::queued)
}

fn take(turn: &mut Turn) -> Option<Place> {
    match std::pin::Pin::new(turn).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(place) => Some(place),
        Poll::Pending => None,
    }
}

#[test]
fn a_fast_route_has_no_limit() {
    let pool = Pool::with_slow(8, "/slow");
    let places = pool.fill("/fast", 1000);
    assert_eq!(pool.route("/fast").waiting(), 1000);
    drop(places);
    assert_eq!(pool.route("/fast").waiting(), 0);
}

#[test]
fn a_slow_route_leaves_a_part_of_the_pool() {
    let pool = Pool::with_slow(8, "/slow");
    let mut places = pool.fill("/slow", 6);
    let mut turn = waits(pool.enter("/slow"));
    assert!(poll(&mut turn).is_none());
    assert_eq!((pool.lanes.waiting(), pool.route("/slow").held_back()), (1, 1));
    let [figures] = &pool.lanes.figures()[..] else { panic!("one lane") };
    assert_eq!((figures.limit, figures.inside, figures.waiting), (6, 6, 1));
    places.pop();
    assert!(poll(&mut turn).is_some());
    drop(turn);
    assert_eq!(pool.lanes.waiting(), 0);
}

#[test]
fn all_slow_routes_together_leave_a_quarter() {
    let mut pool = Pool::with_slow(8, "/a");
    pool.make_slow("/b");
    let mut a = pool.fill("/a", 4);
    let mut b = pool.fill("/b", 2);
    let mut turns = [waits(pool.enter("/a")), waits(pool.enter("/b"))];
    a.pop();
    assert!(poll(&mut turns[0]).is_none(), "the lane with fewer places is next");
    b.extend(poll(&mut turns[1]));
    assert_eq!(b.len(), 3);
    b.clear();
    assert!(poll(&mut turns[0]).is_some());
}

#[test]
fn requests_that_were_let_in_before_count() {
    let mut pool = Pool::new(8);
    pool.fast();
    let places = pool.fill("/hangs", 8);
    places.iter().for_each(|place| place.started(pool.now));
    pool.pass(ms(50));
    let mut turn = waits(pool.enter("/hangs"));
    let mut places = places.into_iter();
    places.by_ref().take(2).for_each(drop);
    assert!(poll(&mut turn).is_none(), "six are still running");
    places.next();
    assert!(poll(&mut turn).is_some());
}

#[test]
fn without_fast_requests_slow_ones_have_the_pool_and_no_more() {
    let mut pool = Pool::with_slow(8, "/slow");
    let mut places = pool.fill("/slow", 6);
    let mut turns: Vec<_> = (0..6).map(|_| waits(pool.enter("/slow"))).collect();
    pool.pass(NO_FAST - ms(100));
    assert!(turns.iter_mut().all(|turn| poll(turn).is_none()));
    pool.pass(ms(200));
    let more: Vec<_> = turns.iter_mut().filter_map(poll).collect();
    assert_eq!(more.len(), 2);
    // One fast request, and they must leave their part again.
    entered(pool.enter("/fast")).finished(ms(5));
    pool.pass(ms(20));
    drop(more);
    assert!(turns[2..].iter_mut().all(|turn| poll(turn).is_none()));
    places.pop();
    assert!(poll(&mut turns[2]).is_some());
}

#[test]
fn the_limit_follows_the_pool() {
    let pool = Pool::with_slow(8, "/slow");
    let mut places = pool.fill("/slow", 6);
    let mut turns: Vec<_> = (0..4).map(|_| waits(pool.enter("/slow"))).collect();
    pool.lanes.set_threads(12, pool.now);
    places.extend(turns.iter_mut().filter_map(poll));
    assert_eq!(places.len(), 9);
    pool.lanes.set_threads(2, pool.now);
    (0..8).for_each(|_| drop(places.pop()));
    assert!(poll(&mut turns[3]).is_none(), "one is inside still");
    places.pop();
    assert!(poll(&mut turns[3]).is_some());
}

#[test]
fn those_who_wait_are_let_in_when_the_route_is_fast_again() {
    let mut pool = Pool::with_slow(2, "/cured");
    let place = entered(pool.enter("/cured"));
    let mut turns: Vec<_> = (0..100).map(|_| waits(pool.enter("/cured"))).collect();
    for _ in 0..1000 {
        pool.route("/cured").record(ms(5));
    }
    pool.pass(ms(20));
    pool.pass(ms(10_000));
    turns.push(waits(pool.enter("/cured")));
    let places: Vec<_> = turns.iter_mut().filter_map(poll).collect();
    assert_eq!(places.len(), 101);
    assert_eq!(pool.route("/cured").waiting(), 102);
    assert!(!pool.route("/cured").is_limited());
    drop((place, places));
    assert_eq!(pool.route("/cured").waiting(), 0);
}

#[test]
fn a_pinned_lane_is_limited_whatever_it_takes() {
    let pool = Pool::new(8);
    let reports = pool.routes.lane(0, "reports");
    pool.lanes.pin(&reports, LaneLimit::Threads(2));
    let enter = || pool.lanes.enter(&reports, || unreachable!("it is limited"), pool.now);
    let places = [entered(enter()), entered(enter())];
    let mut turn = waits(enter());
    pool.lanes.pin(&reports, LaneLimit::Share(50));
    assert!(poll(&mut turn).is_some());
    drop(places);
}

#[test]
fn a_lane_that_is_pinned_while_it_is_slow_stays_when_it_is_fast() {
    let mut pool = Pool::with_slow(8, "/pinned");
    pool.lanes.pin(&pool.route("/pinned"), LaneLimit::Threads(1));
    (0..1000).for_each(|_| pool.route("/pinned").record(ms(1)));
    pool.pass(ms(20));
    pool.pass(ms(10_000));
    let _place = entered(pool.enter("/pinned"));
    drop(waits(pool.enter("/pinned")));
}

#[test]
fn without_a_lane_nobody_waits_and_no_route_becomes_slow() {
    let mut pool = Pool::new(8);
    pool.fast();
    let pass = |pool: &Pool| pool.lanes.exempt(&pool.route("/off"), pool.now);
    pass(&pool).finished(ms(10_000));
    pool.pass(ms(20));
    let places: Vec<_> = (0..100).map(|_| pass(&pool)).collect();
    assert!(!pool.route("/off").is_limited() && pool.lanes.figures().is_empty());
    assert_eq!(pool.route("/off").waiting(), 100);
    drop(places);
    assert_eq!(pool.route("/off").waiting(), 0);
}

#[test]
fn a_route_that_is_slow_again_before_its_line_is_empty_is_limited_on() {
    let mut pool = Pool::with_slow(2, "/relapses");
    let place = entered(pool.enter("/relapses"));
    let mut turns: Vec<_> = (0..3).map(|_| waits(pool.enter("/relapses"))).collect();
    (0..1000).for_each(|_| pool.route("/relapses").record(ms(5)));
    pool.pass(ms(20));
    pool.pass(ms(10_000));
    let first = take(&mut turns[0]).expect("its line moves");
    (0..1000).for_each(|_| pool.route("/fast").record(ms(5)));
    (0..500).for_each(|_| pool.route("/relapses").record(ms(2000)));
    pool.pass(ms(20));
    first.queued();
    assert!(take(&mut turns[1]).is_none());
    drop((place, first));
    assert!(poll(&mut turns[1]).is_some());
}

#[test]
fn the_next_of_a_line_goes_when_the_one_before_is_on_the_queue() {
    let pool = Pool::with_slow(8, "/slow");
    let places = pool.fill("/slow", 6);
    let mut turns: Vec<_> = (0..4).map(|_| waits(pool.enter("/slow"))).collect();
    drop(places);
    let first = take(&mut turns[0]).expect("there is room");
    assert!(take(&mut turns[1]).is_none(), "it could overtake the first");
    let mut last = waits(pool.enter("/slow"));
    first.queued();
    let second = take(&mut turns[1]).expect("the first is on the queue");
    drop(second);
    let third = take(&mut turns[2]).expect("the second has gone");
    third.started(pool.now);
    assert!(poll(&mut turns[3]).is_some() && poll(&mut last).is_some());
}

#[test]
fn a_client_that_left_does_not_hold_up_the_line() {
    let pool = Pool::with_slow(2, "/slow");
    let place = entered(pool.enter("/slow"));
    let gone: Vec<_> = (0..10_000).map(|_| waits(pool.enter("/slow"))).collect();
    let mut turn = waits(pool.enter("/slow"));
    drop(gone);
    assert_eq!(pool.lanes.waiting(), 1);
    drop(place);
    assert!(poll(&mut turn).is_some());
}

#[test]
fn a_place_that_was_given_to_a_client_that_left_goes_to_the_next() {
    let pool = Pool::with_slow(2, "/slow");
    let place = entered(pool.enter("/slow"));
    let first = waits(pool.enter("/slow"));
    let mut second = waits(pool.enter("/slow"));
    drop(place);
    assert!(poll(&mut second).is_none(), "the first has it");
    drop(first);
    assert!(poll(&mut second).is_some());
}

#[test]
fn clients_that_come_and_leave_do_not_fill_the_memory() {
    let pool = Pool::with_slow(2, "/slow");
    let _place = entered(pool.enter("/slow"));
    let _first = waits(pool.enter("/slow"));
    for _ in 0..100_000 {
        drop(waits(pool.enter("/slow")));
    }
    assert!(format!("{:?}", pool.lanes).len() < 20_000);
}

#[test]
fn the_life_of_a_request_is_counted() {
    let pool = Pool::new(8);
    let place = entered(pool.enter("/a"));
    let route = Arc::clone(place.route());
    assert_eq!((route.waiting(), route.running()), (1, 0));
    place.started(pool.now);
    place.started(pool.now + ms(1));
    assert_eq!((route.waiting(), route.running()), (0, 1));
    assert_eq!(route.mean_service_time(), None);
    place.finished(ms(3));
    assert_eq!((route.waiting(), route.running()), (0, 0));
    assert_eq!(route.mean_service_time(), Some(ms(3)));
}

/// Of a script of its own.
fn enter_script(pool: &Pool, path: &str, script: &str) -> Entry {
    let common = || pool.routes.shared(0, script.as_bytes(), pool.now);
    pool.lanes.enter(&pool.route(path), common, pool.now)
}

/// A pool of eight threads with a fast route that is known and asked for.
fn with_known() -> Pool {
    let mut pool = Pool::new(8);
    pool.fast();
    pool.pass(ms(20));
    pool.fast();
    pool
}

#[test]
fn on_a_server_that_has_just_started_nothing_is_limited() {
    let pool = Pool::new(2);
    let places: Vec<_> =
        (0..500).map(|number| entered(enter_script(&pool, &format!("/{number}/x"), "a.php"))).collect();
    assert!(places.iter().all(|place| place.newcomer_of().is_none()));
}

#[test]
fn a_new_path_for_each_request_does_not_escape_the_lane() {
    let mut pool = with_known();
    // Letters only: names that are kept apart.
    let path = |number: u8| format!("/slow.php/{}", char::from(b'a' + number));
    let slow = |pool: &Pool, number| enter_script(pool, &path(number), "slow.php");
    let mut places: Vec<_> = (0..6).map(|number| entered(slow(&pool, number))).collect();
    let mut turns: Vec<_> = (6..20).map(|number| waits(slow(&pool, number))).collect();
    assert_eq!(pool.lanes.waiting(), 14);
    for _ in 0..50 {
        pool.pass(ms(20));
        assert!(turns.iter_mut().all(|turn| poll(turn).is_none()));
        entered(pool.enter("/fast")).finished(ms(5));
    }
    places.remove(0).finished(ms(2000));
    let next: Vec<_> = turns.iter_mut().filter_map(poll).collect();
    assert_eq!(next.len(), 1, "one comes when one has gone");
    let demand = pool.lanes.demand();
    assert_eq!((demand.waiting, demand.threads), (13, 6 + 13 + 2));
}

#[test]
fn a_new_route_is_let_go_when_its_first_request_has_shown_that_it_is_fast() {
    let mut pool = with_known();
    let mut places: Vec<_> = (0..6).map(|_| entered(pool.enter("/new"))).collect();
    let mut turns: Vec<_> = (0..100).map(|_| waits(pool.enter("/new"))).collect();
    places.remove(0).finished(ms(5));
    pool.pass(ms(20));
    let all: Vec<_> = turns.iter_mut().filter_map(poll).collect();
    assert_eq!(all.len(), 100, "in their order");
    assert!(pool.route("/new").is_known() && !pool.route("/new").is_limited());
    assert!(entered(pool.enter("/new")).newcomer_of().is_none());
    assert!(pool.lanes.figures().is_empty());
}

#[test]
fn a_new_route_that_is_slow_stays_in_its_lane() {
    let mut pool = with_known();
    let places: Vec<_> = (0..6).map(|_| entered(pool.enter("/report"))).collect();
    let mut turn = waits(pool.enter("/report"));
    let common = pool.routes.shared(0, b"index.php", pool.now);
    assert_eq!(common.newcomers(), 6);
    places.into_iter().take(1).for_each(|place| place.finished(ms(1000)));
    pool.pass(ms(20));
    assert!(pool.route("/report").is_limited() && common.is_limited());
    assert!(poll(&mut turn).is_some());
    assert_eq!(common.newcomers(), 0, "it is no new one any more");
}

#[test]
fn where_new_routes_are_fast_they_do_not_wait_for_each_other() {
    let mut pool = with_known();
    entered(pool.enter("/first")).finished(ms(5));
    pool.pass(ms(20));
    let places: Vec<_> =
        (b'a'..=b'z').map(|letter| entered(pool.enter(&format!("/{}", char::from(letter))))).collect();
    // Each by itself may yet turn out to be a burst of slow ones.
    let burst: Vec<_> = (0..6).map(|_| entered(pool.enter("/burst"))).collect();
    drop(waits(pool.enter("/burst")));
    drop((places, burst));
    assert_eq!(pool.lanes.waiting(), 0);
}

#[test]
fn new_routes_of_another_script_have_their_turn_among_many_of_one() {
    let pool = with_known();
    let attack =
        |number: u8| enter_script(&pool, &format!("/slow.php/{}", char::from(b'a' + number)), "slow.php");
    let mut places: Vec<_> = (0..6).map(|number| entered(attack(number))).collect();
    let mut turns: Vec<_> = (6..20).map(|number| waits(attack(number))).collect();
    let other = entered(enter_script(&pool, "/about", "index.php"));
    let mut second = waits(enter_script(&pool, "/contact", "index.php"));
    places.pop();
    assert!(turns.iter_mut().all(|turn| poll(turn).is_none()));
    assert!(poll(&mut second).is_none(), "six of slow or new ones are inside");
    places.pop();
    assert!(poll(&mut second).is_some());
    drop(other);
}

#[test]
fn one_request_of_an_unknown_script_has_a_place_though_slow_ones_never_go() {
    let mut pool = with_known();
    let endless: Vec<_> = (0..6).map(|_| entered(enter_script(&pool, "/loop.php", "loop.php"))).collect();
    endless.iter().for_each(|place| place.started(pool.now));
    pool.pass(ms(100));
    assert!(pool.route("/loop.php").is_limited());
    let late = || enter_script(&pool, "/late.php", "late.php");
    let first = entered(late());
    drop(waits(late()));
    first.finished(ms(1));
    pool.pass(ms(20));
    drop(entered(enter_script(&pool, "/late.php", "late.php")));
}

#[test]
fn what_overflows_the_table_is_judged_by_its_script() {
    let pool = with_known();
    let shared = pool.routes.shared(0, b"slow.php", pool.now);
    let enter = || pool.lanes.enter(&shared, || Arc::clone(&shared), pool.now);
    let places: Vec<_> = (0..6).map(|_| entered(enter())).collect();
    drop(waits(enter()));
    assert_eq!(shared.newcomers(), 0, "it is not counted twice");
    drop(places);
}

#[test]
fn requests_that_wait_say_how_many_threads_they_need() {
    let mut pool = Pool::with_slow(8, "/a");
    assert_eq!(pool.lanes.demand(), Demand::default());
    let places = pool.fill("/a", 6);
    let turns: Vec<_> = (0..5).map(|_| waits(pool.enter("/a"))).collect();
    let demand = Demand { waiting: 5, since: Some(pool.now), threads: 6 + 5 + 2 };
    assert_eq!(pool.lanes.demand(), demand);
    assert_eq!(pool.lanes.slow_running(), 0);
    places.iter().for_each(|place| place.started(pool.now));
    assert_eq!(pool.lanes.slow_running(), 6);
    pool.pass(ms(100));
    assert_eq!(pool.lanes.shortest_queued(), Duration::ZERO, "nobody was on the queue");
    drop(turns);
    assert_eq!(pool.lanes.demand(), Demand::default());
}
