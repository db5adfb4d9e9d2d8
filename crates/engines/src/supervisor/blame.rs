//! Of what an engine has died, as far as its requests may be why: their circuits are to know.

use super::State;
use super::generation::Generation;
use super::last_requests::LastRequests;
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Signals that a process gets for what its own code does. Others are sent: by an operator, or by the kernel when memory
/// runs out.
const FAULTS: [Signal; 7] =
    [Signal::SEGV, Signal::BUS, Signal::FPE, Signal::ILL, Signal::ABORT, Signal::SYS, Signal::TRAP];

/// What is known of an engine's death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// A fault of the thread with this number of the kernel has ended it.
    Thread(u32),
    /// One of its requests, or nothing that they did: it has ended itself, or was unfit.
    Suspects,
    /// It was killed from outside.
    Nobody,
}

impl Blame {
    pub fn of(dead: &Generation, status: ExitStatus) -> Self {
        let is_fault = |number| FAULTS.iter().any(|signal| signal.as_raw() == number);
        match (dead.region().fault_tid(), status.signal()) {
            (0, Some(signal)) if !is_fault(signal) && !dead.is_condemned() => Self::Nobody,
            (0, _) => Self::Suspects,
            (tid, _) => Self::Thread(tid),
        }
    }
}

impl State {
    /// Counts an engine's death for the circuits of what ran. The requests that wait for one that opens by that are told.
    pub fn count_death(&self, blame: Blame, last: &LastRequests) {
        let (suspects, killer) = match blame {
            Blame::Nobody => return,
            Blame::Suspects => (last.suspects(), None),
            // It may have run none: a script that boots, or the engine itself.
            Blame::Thread(tid) => match last.suspect(tid) {
                Some(killer) => (vec![killer], Some(0)),
                None => return,
            },
        };
        if self.setup.pools.circuits.died(&suspects, killer) {
            self.setup.clients.look_at_pools();
        }
    }
}
