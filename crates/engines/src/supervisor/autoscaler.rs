//! How many threads the pools have, and how many of them are at work at once: observes them, asks the policies, and
//! carries out what they decide.

mod at_work;
mod long_computations;
mod readings;
mod thread_sample;

use super::generation::Generation;
use crate::machine::ThreadStates;
use crate::plan::PoolPlan;
use crate::pools::Pools;
use crate::thread_table::{ThreadEntry, ThreadStage};
use at_work::AtWork;
use readings::{Readings, see_lanes};
use regent_dispatch::circuits::Phase;
use regent_dispatch::scaling::{Decision, Limits, Reason, Scaler};
use regent_metrics::Direction;
use regent_wire::{ThreadState, ThreadView, clock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use thread_sample::ThreadSample;

/// Between two looks while requests wait: the shortest, and the longest, which it comes to when the looks change nothing.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(20);
/// The longest as long as threads are kept asleep: those at work may all wait for something else at any time.
const LONGEST_LOOK_AT_SLEEPERS: Duration = Duration::from_millis(4);
/// Between two looks while none waits.
const REST: Duration = Duration::from_millis(100);
/// Before more threads are ordered for a pool of which one could not be started: the system has no room for it.
const PAUSE: Duration = Duration::from_secs(5);
/// Changes that are remembered for lists.
const REMEMBERED: usize = 256;

/// The pools of a server, over all generations of its engine.
pub(super) struct Autoscaler {
    pools: Vec<ScaledPool>,
    shared: Arc<Pools>,
    machine: Readings,
    events: VecDeque<ScaleEvent>,
    look_after: Duration,
}

/// A change of a pool's size.
#[derive(Debug, Clone)]
pub struct ScaleEvent {
    pub at: SystemTime,
    /// An index into the pools.
    pub pool: usize,
    pub from: u32,
    pub to: u32,
    pub reason: String,
}

/// What is kept of one pool.
struct ScaledPool {
    plan: PoolPlan,
    /// What the operator set by hand, or the plan's.
    least: u16,
    scaler: Scaler,
    at_work: AtWork,
    states: ThreadStates,
    /// Requests that the threads of earlier generations had taken.
    taken_before: u64,
    /// From the last order of a thread until it was ready; zero if not known.
    boot_time: Duration,
    /// When the threads were ordered whose boot is being measured.
    measured: Option<Duration>,
    /// No threads are added before.
    paused_until: Duration,
}

impl Autoscaler {
    pub fn new(plans: &[PoolPlan], shared: Arc<Pools>, max_idle: Duration) -> Self {
        let pools = plans.iter().map(|plan| ScaledPool::new(plan.clone(), max_idle)).collect();
        Self { pools, shared, machine: Readings::new(), events: VecDeque::new(), look_after: SHORTEST_LOOK }
    }

    /// Whether any pool can have another size than it has at the beginning, or more threads than there are CPUs.
    pub fn is_possible(&self) -> bool {
        let cores = self.machine.cores();
        self.pools.iter().any(|pool| pool.is_flexible() || f32::from(pool.plan.most) > cores)
    }

    /// Threads that each pool of the next generation begins with: as many as it has in this one. None, where they would kill the
    /// engine and no older ones serve in their place.
    pub fn sizes(&self, current: Option<&Generation>) -> Vec<u16> {
        let size = |(index, pool): (usize, &ScaledPool)| {
            let now = current.map_or(0, |generation| generation.threads.size(index as u16));
            let serves = now > 0 && current.is_some_and(Generation::is_alive);
            match self.shared.circuits.boot_phase(index) {
                Some(Phase::Open) if !serves => 0,
                _ => now.clamp(pool.least, pool.plan.most.max(pool.least)),
            }
        };
        self.pools.iter().enumerate().map(size).collect()
    }

    /// A generation with memory of its own takes over: its count of taken requests begins anew.
    pub fn begin_generation(&mut self, old: &Generation) {
        for (index, pool) in self.pools.iter_mut().enumerate() {
            pool.taken_before = pool.taken_before.saturating_add(old.region().taken(index));
            pool.states = ThreadStates::default();
            pool.measured = None;
        }
        self.machine.forget();
    }

    /// Gives `next` the sizes of `old`, which may have changed since it was launched.
    pub fn carry_over(&mut self, old: &Generation, next: &mut Generation) {
        for (pool, size) in self.sizes(Some(old)).into_iter().enumerate() {
            let has = next.threads.size(pool as u16);
            self.start(next, pool, size.saturating_sub(has), clock::now());
            self.retire(next, pool, has.saturating_sub(size));
        }
    }

    /// Looks at all pools and changes what the policy wants changed. Returns how long until the next look; `None`: when
    /// somebody calls, or after [`Autoscaler::idle`].
    pub fn tick(&mut self, generation: &mut Generation) -> Option<Duration> {
        let now = clock::now();
        self.machine.refresh(now, generation);
        let samples = self.samples(generation, now);
        let runnable: u16 = samples.iter().map(|sample| sample.threads.runnable).sum();
        let (mut changed, mut pressed, mut sleepers) = (false, false, false);
        let circuits = Arc::clone(&self.shared.circuits);
        for (index, sample) in samples.iter().enumerate() {
            let ready = u32::from(sample.threads.idle + sample.threads.busy);
            let shared = self.shared.get(index);
            shared.set_threads(ready);
            let pool = &mut self.pools[index];
            let waiting = generation.backend.waiting(index);
            if waiting > 0 {
                sleepers |=
                    pool.at_work.adjust(generation.region(), index, sample, self.machine.cores(), now);
            }
            pressed |= waiting > 0;
            if !pool.is_flexible() || sample.does_not_boot() || circuits.boot_phase(index).is_some() {
                continue;
            }
            pool.measure_boot(sample);
            let elsewhere = runnable - sample.threads.runnable;
            let mut seen = self.machine.observation(generation, index, now, sample, pool, elsewhere);
            shared.lanes.tick(now);
            see_lanes(&mut seen, &shared.lanes);
            pressed |= seen.held_back > 0 || sample.threads.booting > 0;
            let decision = pool.scaler.decide(&seen);
            shared.lanes.set_threads(pool.scaler.threads_for_lanes(ready), now);
            changed |= self.carry_out(generation, index, decision, now);
        }
        let longest = if sleepers { LONGEST_LOOK_AT_SLEEPERS } else { LONGEST_LOOK };
        self.look_after = match changed {
            true => SHORTEST_LOOK,
            false => (self.look_after * 3 / 2).clamp(SHORTEST_LOOK, longest),
        };
        pressed.then_some(self.look_after)
    }

    /// Tells those who let requests in how many threads the pools of a fixed size have. They have others than at the
    /// beginning when some were added or removed by hand, or have failed.
    pub fn note_fixed_sizes(&self, generation: &Generation) {
        let now = clock::now();
        for (index, _) in self.pools.iter().enumerate().filter(|(_, pool)| !pool.is_flexible()) {
            self.shared.get(index).resize(u32::from(generation.threads.size(index as u16)), now);
        }
    }

    /// A thread of the pool has ended: what is kept of threads is let go of but for those that are there.
    pub fn forget_ended(&mut self, generation: &Generation) {
        for (index, pool) in self.pools.iter_mut().enumerate() {
            let entries = generation.threads.entries(index as u16);
            let threads: Vec<u32> =
                entries.map(|entry| generation.region().thread_view(usize::from(entry.index)).tid).collect();
            pool.states.keep_only(&threads);
        }
    }

    /// A thread of the pool could not be started.
    pub fn pause(&mut self, pool: usize) {
        self.pools[pool].paused_until = clock::now() + PAUSE;
    }

    /// Starts a thread in the place of one that is written off.
    pub fn make_up(&mut self, generation: &mut Generation, pool: usize) {
        self.start(generation, pool, 1, clock::now());
    }

    /// Starts what the pools lack of their least: of those that were to take the places of others for some there was no number,
    /// as each that does not come back has one until it ends, and some could not be started. Returns how many were started.
    pub fn fill_up(&mut self, generation: &mut Generation) -> u16 {
        let (now, mut started) = (clock::now(), 0);
        for pool in 0..self.pools.len() {
            if now >= self.pools[pool].paused_until && self.shared.circuits.boot_phase(pool).is_none() {
                let missing = self.wanted(generation, pool) - generation.threads.size(pool as u16);
                started += self.start(generation, pool, missing, now);
            }
        }
        started
    }

    /// The time between two looks while nobody waits.
    pub fn idle(&mut self) -> Duration {
        self.look_after = SHORTEST_LOOK;
        REST
    }

    /// By hand: adds so many threads, all of them or none.
    pub fn add(&mut self, generation: &mut Generation, pool: usize, count: u16) -> Result<u16, (u16, u16)> {
        let (has, size) = (generation.threads.size(pool as u16), self.wanted(generation, pool));
        let (missing, most) = (size - has, self.pools[pool].plan.most);
        let failed = usize::from(generation.threads.failed(pool as u16));
        let free = (generation.threads.free() + failed).saturating_sub(usize::from(missing));
        let room = free.min(usize::from(most.saturating_sub(size)));
        if usize::from(count) > room {
            return Err((size, size + room as u16));
        }
        generation.threads.forget_failed(pool as u16);
        self.start(generation, pool, missing + count, clock::now());
        self.set_by_hand(pool, size, size + count, "added by hand");
        Ok(size + count)
    }

    /// By hand: takes so many threads away, all of them or none; one stays.
    pub fn remove(&mut self, generation: &mut Generation, pool: usize, count: u16) -> Result<u16, u16> {
        let (has, size) = (generation.threads.size(pool as u16), self.wanted(generation, pool));
        if count >= size {
            return Err(size);
        }
        self.retire(generation, pool, has.saturating_sub(size - count));
        self.set_by_hand(pool, size, size - count, "removed by hand");
        Ok(size - count)
    }

    /// The size of a pool with the threads that it lacks of its least, because those that end have their places still.
    fn wanted(&self, generation: &Generation, pool: usize) -> u16 {
        let failed = generation.threads.failed(pool as u16);
        generation.threads.size(pool as u16).max(self.pools[pool].least.saturating_sub(failed))
    }

    pub fn events(&self) -> impl Iterator<Item = &ScaleEvent> {
        self.events.iter()
    }

    fn samples(&mut self, generation: &Generation, now: Duration) -> Vec<ThreadSample> {
        let mut samples: Vec<ThreadSample> =
            (0..self.pools.len()).map(|pool| ThreadSample::of(generation, pool as u16)).collect();
        for ((pool, shared), sample) in self.pools.iter_mut().zip(self.shared.iter()).zip(&mut samples) {
            sample.read_states(&mut pool.states, now, shared.lanes.shortest_queued());
        }
        samples
    }

    fn carry_out(
        &mut self,
        generation: &mut Generation,
        pool: usize,
        decision: Decision,
        now: Duration,
    ) -> bool {
        match decision {
            Decision::Keep => false,
            Decision::Add { .. } if now < self.pools[pool].paused_until => false,
            Decision::Add { count, reason } => {
                let started = self.start(generation, pool, count, now);
                self.note(pool, &reason, started);
                started > 0
            }
            Decision::Remove { count, reason } => {
                let retired = self.retire(generation, pool, count);
                self.note(pool, &reason, retired);
                retired > 0
            }
        }
    }

    fn start(&mut self, generation: &mut Generation, pool: usize, count: u16, now: Duration) -> u16 {
        let threads = generation.threads.order(pool as u16, count, now);
        let started = threads.len() as u16;
        if started > 0 {
            generation.start_threads(threads);
            self.pools[pool].measured = Some(now);
        }
        started
    }

    /// Those that have been idle for the longest first, then those that boot, then the busy ones.
    fn retire(&mut self, generation: &mut Generation, pool: usize, count: u16) -> u16 {
        let mut candidates: Vec<(u8, Duration, u16)> = generation
            .threads
            .entries(pool as u16)
            .filter(|entry| entry.stage == ThreadStage::Ordered)
            .map(|entry| rank(&entry, generation.region().thread_view(usize::from(entry.index))))
            .collect();
        candidates.sort_unstable();
        let threads: Vec<u16> =
            candidates.iter().take(usize::from(count)).map(|(_, _, index)| *index).collect();
        generation.threads.retire(&threads);
        for &thread in &threads {
            generation.region().retire(usize::from(thread));
        }
        threads.len() as u16
    }

    fn note(&mut self, pool: usize, reason: &Reason, count: u16) {
        if count == 0 {
            return;
        }
        let name = &self.pools[pool].plan.name;
        tracing::info!(pool = name, reason = %reason, "threads were scaled");
        self.remember(pool, reason.from, reason.to, reason.cause.to_string());
    }

    fn set_by_hand(&mut self, pool: usize, from: u16, to: u16, reason: &str) {
        self.pools[pool].least = to;
        self.pools[pool].scaler.set_least(to);
        tracing::info!(pool = self.pools[pool].plan.name, from, to, reason, "threads were scaled");
        self.remember(pool, u32::from(from), u32::from(to), reason.to_owned());
    }

    fn remember(&mut self, pool: usize, from: u32, to: u32, reason: String) {
        if self.events.len() == REMEMBERED {
            self.events.pop_front();
        }
        let direction = if to > from { Direction::Up } else { Direction::Down };
        self.shared.registry.scaled(self.shared.get(pool).id, direction);
        self.events.push_back(ScaleEvent { at: SystemTime::now(), pool, from, to, reason });
    }
}

impl ScaledPool {
    fn new(plan: PoolPlan, max_idle: Duration) -> Self {
        let limits = Limits { least: plan.least, most: plan.most, max_idle };
        Self {
            least: plan.least,
            plan,
            scaler: Scaler::new(limits),
            at_work: AtWork::default(),
            states: ThreadStates::default(),
            taken_before: 0,
            boot_time: Duration::ZERO,
            measured: None,
            paused_until: Duration::ZERO,
        }
    }

    fn is_flexible(&self) -> bool {
        self.plan.most > self.plan.least
    }

    /// Of the last threads that were ordered: the first of them that is ready tells.
    fn measure_boot(&mut self, sample: &ThreadSample) {
        if let (Some(ordered), Some((youngest, ready))) = (self.measured, sample.youngest)
            && youngest >= ordered
        {
            self.boot_time = ready.saturating_sub(ordered);
            self.measured = None;
        }
    }
}

/// By which threads are taken away: how little it disturbs, since when, and the number.
fn rank(entry: &ThreadEntry, view: ThreadView) -> (u8, Duration, u16) {
    let class = match view.state {
        ThreadState::Idle => 0,
        ThreadState::Absent | ThreadState::Booting | ThreadState::Backoff => 1,
        ThreadState::Busy => 2,
    };
    (class, view.since, entry.index)
}
