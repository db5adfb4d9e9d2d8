//! What the policy has to know beside the threads of a pool: CPUs, memory, the queue, the lanes.

use super::ScaledPool;
use super::thread_sample::ThreadSample;
use crate::machine;
use crate::supervisor::generation::Generation;
use regent_dispatch::lanes::{Demand, Lanes};
use regent_dispatch::scaling::{Memory, Observation};
use std::time::Duration;

/// How long a reading of the machine's limits and memory is good for.
const MACHINE_READING: Duration = Duration::from_millis(250);
/// Threads that were ordered within this time may not have their memory yet, or have it since the last reading.
const YOUNG: Duration = Duration::from_millis(500);
/// Processes that are looked at to know how much memory one takes.
const SAMPLE: usize = 8;
/// Bytes that such a thread is expected to come to take, if those that are there take less: a thread that has not run
/// a request yet says nothing.
const YOUNG_MEMORY: u64 = 16 << 20;

/// The machine, read now and then.
#[derive(Debug)]
pub(super) struct Readings {
    read: Option<Duration>,
    cores: f32,
    memory: Option<machine::Memory>,
    /// Bytes that a thread of the engine takes on average; 0 if it is not known.
    per_thread: u64,
}

impl Readings {
    /// Reads the machine with the next call of [`Readings::refresh`].
    pub fn new() -> Self {
        Self { read: None, cores: machine::cpus(), memory: None, per_thread: 0 }
    }

    /// The engine has another process.
    pub fn forget(&mut self) {
        self.read = None;
    }

    /// Reads the machine anew if that is due.
    pub fn refresh(&mut self, now: Duration, generation: &Generation) {
        if self.read.is_some_and(|read| now < read + MACHINE_READING) {
            return;
        }
        self.read = Some(now);
        self.cores = machine::cpus();
        self.memory = machine::memory();
        self.per_thread = per_thread(generation);
    }

    /// CPUs that the server may use.
    pub fn cores(&self) -> f32 {
        self.cores
    }

    pub fn observation(
        &self,
        generation: &Generation,
        index: usize,
        now: Duration,
        sample: &ThreadSample,
        pool: &ScaledPool,
        runnable_elsewhere: u16,
    ) -> Observation {
        let region = generation.region();
        let waiting = generation.backend.waiting(index);
        // What only clients that have left wait for is nobody's wait.
        let oldest = region.oldest(index).filter(|_| waiting > 0);
        Observation {
            now,
            waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
            held_back: 0,
            lanes_need: 0,
            oldest_wait: oldest.map_or(Duration::ZERO, |since| now.saturating_sub(since)),
            started: pool.taken_before.saturating_add(region.taken(index)),
            threads: sample.threads,
            boot_time: pool.boot_time,
            cores: self.cores,
            runnable_elsewhere,
            memory: self.memory.map(|memory| self.expected(memory, generation, now)),
        }
    }

    /// With what the threads that were added lately will come to take. Without that, a pool that doubles every few
    /// milliseconds is far beyond the limit when the first of its memory shows.
    fn expected(&self, memory: machine::Memory, generation: &Generation, now: Duration) -> Memory {
        let measured = self.per_thread;
        let each = measured.max(YOUNG_MEMORY);
        let young = generation.threads.ordered_since(now.saturating_sub(YOUNG)) as u64;
        Memory {
            limit: memory.limit,
            used: memory.used.saturating_add(young.saturating_mul(each)),
            per_thread: if measured == 0 { 0 } else { each },
        }
    }
}

/// Of threads that are processes, some are looked at; of others, what their processes have beyond what they had before them.
fn per_thread(generation: &Generation) -> u64 {
    let region = generation.region();
    let numbers = 0..region.geometry().threads as u16;
    let threads = numbers.filter_map(|index| {
        let tid = region.thread_view(usize::from(index)).tid;
        Some((generation.process_of(index).pid?, tid)).filter(|_| tid != 0)
    });
    let alone: Vec<u64> =
        threads.take(SAMPLE).filter_map(|(pid, tid)| machine::anonymous(pid, tid)).collect();
    if !alone.is_empty() {
        return alone.iter().sum::<u64>() / alone.len() as u64;
    }
    let grown = generation.processes.iter().map(|process| {
        let all = process.pid.and_then(machine::resident);
        all.zip(process.bare_memory).map_or(0, |(all, bare)| all.saturating_sub(bare))
    });
    grown.sum::<u64>().checked_div(generation.threads.in_use() as u64).unwrap_or_default()
}

/// Adds what the pool's lanes know: who waits there, and which requests are slow however long they have run.
pub(super) fn see_lanes(seen: &mut Observation, lanes: &Lanes) {
    let Demand { waiting, since, threads } = lanes.demand();
    let waited = since.map_or(Duration::ZERO, |since| seen.now.saturating_sub(since));
    seen.held_back = waiting;
    seen.lanes_need = threads;
    seen.oldest_wait = seen.oldest_wait.max(waited);
    let slow = u16::try_from(lanes.slow_running()).unwrap_or(u16::MAX);
    seen.threads.slow = seen.threads.slow.max(slow);
}
