//! When an engine as a whole does nothing any more: its process was stopped or has become another program, or its threads
//! wait for what never comes. It is not dead, so nothing tells the supervisor.
//!
//! Time alone proves nothing: the machine may be crowded, and the server or the whole machine may have been frozen. So a
//! symptom counts only if what should act could act (it waits neither for the CPU nor for the disk nor for a debugger),
//! and only if several looks in a row find it, between which the server itself was awake. An engine that has crashed and
//! writes a core dump is given much longer, since its end would cut off the dump.

use super::generation::Generation;
use crate::machine::{self, Halt, Wait};
use crate::thread_table::ThreadStage;
use regent_wire::control::Order;
use regent_wire::{ThreadState, clock};
use std::fmt;
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);
/// So many looks in a row must have found a symptom.
const LOOKS: u32 = 5;
/// The same while the program is being loaded.
const LOOKS_AT_START: u32 = 120;
/// The same while a core dump is written: a minute. It may go to a program that hangs.
const LOOKS_AT_DUMP: u32 = 240;

/// When to look: what was missed while the server itself could not run tells nothing.
pub(super) fn looks() -> Interval {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// How an engine hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symptom {
    Stopped,
    /// It writes a core dump.
    Dumping,
    /// It has not come to the point where it answers beats.
    Unborn,
    /// Nobody in it answers the server's beats.
    Silent,
    /// Requests wait in a pool beside an idle thread.
    Idle,
}

impl Symptom {
    fn patience(self) -> u32 {
        match self {
            Self::Stopped | Self::Silent | Self::Idle => LOOKS,
            Self::Unborn => LOOKS_AT_START,
            Self::Dumping => LOOKS_AT_DUMP,
        }
    }
}

impl fmt::Display for Symptom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Stopped => "its process was stopped (SIGSTOP)",
            Self::Dumping => "it has crashed, and its core dump takes longer than a minute",
            Self::Unborn => "its program does not start",
            Self::Silent => {
                "it does not answer: a script may have put another program in its place, or ended its threads"
            }
            Self::Idle => "its idle threads do not take the requests that wait",
        })
    }
}

/// Looks at an engine again and again.
#[derive(Debug, Default)]
pub(super) struct HangWatch {
    /// Looks in a row that found a symptom, all of the same patience.
    looks: u32,
    /// What the last look found.
    last: Option<Symptom>,
    /// The number of the last beat.
    sent: u64,
    /// As it was at the last look.
    answered: u64,
    /// By pool: how many requests had been taken at the last look, if others waited then.
    queues: Vec<Option<u64>>,
}

impl HangWatch {
    /// To be called for each process whenever [`looks`] says. Returns once why it is to be given up.
    pub fn look(generation: &mut Generation, process: u16) -> Option<Symptom> {
        let symptom = symptom(generation, process);
        let number = usize::from(process);
        let (handle, region) = (&mut generation.processes[number], generation.backend.region());
        let watch = &mut handle.hang_watch;
        watch.answered = region.heartbeat(number).number;
        let pools = 0..region.geometry().pools as usize;
        watch.queues = pools.map(|pool| (region.waiting(pool) > 0).then(|| region.taken(pool))).collect();
        watch.sent += 1;
        let (given_up, number) = (watch.count(symptom), watch.sent);
        // A sign of life, which comes in the shared memory.
        handle.order(Order::Beat { number });
        given_up
    }

    /// Whether the last look found a symptom.
    pub fn is_suspicious(&self) -> bool {
        self.last.is_some()
    }

    /// The count begins anew with a symptom of another patience: what was borne for long as one is not at once too much
    /// as the other. It goes on where only the name changes, or an engine that hangs now so and now so would stay.
    fn count(&mut self, symptom: Option<Symptom>) -> Option<Symptom> {
        let last = std::mem::replace(&mut self.last, symptom);
        if last.map(Symptom::patience) != symptom.map(Symptom::patience) {
            self.looks = 0;
        }
        self.looks += 1;
        symptom.filter(|symptom| self.looks == symptom.patience())
    }
}

/// Whether a process of the engine has crashed and the kernel writes its core dump.
pub(super) fn dumps_core(generation: &Generation) -> bool {
    let pids = generation.processes.iter().filter_map(|process| process.pid);
    pids.into_iter().any(|pid| machine::halt(pid) == Halt::Dumping)
}

fn symptom(generation: &Generation, process: u16) -> Option<Symptom> {
    let pid = generation.processes[usize::from(process)].pid?;
    match machine::halt(pid) {
        // Whoever looks at it through a debugger wants to keep it.
        Halt::Traced => None,
        Halt::Stopped => Some(Symptom::Stopped),
        Halt::Dumping => Some(Symptom::Dumping),
        Halt::None => silence(generation, process, pid).or_else(|| {
            let pools = 0..generation.region().geometry().pools as u16;
            let now = clock::now();
            let is_overlooked = |pool| is_overlooked(generation, process, pid, pool, now);
            pools.into_iter().any(is_overlooked).then_some(Symptom::Idle)
        }),
    }
}

/// Whether no beat has been answered since the last look, though the thread that answers could.
fn silence(generation: &Generation, process: u16, pid: u32) -> Option<Symptom> {
    let number = usize::from(process);
    let (watch, heartbeat) =
        (&generation.processes[number].hang_watch, generation.region().heartbeat(number));
    if watch.sent == 0 || heartbeat.number != watch.answered {
        return None;
    }
    let (thread, symptom) = match heartbeat.tid {
        0 => (pid, Symptom::Unborn),
        tid => (tid, Symptom::Silent),
    };
    (machine::wait(pid, thread) == Wait::Other).then_some(symptom)
}

/// Whether nothing has been taken out of a pool's queue since the last look, though something lay there, one of its
/// threads in this process was idle all the time, and none of them was on its way. Requests that were withdrawn count too, since idle threads
/// take them as well: so it is noticed though all clients give up soon.
fn is_overlooked(generation: &Generation, process: u16, pid: u32, pool: u16, now: Duration) -> bool {
    let region = generation.region();
    let is_long = |since: Duration| now.saturating_sub(since) > LOOK;
    let watch = &generation.processes[usize::from(process)].hang_watch;
    let before = watch.queues.get(usize::from(pool)).copied().flatten();
    if before != Some(region.taken(usize::from(pool))) || region.waiting(usize::from(pool)) == 0 {
        return false;
    }
    let asking = generation.threads.entries(pool).filter(|entry| {
        let view = region.thread_view(usize::from(entry.index));
        entry.stage == ThreadStage::Ordered
            && generation.threads.process(entry.index) == usize::from(process)
            && view.state == ThreadState::Idle
            && region.asks(usize::from(entry.index))
    });
    let views: Vec<_> = asking.map(|entry| region.thread_view(usize::from(entry.index))).collect();
    views.iter().any(|view| is_long(view.since))
        && views.iter().all(|view| machine::wait(pid, view.tid) == Wait::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANGS: Option<Symptom> = Some(Symptom::Idle);

    #[test]
    fn an_engine_that_always_hangs_is_given_up_once() {
        let mut watch = HangWatch::default();
        let given_up: Vec<u32> = (1..=20).filter(|_| watch.count(HANGS).is_some()).collect();
        assert_eq!(given_up, [LOOKS]);
    }

    #[test]
    fn one_good_look_is_enough() {
        let mut watch = HangWatch::default();
        for look in 1..100 {
            assert_eq!(watch.count(HANGS.filter(|_| look % LOOKS != 0)), None);
        }
    }

    #[test]
    fn a_program_may_take_long_to_load() {
        let mut watch = HangWatch::default();
        let given_up: Vec<u32> = (1..=200).filter(|_| watch.count(Some(Symptom::Unborn)).is_some()).collect();
        assert_eq!(given_up, [LOOKS_AT_START]);
    }

    #[test]
    fn a_core_dump_may_take_a_minute() {
        let mut watch = HangWatch::default();
        let given_up: Vec<u32> =
            (1..=500).filter(|_| watch.count(Some(Symptom::Dumping)).is_some()).collect();
        assert_eq!(given_up, [LOOKS_AT_DUMP]);
        assert_eq!(LOOK * LOOKS_AT_DUMP, Duration::from_secs(60));
    }

    #[test]
    fn an_engine_that_is_stopped_while_it_loads_is_given_up_as_any_that_is_stopped() {
        for before in 1..LOOKS_AT_START {
            let mut watch = HangWatch::default();
            assert!((0..before).all(|_| watch.count(Some(Symptom::Unborn)).is_none()));
            let given_up: Vec<u32> =
                (1..=20).filter(|_| watch.count(Some(Symptom::Stopped)).is_some()).collect();
            assert_eq!(given_up, [LOOKS], "after {before} looks while it loaded");
        }
    }

    #[test]
    fn an_engine_that_hangs_now_so_and_now_so_is_given_up() {
        let mut watch = HangWatch::default();
        let kinds = [Symptom::Idle, Symptom::Silent].into_iter().cycle();
        let given_up: Vec<usize> = kinds
            .take(20)
            .enumerate()
            .filter_map(|(look, kind)| watch.count(Some(kind)).map(|_| look + 1))
            .collect();
        assert_eq!(given_up, [LOOKS as usize]);
    }
}
