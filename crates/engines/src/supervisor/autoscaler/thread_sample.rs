//! What the threads of a pool do at one moment.

use crate::machine::ThreadStates;
use crate::supervisor::generation::Generation;
use crate::supervisor::stuck;
use crate::thread_table::{ThreadEntry, ThreadStage};
use regent_dispatch::scaling::Threads;
use regent_wire::{ThreadState, ThreadView};
use std::time::Duration;

/// A request that has run for longer, and for so many times what one that waits will take, is no thread for that.
const SLOW_LEAST: Duration = Duration::from_millis(500);
const SLOW_TIMES: u32 = 4;

/// The threads of a pool at one moment.
#[derive(Default)]
pub(super) struct ThreadSample {
    pub threads: Threads,
    /// Kernel ids, of the process and its own, of the busy ones, and of the booting ones.
    busy: Vec<((u32, u32), ThreadView)>,
    booting: Vec<(u32, u32)>,
    taken: u64,
    spent: Duration,
    /// Boots of it have failed.
    has_failed: bool,
    /// When the youngest thread that has been ready was ordered, and became ready.
    pub youngest: Option<(Duration, Duration)>,
}

impl ThreadSample {
    pub fn of(generation: &Generation, pool: u16) -> Self {
        let mut sample = Self::default();
        for entry in generation.threads.entries(pool) {
            match entry.stage {
                ThreadStage::Ordered => {
                    let pid = generation.process_of(entry.index).pid.unwrap_or_default();
                    sample.add(&entry, pid, generation.region().thread_view(usize::from(entry.index)));
                }
                ThreadStage::Retiring | ThreadStage::Replaced | ThreadStage::WrittenOff => {}
                ThreadStage::Failed => sample.has_failed = true,
            }
        }
        sample
    }

    /// Whether the pool's script does not boot: more threads would fail as well.
    pub fn does_not_boot(&self) -> bool {
        self.has_failed && self.threads.idle + self.threads.busy == 0
    }

    /// The busy ones, by the kernel's ids of the process and the thread, and since when each is.
    pub fn busy(&self) -> impl Iterator<Item = (u32, u32, Duration)> {
        self.busy.iter().map(|((pid, thread), view)| (*pid, *thread, view.since))
    }

    fn add(&mut self, entry: &ThreadEntry, pid: u32, view: ThreadView) {
        match view.state {
            ThreadState::Absent | ThreadState::Booting | ThreadState::Backoff => {
                self.threads.booting += 1;
                self.booting.push((pid, view.tid));
                self.has_failed |= view.restarts > 0;
            }
            ThreadState::Idle => self.threads.idle += 1,
            ThreadState::Busy => {
                self.threads.busy += 1;
                self.busy.push(((pid, view.tid), view));
            }
        }
        self.taken = self.taken.saturating_add(view.requests);
        self.spent = self.spent.saturating_add(view.busy);
        let is_ready = matches!(view.state, ThreadState::Idle | ThreadState::Busy);
        if is_ready && self.youngest.is_none_or(|(ordered, _)| entry.ordered > ordered) {
            self.youngest = Some((entry.ordered, view.since));
        }
    }

    /// Requests that the threads have taken so far, and the time that they have spent on those that have ended.
    pub fn work(&self) -> (u64, Duration) {
        (self.taken, self.spent)
    }

    /// Finds out which of the threads want the CPU at this moment. `shortest_queued`: the shortest time that one of the
    /// requests that wait is expected to take.
    pub fn read_states(&mut self, states: &mut ThreadStates, now: Duration, shortest_queued: Duration) {
        let slow_from = (shortest_queued * SLOW_TIMES).max(SLOW_LEAST);
        let ids: Vec<(u32, u32)> =
            self.busy.iter().map(|(ids, _)| *ids).chain(self.booting.iter().copied()).collect();
        let runnable = states.runnable(&ids);
        let (busy, booting) = runnable.split_at(self.busy.len());
        let count = |flags: &[bool]| flags.iter().filter(|runnable| **runnable).count() as u16;
        self.threads.runnable = count(busy);
        self.threads.booting_runnable = count(booting);
        let usual = stuck::usual(self.busy.iter().map(|(_, view)| view));
        let is_stuck = |view: &ThreadView| stuck::is_stuck(view, usual, now);
        let blocked = self.busy.iter().zip(busy).filter(|(_, runnable)| !**runnable);
        self.threads.stuck = blocked.filter(|((_, view), _)| is_stuck(view)).count() as u16;
        let long =
            self.busy.iter().filter(|(_, view)| now.saturating_sub(view.since) > slow_from).count() as u16;
        self.threads.slow = long.saturating_sub(self.threads.stuck);
    }
}
