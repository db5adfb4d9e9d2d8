//! Which thread numbers of one engine are in use, by which pool.

use regent_wire::Region;
use regent_wire::control::ThreadStart;
use std::time::Duration;

/// The thread numbers of one generation. Times are of [`regent_wire::clock`].
#[derive(Debug)]
pub struct ThreadTable {
    numbers: Vec<Number>,
    /// Threads that there may be, but for those in whose place others are.
    most: usize,
    /// Each has every so manieth number.
    processes: usize,
}

/// A thread of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadEntry {
    pub index: u16,
    pub stage: ThreadStage,
    pub ordered: Duration,
}

/// How far a thread is, as the server knows it by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadStage {
    Ordered,
    /// It was told to end after its request.
    Retiring,
    /// It ended by itself, as a worker does whose script fails too often, and is not started again.
    Failed,
    /// It does not come back from its request for now; another one has taken its place. If it does, it ends.
    Replaced,
    /// It does not come back from its request; another one has taken its place.
    WrittenOff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Free,
    Taken { pool: u16, stage: ThreadStage, ordered: Duration },
}

impl ThreadTable {
    /// With room for so many threads, and numbers for more, which take the places of those that are written off; for an engine
    /// of so many processes.
    pub fn new(most: usize, numbers: usize, processes: usize) -> Self {
        Self { numbers: vec![Number::Free; numbers.max(most)], most, processes: processes.max(1) }
    }

    /// The process that has this number, whether a thread has it or not.
    pub fn process(&self, index: u16) -> usize {
        usize::from(index) % self.processes
    }

    /// Takes free numbers for so many threads of a pool, or as many as there are: each of the process that has the fewest
    /// threads of the pool and, of several, the fewest at all.
    pub fn order(&mut self, pool: u16, count: u16, now: Duration) -> Vec<ThreadStart> {
        let count = usize::from(count).min(self.free());
        let mut threads = Vec::with_capacity(count);
        for _ in 0..count {
            let Some(index) = self.next_number(pool) else { break };
            self.numbers[index] = Number::Taken { pool, stage: ThreadStage::Ordered, ordered: now };
            threads.push(ThreadStart { index: index as u16, pool });
        }
        threads
    }

    fn next_number(&self, pool: u16) -> Option<usize> {
        let candidate = |process: usize| {
            let numbers = || self.numbers.iter().enumerate().skip(process).step_by(self.processes);
            let (index, _) = numbers().find(|(_, number)| **number == Number::Free)?;
            let taken = || numbers().filter(|(_, number)| **number != Number::Free);
            let is_its = |number: &Number| matches!(number, Number::Taken { pool: of, .. } if *of == pool);
            Some((taken().filter(|(_, number)| is_its(number)).count(), taken().count(), index))
        };
        (0..self.processes).filter_map(candidate).min().map(|(_, _, index)| index)
    }

    /// Threads that there may be beside those that are there.
    pub fn free(&self) -> usize {
        let free = self.numbers.len() - self.in_use();
        free.min(self.most.saturating_sub(self.in_use() - self.replaced()))
    }

    /// Numbers that threads have.
    pub fn in_use(&self) -> usize {
        self.numbers.iter().filter(|number| **number != Number::Free).count()
    }

    /// Threads of all pools that do not come back, or not for now.
    pub fn replaced(&self) -> usize {
        self.stages().filter(|stage| matches!(stage, ThreadStage::Replaced | ThreadStage::WrittenOff)).count()
    }

    /// Whether none is left but some that do not come back.
    pub fn are_all_written_off(&self) -> bool {
        let is_alive =
            |stage| matches!(stage, ThreadStage::Ordered | ThreadStage::Retiring | ThreadStage::Replaced);
        let (mut any, mut others) = (self.stages(), self.stages());
        any.any(|stage| stage == ThreadStage::WrittenOff) && !others.any(is_alive)
    }

    fn stages(&self) -> impl Iterator<Item = ThreadStage> {
        self.numbers.iter().filter_map(|number| match number {
            Number::Free => None,
            Number::Taken { stage, .. } => Some(*stage),
        })
    }

    /// Threads of all pools that were ordered at this moment or later.
    pub fn ordered_since(&self, moment: Duration) -> usize {
        let is_young =
            |number: &&Number| matches!(number, Number::Taken { ordered, .. } if *ordered >= moment);
        self.numbers.iter().filter(is_young).count()
    }

    /// Threads of a pool that are there to stay.
    pub fn size(&self, pool: u16) -> u16 {
        self.count(pool, ThreadStage::Ordered)
    }

    /// Threads of a pool that have ended by themselves.
    pub fn failed(&self, pool: u16) -> u16 {
        self.count(pool, ThreadStage::Failed)
    }

    /// The pool of a thread.
    pub fn pool(&self, index: u16) -> Option<u16> {
        match self.numbers.get(usize::from(index))? {
            Number::Free => None,
            Number::Taken { pool, .. } => Some(*pool),
        }
    }

    /// The threads of a pool, by number.
    pub fn entries(&self, pool: u16) -> impl Iterator<Item = ThreadEntry> {
        self.numbers.iter().enumerate().filter_map(move |(index, number)| match *number {
            Number::Taken { pool: of, stage, ordered } if of == pool => {
                Some(ThreadEntry { index: index as u16, stage, ordered })
            }
            _ => None,
        })
    }

    fn count(&self, pool: u16, stage: ThreadStage) -> u16 {
        self.entries(pool).filter(|entry| entry.stage == stage).count() as u16
    }

    /// Notes that these threads were told to end.
    pub fn retire(&mut self, threads: &[u16]) {
        for &index in threads {
            if let Some(Number::Taken { stage, .. }) = self.numbers.get_mut(usize::from(index)) {
                *stage = ThreadStage::Retiring;
            }
        }
    }

    /// Notes that another takes the place of a thread that does not come back for now. Its pool, if it was there to stay.
    pub fn stand_in(&mut self, index: u16) -> Option<u16> {
        match self.numbers.get_mut(usize::from(index))? {
            Number::Taken { pool, stage: stage @ ThreadStage::Ordered, .. } => {
                *stage = ThreadStage::Replaced;
                Some(*pool)
            }
            _ => None,
        }
    }

    /// Notes that a thread does not come back. Its pool, if it was there to stay.
    pub fn write_off(&mut self, index: u16) -> Option<u16> {
        let Number::Taken { pool, stage, .. } = self.numbers.get_mut(usize::from(index))? else {
            return None;
        };
        match std::mem::replace(stage, ThreadStage::WrittenOff) {
            ThreadStage::Ordered | ThreadStage::Replaced => Some(*pool),
            ThreadStage::Retiring | ThreadStage::Failed | ThreadStage::WrittenOff => None,
        }
    }

    /// Notes that a thread has ended. One that was not told to keeps its number: it has failed, and its pool is returned.
    pub fn ended(&mut self, index: u16, region: &Region) -> Option<u16> {
        let number = self.numbers.get_mut(usize::from(index))?;
        match number {
            Number::Free => None,
            Number::Taken { stage: stage @ ThreadStage::Ordered, pool, .. } => {
                *stage = ThreadStage::Failed;
                Some(*pool)
            }
            Number::Taken { .. } => {
                region.reuse(usize::from(index));
                *number = Number::Free;
                None
            }
        }
    }

    /// Notes that a thread could not be started, for want of something that others may give back. Its pool, if it had
    /// one.
    pub fn not_started(&mut self, index: u16) -> Option<u16> {
        let number = self.numbers.get_mut(usize::from(index))?;
        match std::mem::replace(number, Number::Free) {
            Number::Free => None,
            Number::Taken { pool, .. } => Some(pool),
        }
    }

    /// Makes the numbers of a pool's failed threads free, so that they can be tried again.
    pub fn forget_failed(&mut self, pool: u16) {
        for number in &mut self.numbers {
            if matches!(number, Number::Taken { pool: of, stage: ThreadStage::Failed, .. } if *of == pool) {
                *number = Number::Free;
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
            frame_capacity: 131_072,
        };
        Region::create(geometry).unwrap()
    }

    fn order(table: &mut ThreadTable, pool: u16, count: u16) -> Vec<u16> {
        table.order(pool, count, Duration::ZERO).iter().map(|thread| thread.index).collect()
    }

    #[test]
    fn young_threads_are_those_of_all_pools_that_were_ordered_lately() {
        let mut table = ThreadTable::new(8, 8, 1);
        table.order(0, 2, Duration::from_secs(1));
        table.order(0, 1, Duration::from_secs(2));
        table.order(1, 3, Duration::from_secs(3));
        assert_eq!([0, 2, 3, 4].map(|second| table.ordered_since(Duration::from_secs(second))), [6, 4, 3, 0]);
    }

    #[test]
    fn threads_are_divided_among_the_processes() {
        let mut table = ThreadTable::new(8, 10, 3);
        let of = |table: &ThreadTable, threads: &[u16]| -> Vec<usize> {
            threads.iter().map(|index| table.process(*index)).collect()
        };
        let classic = order(&mut table, 0, 4);
        assert_eq!(of(&table, &classic), [0, 1, 2, 0]);
        let worker = order(&mut table, 1, 2);
        assert_eq!(of(&table, &worker), [1, 2], "those with fewer threads at all");
        let (region, last) = (region(), classic[1]);
        table.retire(&[last]);
        table.ended(last, &region);
        assert_eq!(order(&mut table, 0, 1), [last], "the one with the fewest of the pool");
        assert_eq!((order(&mut table, 0, 9).len(), table.free()), (2, 0));
    }

    #[test]
    fn no_number_is_given_twice_and_no_more_than_there_are() {
        let mut table = ThreadTable::new(4, 4, 1);
        assert_eq!(order(&mut table, 0, 3), [0, 1, 2]);
        assert_eq!(order(&mut table, 1, 3), [3]);
        assert_eq!((table.size(0), table.size(1), table.free()), (3, 1, 0));
    }

    #[test]
    fn a_retired_thread_leaves_the_pool_at_once_and_its_number_when_it_has_ended() {
        let (mut table, region) = (ThreadTable::new(2, 2, 1), region());
        order(&mut table, 0, 2);
        region.retire(0);
        table.retire(&[0]);
        assert_eq!((table.size(0), table.free()), (1, 0));
        assert_eq!(table.ended(0, &region), None);
        assert_eq!((table.free(), region.is_retired(0)), (1, false));
        assert_eq!(order(&mut table, 1, 1), [0]);
    }

    #[test]
    fn a_thread_that_ends_by_itself_is_not_replaced_until_it_is_tried_again() {
        let (mut table, region) = (ThreadTable::new(2, 2, 1), region());
        order(&mut table, 1, 2);
        assert_eq!(table.ended(1, &region), Some(1));
        assert_eq!((table.size(1), table.failed(1), table.free()), (1, 1, 0));
        table.forget_failed(1);
        assert_eq!(order(&mut table, 1, 2), [1]);
    }

    #[test]
    fn a_thread_that_could_not_be_started_leaves_its_number() {
        let mut table = ThreadTable::new(2, 2, 1);
        order(&mut table, 1, 2);
        assert_eq!(table.not_started(1), Some(1));
        assert_eq!((table.size(1), table.free(), table.not_started(1)), (1, 1, None));
    }

    #[test]
    fn a_thread_that_is_written_off_takes_no_room() {
        let (mut table, region) = (ThreadTable::new(2, 3, 1), region());
        assert_eq!(order(&mut table, 1, 3), [0, 1], "there may be two");
        assert_eq!(table.write_off(0), Some(1));
        assert_eq!((table.size(1), table.free(), table.write_off(0)), (1, 1, None));
        assert_eq!(order(&mut table, 1, 3), [2]);
        table.write_off(1);
        assert_eq!((table.size(1), table.free()), (1, 0), "there are no more numbers");
        assert!(!table.are_all_written_off());
        table.retire(&[2]);
        table.ended(2, &region);
        assert!(table.are_all_written_off());
        assert_eq!(table.ended(0, &region), None, "it came back after all, and was told to end");
        assert_eq!((table.in_use(), table.replaced()), (1, 1));
    }

    #[test]
    fn a_thread_that_another_stands_in_for_may_come_back_and_ends() {
        let (mut table, region) = (ThreadTable::new(1, 2, 1), region());
        order(&mut table, 1, 1);
        region.retire(0);
        assert_eq!((table.stand_in(0), table.stand_in(0)), (Some(1), None));
        assert_eq!((order(&mut table, 1, 2), table.size(1)), (vec![1], 1));
        assert!(!table.are_all_written_off());
        assert_eq!((table.ended(0, &region), table.in_use(), region.is_retired(0)), (None, 1, false));
        assert_eq!((table.stand_in(1), table.write_off(1), table.replaced()), (Some(1), Some(1), 1));
        assert!(table.are_all_written_off());
    }

    #[test]
    fn an_engine_can_say_anything() {
        let (mut table, region) = (ThreadTable::new(2, 2, 1), region());
        table.ended(7, &region);
        table.ended(1, &region);
        assert_eq!(table.free(), 2);
    }
}
