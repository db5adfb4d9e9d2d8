//! How many threads a pool needs: one [`Scaler`] for each pool, which is shown what the pool does and says what to
//! change.
//!
//! - **Up** when the head of the queue has waited for a millisecond and the CPU is not the limit: as many threads at
//!   once as the backlog can use, as far as the CPU share of one thread is known ([`cpu`]), the boots in flight do not
//!   crowd the CPU, and memory is left. Near the limit of the CPU it creeps, because only the CPU's idle time tells
//!   whether one more thread is of use.
//! - **Beside slow requests** also when the CPU is the limit: threads that hold requests which take far longer than
//!   those that wait are no capacity for these. The kernel shares the CPU among threads, so a short request has to
//!   have a thread, not a core. Such threads are [not for the lanes](Scaler::threads_for_lanes), or slow requests would
//!   fill them too and call for more.
//! - **A reserve** after a stall, if threads boot slowly, so that the next stall does not wait for a boot.
//! - **Down**, slowly, when threads were not needed at any moment of the last `max_idle` ([`peak`]), or when the CPU
//!   had no idle time for as long and runnable threads crowd it.

mod cpu;
mod decay;
mod decision;
mod peak;
mod stall;

pub(crate) use decay::kept;
pub use decision::{Cause, Decision, Reason};

use cpu::CpuMeter;
use peak::Peak;
use stall::Stall;
use std::time::Duration;

/// Threads beyond the CPUs that a pool may have even when the CPU is the limit, so that one long computation does not
/// block it.
const BEYOND_CORES: u32 = 2;
/// Who has been held back in a lane for so long is on the way to be refused.
const HELD_FOR_LONG: Duration = Duration::from_secs(1);
/// Threads on each CPU that slow requests may share then. It is no crowd yet: what they take is long, and switches few.
const SHARED_CORE: u32 = 4;
/// A thread that boots faster than this is not worth a reserve, and boots do not crowd the CPU.
const SLOW_BOOT: Duration = Duration::from_millis(5);
/// Between two small steps near the limit of the CPU: the effect of the last one must be seen first.
const CREEP: Duration = Duration::from_millis(100);
/// A stall is remembered for so many times `max_idle`: as long, the pool keeps its reserve.
const REMEMBERED: u32 = 12;
/// Threads that may boot at once while it is not known how much memory one takes.
const UNMEASURED_BOOTS: u32 = 4;
/// The part of the memory limit that is left free: requests need more than threads that have just booted.
const MEMORY_RESERVE: u64 = 16;
/// The shortest `max_idle` that is acted upon, or every pause between two requests would be the end of a thread.
const SHORTEST_IDLE: Duration = Duration::from_millis(100);

/// What the operator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `num_threads`, or a worker's `num`: the pool never shrinks below it.
    pub least: u16,
    /// `max_threads`. If it is less than `least`, it counts.
    pub most: u16,
    /// A thread that was not needed for this long ends.
    pub max_idle: Duration,
}

/// What a pool does at this instant.
#[derive(Debug, Clone, Copy)]
pub struct Observation {
    /// Monotonic, since any start.
    pub now: Duration,
    /// Requests in the queue.
    pub waiting: u32,
    /// Requests that wait for their lane, not in the queue.
    pub held_back: u32,
    /// Threads that the pool would need to have a place for all of these at once; zero if none is held back.
    pub lanes_need: u32,
    /// Of the queue's head, or of the first that is held back; zero if nobody waits.
    pub oldest_wait: Duration,
    /// Requests that threads have taken so far.
    pub started: u64,
    pub threads: Threads,
    /// From the last order of a thread until it was ready; zero if not known.
    pub boot_time: Duration,
    /// CPUs that the server may use.
    pub cores: f32,
    /// Busy threads of other pools that are on the CPU or want it.
    pub runnable_elsewhere: u16,
    /// None if there is no limit, or it is not known.
    pub memory: Option<Memory>,
}

/// The threads of a pool. A thread that was ordered counts as booting at once, and one that was told to end does not
/// count any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Threads {
    pub booting: u16,
    /// Of the booting: on the CPU or waiting for it, at this instant.
    pub booting_runnable: u16,
    pub idle: u16,
    pub busy: u16,
    /// Of the busy: on the CPU or waiting for it, at this instant.
    pub runnable: u16,
    /// Of the busy: far beyond their route's service time, and off the CPU. They are no capacity.
    pub stuck: u16,
    /// Of the busy, but not of the stuck: with requests that take far longer than those that wait in the queue.
    pub slow: u16,
}

/// In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub limit: u64,
    /// Of the limit, by everything that counts towards it.
    pub used: u64,
    /// By one thread, as measured; zero if not known.
    pub per_thread: u64,
}

/// The policy for one pool.
#[derive(Debug, Clone)]
pub struct Scaler {
    limits: Limits,
    cpu: CpuMeter,
    stall: Stall,
    peak: Peak,
    /// Threads that were added beside slow requests though the CPU was the limit.
    beside_slow: u32,
    /// The first observation.
    since: Option<Duration>,
    /// The next small step up, and the next step down, come at these times at the earliest.
    creeps_at: Duration,
    shrinks_at: Duration,
}

impl Scaler {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            cpu: CpuMeter::default(),
            stall: Stall::default(),
            peak: Peak::default(),
            beside_slow: 0,
            since: None,
            creeps_at: Duration::ZERO,
            shrinks_at: Duration::ZERO,
        }
    }

    /// By hand: when the operator adds or removes threads, the number that he then has is the new least, so that it is
    /// neither shrunk nor filled up again.
    pub fn set_least(&mut self, least: u16) {
        self.limits.least = least;
    }

    /// What to change now. To be called every millisecond or two while requests wait, and about ten times a second
    /// otherwise. Impossible observations (no CPU, time that runs backwards) change nothing.
    pub fn decide(&mut self, seen: &Observation) -> Decision {
        if !is_possible(seen) || !self.cpu.sample(seen) {
            return Decision::Keep;
        }
        self.since.get_or_insert(seen.now);
        let pool = Pool::of(seen);
        self.stall.observe(seen);
        self.peak.observe(seen.now, pool.active, self.idle_limit());
        self.count_beside_slow(&pool);
        self.fill_up(&pool)
            .or_else(|| self.cut(&pool))
            .or_else(|| self.grow(seen, &pool))
            .or_else(|| self.grow_beside_slow(seen, &pool))
            .or_else(|| self.reserve(seen, &pool))
            .or_else(|| self.thin_out(seen, &pool))
            .or_else(|| self.shrink(seen, &pool))
            .unwrap_or(Decision::Keep)
    }

    /// Of so many threads that take requests, those by which lanes are sized. Not those that were added because slow
    /// requests had the others.
    pub fn threads_for_lanes(&self, ready: u32) -> u32 {
        ready.saturating_sub(self.beside_slow).max(self.least())
    }

    fn fill_up(&self, pool: &Pool) -> Option<Decision> {
        let missing = self.least().saturating_sub(pool.total);
        pool.add(missing.min(pool.memory_for), Cause::BelowLeast)
    }

    fn cut(&self, pool: &Pool) -> Option<Decision> {
        pool.remove(pool.total.saturating_sub(self.most()), Cause::AboveMost)
    }

    /// The queue waits: threads for all of the backlog, or as many as the CPU can feed.
    fn grow(&mut self, seen: &Observation, pool: &Pool) -> Option<Decision> {
        if !self.stall.calls_for_threads(seen) {
            return None;
        }
        let lanes_need = seen.lanes_need.saturating_add(self.beside_slow);
        let wanted = pool.active.saturating_add(seen.waiting).max(lanes_need);
        let leap = wanted.min(self.fed_by_cpu(pool)).saturating_sub(pool.capacity);
        let step = || self.creep(seen, pool).max(self.relieve(seen, pool));
        let count = if leap > 0 { leap } else { step().min(wanted.saturating_sub(pool.capacity)) };
        let cause = Cause::Stall { waited: seen.oldest_wait, blocked: self.cpu.blocked() };
        let decision = self.order(seen, pool, count, cause);
        if decision.is_some() || pool.booting > 0 {
            self.creeps_at = seen.now.saturating_add(CREEP);
            self.cpu.forget_idle_time();
        }
        decision
    }

    /// The queue waits behind requests that take far longer: as many threads as a pool has in any case, beside those.
    fn grow_beside_slow(&mut self, seen: &Observation, pool: &Pool) -> Option<Decision> {
        if pool.slow == 0 || seen.waiting == 0 || !self.stall.calls_for_threads(seen) {
            return None;
        }
        let wanted = (pool.active - pool.slow).saturating_add(seen.waiting).min(pool.cores + BEYOND_CORES);
        let count = wanted.saturating_sub(pool.capacity - pool.slow);
        let cause = Cause::BesideSlow { waited: seen.oldest_wait, slow: pool.slow };
        let decision = self.order(seen, pool, count, cause);
        if let Some(Decision::Add { count, .. }) = decision {
            self.beside_slow += u32::from(count);
        }
        decision
    }

    /// What the CPU can feed, or the pool has in any case, is an ordinary thread.
    fn count_beside_slow(&mut self, pool: &Pool) {
        let ordinary = self.fed_by_cpu(pool).max(self.least());
        self.beside_slow = self.beside_slow.min(pool.total.saturating_sub(ordinary));
    }

    /// Near the limit of the CPU, threads are runnable now all at once and now none of them: as long as the CPU has
    /// idle time, more threads fill it.
    fn creep(&self, seen: &Observation, pool: &Pool) -> u32 {
        if self.is_settled(seen, pool) && self.cpu.has_idle_time() { (pool.capacity / 16).max(1) } else { 0 }
    }

    /// The effect of the last step is there.
    fn is_settled(&self, seen: &Observation, pool: &Pool) -> bool {
        pool.booting == 0 && seen.now >= self.creeps_at
    }

    /// Slow requests that wait for long share the CPU, instead of being refused one after the other.
    fn relieve(&self, seen: &Observation, pool: &Pool) -> u32 {
        let waits = seen.held_back > 0 && seen.oldest_wait >= HELD_FOR_LONG;
        let ordinary = pool.capacity.saturating_sub(self.beside_slow);
        u32::from(waits && self.is_settled(seen, pool) && ordinary < SHARED_CORE * pool.cores)
    }

    /// After a stall, a few threads more than are busy, if a boot takes long.
    fn reserve(&mut self, seen: &Observation, pool: &Pool) -> Option<Decision> {
        if seen.boot_time < SLOW_BOOT || !self.stalled_lately(seen.now) {
            return None;
        }
        let target = (pool.active + spare(pool.active)).min(self.fed_by_cpu(pool));
        self.order(seen, pool, target.saturating_sub(pool.capacity), Cause::Reserve)
    }

    /// Orders `count` threads, or as many as limits, memory and boots in flight allow.
    fn order(&self, seen: &Observation, pool: &Pool, count: u32, cause: Cause) -> Option<Decision> {
        let room = self.most().saturating_sub(pool.total);
        pool.add(count.min(room).min(pool.memory_for).min(boots_allowed(seen, pool)), cause)
    }

    /// No idle time of the CPU for `max_idle`, and runnable threads crowd it: fewer threads do the same work with
    /// fewer switches.
    fn thin_out(&mut self, seen: &Observation, pool: &Pool) -> Option<Decision> {
        let surplus = self.cpu.crowd_for(self.idle_limit())?.min((pool.total / 16).max(1));
        let floor = self.least().max(pool.cores + BEYOND_CORES + pool.stuck + pool.slow);
        self.take_away(seen, pool, surplus.min(pool.total.saturating_sub(floor)), Cause::Crowd)
    }

    fn shrink(&mut self, seen: &Observation, pool: &Pool) -> Option<Decision> {
        let observed = seen.now.saturating_sub(self.since?);
        if observed < self.idle_limit() || seen.anybody_waits() || pool.booting > 0 {
            return None;
        }
        let kept = self.peak.highest() + self.margin(seen);
        let surplus = pool.capacity.saturating_sub(kept).min(pool.total.saturating_sub(self.least()));
        // Where stalls were seen, a few threads more or less would only come and go by turns.
        if self.stalled_lately(seen.now) && surplus <= kept / 4 {
            return None;
        }
        let step = surplus.div_ceil(4).min(pool.idle);
        self.take_away(seen, pool, step, Cause::Idle { surplus, since: self.idle_limit() })
    }

    /// Removes threads, but not in quick succession.
    fn take_away(&mut self, seen: &Observation, pool: &Pool, count: u32, cause: Cause) -> Option<Decision> {
        if seen.now < self.shrinks_at {
            return None;
        }
        let decision = pool.remove(count, cause)?;
        self.shrinks_at = seen.now.saturating_add(self.idle_limit() / 16);
        Some(decision)
    }

    /// What is kept beyond the highest need that was seen, so that a pool under steady load does not shrink and grow by
    /// turns: a number of independent requests varies by its root.
    fn margin(&self, seen: &Observation) -> u32 {
        match self.peak.highest() {
            // As many as `reserve` would add at once.
            0 if seen.boot_time >= SLOW_BOOT && self.stalled_lately(seen.now) => spare(0),
            0 => 0,
            highest => spare(highest).max(1 + highest.isqrt()),
        }
    }

    /// Busy threads that the CPU can feed, as far as is known.
    fn fed_by_cpu(&self, pool: &Pool) -> u32 {
        self.cpu.feeds().max(pool.cores + BEYOND_CORES)
    }

    fn stalled_lately(&self, now: Duration) -> bool {
        self.stall.last().is_some_and(|last| now.saturating_sub(last) < self.idle_limit() * REMEMBERED)
    }

    fn idle_limit(&self) -> Duration {
        self.limits.max_idle.clamp(SHORTEST_IDLE, Duration::from_secs(24 * 3600))
    }

    fn least(&self) -> u32 {
        self.limits.least.min(self.limits.most).into()
    }

    fn most(&self) -> u32 {
        self.limits.most.into()
    }
}

impl Observation {
    fn anybody_waits(&self) -> bool {
        self.waiting > 0 || self.held_back > 0
    }

    /// In the queue and in lanes.
    fn all_waiting(&self) -> u32 {
        self.waiting.saturating_add(self.held_back)
    }
}

/// An observation's threads, added up.
struct Pool {
    booting: u32,
    idle: u32,
    stuck: u32,
    /// Busy, and not stuck.
    active: u32,
    /// Of the active.
    slow: u32,
    /// Threads that take requests, or soon will.
    capacity: u32,
    total: u32,
    /// Whole CPUs.
    cores: u32,
    /// Threads that memory is left for, beyond those that boot.
    memory_for: u32,
}

impl Pool {
    fn of(seen: &Observation) -> Self {
        let threads = seen.threads;
        let (booting, idle, busy) = (threads.booting.into(), threads.idle.into(), u32::from(threads.busy));
        let stuck = u32::from(threads.stuck).min(busy);
        let active = busy - stuck;
        Self {
            booting,
            idle,
            stuck,
            active,
            slow: u32::from(threads.slow).min(active),
            capacity: booting + idle + active,
            total: booting + idle + busy,
            cores: seen.cores.ceil() as u32,
            memory_for: seen.memory.map_or(u32::MAX, |memory| memory_for(&memory, booting)),
        }
    }

    fn add(&self, count: u32, cause: Cause) -> Option<Decision> {
        let count = whole(count)?;
        Some(Decision::Add { count, reason: self.reason(cause, self.total + u32::from(count)) })
    }

    fn remove(&self, count: u32, cause: Cause) -> Option<Decision> {
        let count = whole(count.min(self.total))?;
        Some(Decision::Remove { count, reason: self.reason(cause, self.total - u32::from(count)) })
    }

    fn reason(&self, cause: Cause, to: u32) -> Reason {
        Reason { cause, from: self.total, to }
    }
}

/// Nothing follows from no CPU, or from more than any machine has.
fn is_possible(seen: &Observation) -> bool {
    seen.cores > 0.0 && seen.cores <= f32::from(u16::MAX)
}

/// Boots take CPU time from requests, so that only a few of them may be on the CPU at once. Those that wait for
/// something else (a database, say) are not counted, nor are boots that are over before they could disturb.
fn boots_allowed(seen: &Observation, pool: &Pool) -> u32 {
    match seen.boot_time {
        short if short > Duration::ZERO && short < SLOW_BOOT => u32::MAX,
        _ => (2 * pool.cores).saturating_sub(seen.threads.booting_runnable.into()),
    }
}

fn memory_for(memory: &Memory, booting: u32) -> u32 {
    let left = memory.limit.saturating_sub(memory.limit / MEMORY_RESERVE).saturating_sub(memory.used);
    let threads = match memory.per_thread {
        0 if left == 0 => 0,
        0 => UNMEASURED_BOOTS.into(),
        each => left / each,
    };
    u32::try_from(threads).unwrap_or(u32::MAX).saturating_sub(booting)
}

/// Idle threads beside so many busy ones.
fn spare(busy: u32) -> u32 {
    1 + busy / 8
}

/// None for zero.
fn whole(count: u32) -> Option<u16> {
    (count > 0).then(|| u16::try_from(count).unwrap_or(u16::MAX))
}
