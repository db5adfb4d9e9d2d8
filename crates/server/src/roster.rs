//! Which thread numbers of one engine are in use, by which pool.

use regent_wire::Region;
use regent_wire::control::ThreadStart;
use std::time::Duration;

/// The thread numbers of one generation. Times are of [`regent_wire::clock`].
#[derive(Debug)]
pub(crate) struct Roster {
    places: Vec<Place>,
}

/// A thread of the roster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub index: u16,
    pub stage: MemberStage,
    pub ordered: Duration,
}

/// How far a thread is, as the server knows it by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberStage {
    Ordered,
    /// It was told to end after its request.
    Retiring,
    /// It ended by itself, as a worker does whose script fails too often, and is not started again.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    Taken { pool: u16, stage: MemberStage, ordered: Duration },
}

impl Roster {
    /// With room for so many threads.
    pub fn new(most: usize) -> Self {
        Self { places: vec![Place::Free; most] }
    }

    /// Takes free numbers for so many threads of a pool, or as many as there are.
    pub fn order(&mut self, pool: u16, count: u16, now: Duration) -> Vec<ThreadStart> {
        let free = self.places.iter_mut().enumerate().filter(|(_, place)| **place == Place::Free);
        free.take(usize::from(count))
            .map(|(index, place)| {
                *place = Place::Taken { pool, stage: MemberStage::Ordered, ordered: now };
                ThreadStart { index: index as u16, pool }
            })
            .collect()
    }

    /// Numbers that no thread has.
    pub fn free(&self) -> usize {
        self.places.iter().filter(|place| **place == Place::Free).count()
    }

    /// Numbers that threads have.
    pub fn in_use(&self) -> usize {
        self.places.len() - self.free()
    }

    /// Threads of all pools that were ordered at this moment or later.
    pub fn ordered_since(&self, moment: Duration) -> usize {
        let is_young = |place: &&Place| matches!(place, Place::Taken { ordered, .. } if *ordered >= moment);
        self.places.iter().filter(is_young).count()
    }

    /// Threads of a pool that are there to stay.
    pub fn size(&self, pool: u16) -> u16 {
        self.count(pool, MemberStage::Ordered)
    }

    /// Threads of a pool that have ended by themselves.
    pub fn failed(&self, pool: u16) -> u16 {
        self.count(pool, MemberStage::Failed)
    }

    /// The threads of a pool, by number.
    pub fn members(&self, pool: u16) -> impl Iterator<Item = Member> {
        self.places.iter().enumerate().filter_map(move |(index, place)| match *place {
            Place::Taken { pool: of, stage, ordered } if of == pool => {
                Some(Member { index: index as u16, stage, ordered })
            }
            _ => None,
        })
    }

    fn count(&self, pool: u16, stage: MemberStage) -> u16 {
        self.members(pool).filter(|member| member.stage == stage).count() as u16
    }

    /// Notes that these threads were told to end.
    pub fn retire(&mut self, threads: &[u16]) {
        for &index in threads {
            if let Some(Place::Taken { stage, .. }) = self.places.get_mut(usize::from(index)) {
                *stage = MemberStage::Retiring;
            }
        }
    }

    /// Notes that a thread has ended. One that was not told to keeps its number: it has failed, and its pool is returned.
    pub fn ended(&mut self, index: u16, region: &Region) -> Option<u16> {
        let place = self.places.get_mut(usize::from(index))?;
        match place {
            Place::Free => None,
            Place::Taken { stage: stage @ MemberStage::Ordered, pool, .. } => {
                *stage = MemberStage::Failed;
                Some(*pool)
            }
            Place::Taken { .. } => {
                region.reuse(usize::from(index));
                *place = Place::Free;
                None
            }
        }
    }

    /// Notes that a thread could not be started, for want of something that others may give back. Its pool, if it had
    /// one.
    pub fn not_started(&mut self, index: u16) -> Option<u16> {
        let place = self.places.get_mut(usize::from(index))?;
        match std::mem::replace(place, Place::Free) {
            Place::Free => None,
            Place::Taken { pool, .. } => Some(pool),
        }
    }

    /// Makes the numbers of a pool's failed threads free, so that they can be tried again.
    pub fn forget_failed(&mut self, pool: u16) {
        for place in &mut self.places {
            if matches!(place, Place::Taken { pool: of, stage: MemberStage::Failed, .. } if *of == pool) {
                *place = Place::Free;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_wire::Geometry;

    fn region() -> Region {
        let geometry = Geometry {
            io_threads: 1,
            slots_per_io: 64,
            pools: 2,
            threads: 4,
            head_capacity: 4096,
            request_capacity: 4096,
            response_capacity: 4096,
        };
        Region::create(geometry).unwrap()
    }

    fn order(roster: &mut Roster, pool: u16, count: u16) -> Vec<u16> {
        roster.order(pool, count, Duration::ZERO).iter().map(|thread| thread.index).collect()
    }

    #[test]
    fn young_threads_are_those_of_all_pools_that_were_ordered_lately() {
        let mut roster = Roster::new(8);
        roster.order(0, 2, Duration::from_secs(1));
        roster.order(0, 1, Duration::from_secs(2));
        roster.order(1, 3, Duration::from_secs(3));
        assert_eq!(
            [0, 2, 3, 4].map(|second| roster.ordered_since(Duration::from_secs(second))),
            [6, 4, 3, 0]
        );
    }

    #[test]
    fn no_number_is_given_twice_and_no_more_than_there_are() {
        let mut roster = Roster::new(4);
        assert_eq!(order(&mut roster, 0, 3), [0, 1, 2]);
        assert_eq!(order(&mut roster, 1, 3), [3]);
        assert_eq!((roster.size(0), roster.size(1), roster.free()), (3, 1, 0));
    }

    #[test]
    fn a_retired_thread_leaves_the_pool_at_once_and_its_number_when_it_has_ended() {
        let (mut roster, region) = (Roster::new(2), region());
        order(&mut roster, 0, 2);
        region.retire(0);
        roster.retire(&[0]);
        assert_eq!((roster.size(0), roster.free()), (1, 0));
        assert_eq!(roster.ended(0, &region), None);
        assert_eq!((roster.free(), region.is_retired(0)), (1, false));
        assert_eq!(order(&mut roster, 1, 1), [0]);
    }

    #[test]
    fn a_thread_that_ends_by_itself_is_not_replaced_until_it_is_tried_again() {
        let (mut roster, region) = (Roster::new(2), region());
        order(&mut roster, 1, 2);
        assert_eq!(roster.ended(1, &region), Some(1));
        assert_eq!((roster.size(1), roster.failed(1), roster.free()), (1, 1, 0));
        roster.forget_failed(1);
        assert_eq!(order(&mut roster, 1, 2), [1]);
    }

    #[test]
    fn a_thread_that_could_not_be_started_leaves_its_number() {
        let mut roster = Roster::new(2);
        order(&mut roster, 1, 2);
        assert_eq!(roster.not_started(1), Some(1));
        assert_eq!((roster.size(1), roster.free(), roster.not_started(1)), (1, 1, None));
    }

    #[test]
    fn an_engine_can_say_anything() {
        let (mut roster, region) = (Roster::new(2), region());
        roster.ended(7, &region);
        roster.ended(1, &region);
        assert_eq!(roster.free(), 2);
    }
}
