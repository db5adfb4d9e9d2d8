//! When an engine as a whole does nothing any more: its process was stopped, or its threads wait for what never comes.
//! It is not dead, so nothing tells the supervisor.

use super::generation::Generation;
use crate::machine::{self, Halt};
use crate::roster::MemberStage;
use regent_wire::{ThreadState, clock};
use std::fmt;
use std::time::Duration;

/// Between two looks.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// So many looks in a row must have found a symptom. Time alone would not do: server and engine may have been frozen
/// together, and the server be the first to wake.
const LOOKS: u32 = 5;
/// An idle thread takes what waits within milliseconds, on the most crowded of machines within tenths of a second.
const OVERLOOKED: Duration = Duration::from_secs(5);

/// How an engine hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symptom {
    Stopped,
    /// Requests wait in a pool beside an idle thread.
    Idle,
}

impl fmt::Display for Symptom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Stopped => "its process was stopped (SIGSTOP)",
            Self::Idle => "its idle threads do not take the requests that wait",
        })
    }
}

/// Looks at an engine again and again.
#[derive(Debug, Default)]
pub(super) struct HangWatch {
    engine: u64,
    /// Looks in a row that found a symptom.
    looks: u32,
}

impl HangWatch {
    /// To be called every [`LOOK`]. Returns once why the engine is to be given up.
    pub fn look(&mut self, generation: &Generation) -> Option<Symptom> {
        self.count(generation.id, symptom(generation))
    }

    fn count(&mut self, engine: u64, symptom: Option<Symptom>) -> Option<Symptom> {
        if symptom.is_none() || engine != self.engine {
            *self = Self { engine, looks: 0 };
        }
        self.looks += u32::from(symptom.is_some());
        symptom.filter(|_| self.looks == LOOKS)
    }
}

fn symptom(generation: &Generation) -> Option<Symptom> {
    match machine::halt(generation.pid?) {
        // Whoever looks at it through a debugger wants to keep it.
        Halt::Traced => None,
        Halt::Stopped => Some(Symptom::Stopped),
        Halt::None => {
            let pools = 0..generation.region().geometry().pools as u16;
            let now = clock::now();
            pools.into_iter().any(|pool| is_overlooked(generation, pool, now)).then_some(Symptom::Idle)
        }
    }
}

/// Whether the first request of a pool has waited for long while one of its threads was idle all the time.
fn is_overlooked(generation: &Generation, pool: u16, now: Duration) -> bool {
    let region = generation.region();
    let is_long = |since: Duration| now.saturating_sub(since) > OVERLOOKED;
    let waits = generation.backend.waiting(usize::from(pool)) > 0;
    let is_idle = |index: u16| {
        let view = region.thread_view(usize::from(index));
        view.state == ThreadState::Idle && is_long(view.since)
    };
    waits
        && region.oldest(usize::from(pool)).is_some_and(is_long)
        && generation
            .roster
            .members(pool)
            .any(|member| member.stage == MemberStage::Ordered && is_idle(member.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANGS: Option<Symptom> = Some(Symptom::Idle);

    #[test]
    fn an_engine_that_always_hangs_is_given_up_once() {
        let mut watch = HangWatch::default();
        let given_up: Vec<u32> = (1..=20).filter(|_| watch.count(7, HANGS).is_some()).collect();
        assert_eq!(given_up, [LOOKS]);
    }

    #[test]
    fn one_good_look_is_enough() {
        let mut watch = HangWatch::default();
        for look in 1..100 {
            assert_eq!(watch.count(7, HANGS.filter(|_| look % LOOKS != 0)), None);
        }
    }

    #[test]
    fn the_next_engine_begins_anew() {
        let mut watch = HangWatch::default();
        for engine in 0..10 {
            for _ in 1..LOOKS {
                assert_eq!(watch.count(engine, HANGS), None);
            }
        }
    }
}
