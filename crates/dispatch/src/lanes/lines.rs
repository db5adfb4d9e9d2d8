//! Who has places, and who waits for one. One lock protects all lines of a pool: only limited routes take it. Places
//! are given, and those who wait for them woken, with the lock: in the order of the line, whichever thread does it.

use super::{Demand, Entry, LaneFigures, LaneLimit, Place, Shared, Turn};
use crate::routes::Route;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A line with fewer entries is not worth cleaning.
const CLEAN_FROM: usize = 64;

/// Threads that are kept for fast routes, at most, before it is known how many they need.
const MOST_UNKNOWN: u32 = 4;

/// How many places slow routes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Threads that the pool has.
    threads: u32,
    /// Each of them, when there are several.
    each: u32,
    /// All of them.
    together: u32,
}

/// All limited routes of a pool.
#[derive(Debug)]
pub(super) struct Lines {
    /// Threads of the pool at its largest size.
    most: u32,
    limits: Limits,
    lanes: Vec<Lane>,
    /// Requests that had to wait so far: the order of arrival over all lanes.
    arrivals: u64,
}

#[derive(Debug)]
struct Lane {
    route: Arc<Route>,
    pinned: Option<LaneLimit>,
    /// The route is new: nothing is known of it but what it has in common with other new ones.
    newcomer_of: Option<Arc<Route>>,
    line: VecDeque<Waiting>,
    /// The line is cleaned of those who have left when it is as long as this.
    clean_at: usize,
    /// The first of the line has got its place and is not on the pool's queue yet. The next one follows when it is: on
    /// another I/O thread it could overtake otherwise.
    is_moving: bool,
    /// The route is fast again. It is limited no more when the line is empty.
    is_closing: bool,
}

/// A place travels through the channel as a value that gives itself back when dropped. So it is received, or comes
/// back to the sender, or is dropped in the channel with the receiver: it is never lost, and there is never a second.
#[derive(Debug)]
struct Waiting {
    arrival: u64,
    since: Duration,
    turn: oneshot::Sender<Place>,
}

impl Limits {
    /// With fast routes beside the slow ones, which have held so many threads on average.
    pub fn protecting(threads: u32, fast_load: f64) -> Self {
        let needed = (fast_load + 2.0 * fast_load.sqrt()).ceil() as u32;
        let reserve = needed.max((threads / 4).clamp(1, MOST_UNKNOWN)).min(threads / 2);
        Self { threads, each: (threads / 2).max(1), together: (threads - reserve).max(1) }
    }

    /// With slow routes alone.
    pub fn whole(threads: u32) -> Self {
        let all = threads.max(1);
        Self { threads, each: all, together: all }
    }
}

impl Lines {
    /// `most`: threads of the pool at its largest size.
    pub fn new(most: u32, limits: Limits) -> Self {
        Self { most, limits, lanes: Vec::new(), arrivals: 0 }
    }

    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub fn pin(&mut self, route: &Arc<Route>, limit: LaneLimit) {
        self.lane(route).pinned = Some(limit);
    }

    /// The route has become slow.
    pub fn open(&mut self, route: &Arc<Route>) {
        self.lane(route).newcomer_of = None;
    }

    /// The route is new, as others that have this in common with it.
    pub fn open_to_newcomer(&mut self, route: &Arc<Route>, common: &Arc<Route>) {
        if self.find(route).is_none() {
            self.lane(route).newcomer_of = Some(Arc::clone(common));
        }
    }

    /// The route is no longer slow or new: all that wait are let in, in their order, before any that come now.
    pub fn close(&mut self, route: &Arc<Route>) {
        if let Some(lane) = self.find(route).filter(|lane| lane.pinned.is_none()) {
            lane.is_closing = true;
            lane.newcomer_of = None;
        }
    }

    /// The first of the line is on the pool's queue, or has gone.
    pub fn moved(&mut self, route: &Arc<Route>) {
        if let Some(lane) = self.find(route) {
            lane.is_moving = false;
        }
    }

    /// A request of a limited route comes.
    pub fn join(&mut self, route: &Arc<Route>, now: Duration, shared: &Arc<Shared>) -> Entry {
        let (slow, most, limits, arrival) = (self.slow_inside(), self.most, self.limits, self.arrivals + 1);
        // It was limited a moment ago, and is no longer.
        let Some(lane) = self.find(route) else {
            return Entry::Enter(Place::new(Arc::clone(route), None, Arc::clone(shared)));
        };
        lane.skip_gone();
        if lane.line.is_empty() && lane.has_room(limits, most, slow) {
            return Entry::Enter(Place::new(Arc::clone(route), lane.common(), Arc::clone(shared)));
        }
        let turn = lane.append(arrival, now, shared);
        self.arrivals = arrival;
        Entry::Wait(turn)
    }

    /// Lets in all that there is room for. Returns places of requests that left at this very moment.
    #[must_use = "places are dropped after the lock"]
    pub fn advance(&mut self, shared: &Arc<Shared>) -> Vec<Place> {
        let mut returned = Vec::new();
        while let Some(lane) = self.next_lane() {
            returned.extend(lane.let_next_in(shared));
        }
        self.lanes.retain(Lane::stays);
        returned
    }

    /// Those of new routes are together under the name that these have in common.
    pub fn figures(&self) -> Vec<LaneFigures> {
        let slow = self.slow_inside();
        let mut figures: Vec<LaneFigures> = Vec::new();
        for lane in self.lanes.iter().filter(|lane| lane.newcomer_of.is_none() || lane.waiting() > 0) {
            let more = lane.figures(self.limits, self.most, slow);
            match figures.iter_mut().find(|known| known.route.name() == more.route.name()) {
                Some(known) => known.add(&more),
                None => figures.push(more),
            }
        }
        figures
    }

    /// What the pool lacks for those who wait. Not for pinned lanes: those get no more whatever the pool has.
    pub fn demand(&self) -> Demand {
        let lanes = || self.lanes.iter().filter(|lane| lane.pinned.is_none());
        let held_back = || lanes().filter(|lane| lane.waiting() > 0);
        let waiting: u32 = held_back().map(Lane::waiting).sum();
        if waiting == 0 {
            return Demand::default();
        }
        let reserve = self.limits.threads.saturating_sub(self.limits.together);
        let largest = held_back().map(|lane| lane.route.inside() + lane.waiting()).max().unwrap_or(0);
        let several = lanes().filter(|lane| lane.route.inside() + lane.waiting() > 0).count() > 1;
        Demand {
            waiting,
            since: held_back().filter_map(|lane| Some(lane.line.front()?.since)).min(),
            threads: (self.slow_inside() + waiting + reserve).max(if several { 2 * largest } else { 0 }),
        }
    }

    /// Requests of slow routes that run.
    pub fn slow_running(&self) -> u32 {
        self.lanes.iter().filter(|lane| lane.is_slow()).map(|lane| lane.route.running()).sum()
    }

    fn find(&mut self, route: &Arc<Route>) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| Arc::ptr_eq(&lane.route, route))
    }

    /// That of the route, which stays: a new one if it has none.
    fn lane(&mut self, route: &Arc<Route>) -> &mut Lane {
        let found = self.lanes.iter().position(|lane| Arc::ptr_eq(&lane.route, route));
        let index = found.unwrap_or(self.lanes.len());
        if found.is_none() {
            self.lanes.push(Lane::new(route));
            route.set_limited();
        }
        self.lanes[index].is_closing = false;
        &mut self.lanes[index]
    }

    fn next_lane(&mut self) -> Option<&mut Lane> {
        let slow = self.slow_inside();
        let (most, limits) = (self.most, self.limits);
        self.lanes.iter_mut().for_each(Lane::skip_gone);
        self.lanes
            .iter_mut()
            .filter(|lane| lane.has_room(limits, most, slow))
            .filter_map(|lane| Some(((lane.inside_together(), lane.line.front()?.arrival), lane)))
            .min_by_key(|(order, _)| *order)
            .map(|(_, lane)| lane)
    }

    /// Requests of all slow routes, and of new ones that are no better until more is known of them.
    fn slow_inside(&self) -> u32 {
        self.lanes.iter().filter(|lane| lane.is_slow()).map(|lane| lane.route.inside()).sum()
    }
}

impl Lane {
    fn new(route: &Arc<Route>) -> Self {
        Self {
            route: Arc::clone(route),
            pinned: None,
            newcomer_of: None,
            line: VecDeque::new(),
            clean_at: CLEAN_FROM,
            is_moving: false,
            is_closing: false,
        }
    }

    /// Whether it counts in what slow routes have together.
    fn is_slow(&self) -> bool {
        self.pinned.is_none() && !self.is_closing && !self.is_promising()
    }

    /// Whether the route is new, and new routes of its kind are as a rule not slow.
    fn is_promising(&self) -> bool {
        self.newcomer_of.as_ref().is_some_and(|common| common.is_known() && !common.is_limited())
    }

    /// Whether it is still needed. If not, its route is limited no more.
    fn stays(&self) -> bool {
        let is_used = self.is_moving || !self.line.is_empty();
        let is_new = self.newcomer_of.is_some();
        let stays = is_used || if is_new { self.route.inside() > 0 } else { !self.is_closing };
        if !stays {
            self.route.set_unlimited();
        }
        stays
    }

    /// `slow`: places that all slow routes have.
    fn limit(&self, limits: Limits, most: u32, slow: u32) -> u32 {
        let is_alone = slow <= self.route.inside() || self.is_promising();
        let unpinned = if is_alone { limits.together } else { limits.each };
        self.pinned.map_or(unpinned, |limit| limit.places(most))
    }

    fn has_room(&self, limits: Limits, most: u32, slow: u32) -> bool {
        let is_within = || {
            self.route.inside() < self.limit(limits, most, slow)
                && (!self.is_slow() || slow < limits.together)
        };
        !self.is_moving && (self.is_closing || self.is_first_of_script() || is_within())
    }

    /// Whether it is new, and so are all that it has in common with others: one request may show what they are like,
    /// though slow ones have all their places and may keep them for ever.
    fn is_first_of_script(&self) -> bool {
        let is_first = |common: &Arc<Route>| !common.is_limited() && common.newcomers() == 0;
        self.route.inside() == 0 && self.newcomer_of.as_ref().is_some_and(is_first)
    }

    /// What a place of it counts as besides. The route that new ones have in common may be new itself.
    fn common(&self) -> Option<Arc<Route>> {
        self.newcomer_of.clone().filter(|common| !Arc::ptr_eq(common, &self.route))
    }

    /// Places of the route, and of those that are new with it.
    fn inside_together(&self) -> u32 {
        self.route.inside().max(self.newcomer_of.as_ref().map_or(0, |common| common.newcomers()))
    }

    fn waiting(&self) -> u32 {
        self.route.held_back()
    }

    fn append(&mut self, arrival: u64, now: Duration, shared: &Arc<Shared>) -> Turn {
        // Those who left from the middle of a line that does not move.
        if self.line.len() >= self.clean_at {
            self.line.retain(|waiting| !waiting.turn.is_closed());
            self.clean_at = CLEAN_FROM.max(2 * self.line.len());
        }
        let (turn, place) = oneshot::channel();
        self.line.push_back(Waiting { arrival, since: now, turn });
        Turn::new(place, Arc::clone(&self.route), Arc::clone(shared))
    }

    fn skip_gone(&mut self) {
        while self.line.front().is_some_and(|waiting| waiting.turn.is_closed()) {
            self.line.pop_front();
        }
    }

    /// Gives a place to the first of the line. Returns it if the request left at this very moment.
    fn let_next_in(&mut self, shared: &Arc<Shared>) -> Option<Place> {
        let next = self.line.pop_front()?;
        let place = Place::from_line(Arc::clone(&self.route), self.common(), Arc::clone(shared));
        let returned = next.turn.send(place).err();
        self.is_moving = returned.is_none();
        returned.inspect(Place::leave_line)
    }

    fn figures(&self, limits: Limits, most: u32, slow: u32) -> LaneFigures {
        LaneFigures {
            route: Arc::clone(self.newcomer_of.as_ref().unwrap_or(&self.route)),
            limit: self.limit(limits, most, slow),
            inside: self.route.inside(),
            waiting: self.waiting(),
        }
    }
}

impl LaneFigures {
    /// Of two lanes of one name.
    fn add(&mut self, other: &Self) {
        self.limit = self.limit.max(other.limit);
        self.inside += other.inside;
        self.waiting += other.waiting;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stays_for_the_fast() {
        let each_and_together = |most| {
            let Limits { each, together, .. } = Limits::protecting(most, 0.0);
            (each, together)
        };
        assert_eq!(each_and_together(0), (1, 1));
        assert_eq!(each_and_together(1), (1, 1));
        assert_eq!(each_and_together(2), (1, 1));
        assert_eq!(each_and_together(3), (1, 2));
        assert_eq!(each_and_together(8), (4, 6));
        assert_eq!(each_and_together(100), (50, 96));
    }

    #[test]
    fn what_the_fast_need_stays_for_them_up_to_half() {
        let together = |load| Limits::protecting(100, load).together;
        assert_eq!(together(1.0), 96);
        assert_eq!(together(4.0), 92);
        assert_eq!(together(25.0), 100 - 35);
        assert_eq!(together(60.0), 50);
        assert_eq!(Limits::protecting(8, 0.94).together, 5);
        assert_eq!(Limits::protecting(1, 10.0).together, 1);
    }

    #[test]
    fn a_pinned_lane_has_a_thread_at_least() {
        assert_eq!(LaneLimit::Threads(3).places(8), 3);
        assert_eq!(LaneLimit::Share(25).places(8), 2);
        assert_eq!(LaneLimit::Share(1).places(8), 1);
        assert_eq!(LaneLimit::Threads(0).places(8), 1);
        assert_eq!(LaneLimit::Share(100).places(u32::MAX), u32::MAX);
    }
}
