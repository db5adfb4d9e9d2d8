//! Of what an engine has died, as far as its requests may be why: their circuits are to know.

use super::State;
use super::generation::Generation;
use super::last_requests::LastRequests;
use regent_dispatch::circuits::Booting;
use regent_wire::Repeats;
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
    /// Of a process of this generation.
    pub fn of(dead: &Generation, process: u16, status: ExitStatus) -> Self {
        let is_condemned = dead.processes[usize::from(process)].is_condemned();
        match (dead.region().fault_tid(usize::from(process)), status.signal()) {
            (0, Some(signal)) if !is_fault(signal) && !is_condemned => Self::Nobody,
            (0, _) => Self::Suspects,
            (tid, _) => Self::Thread(tid),
        }
    }

    /// Whose requests may be run again. Where one of several must be why, and nobody knows which, none is: it would end the
    /// next engine too, beside the same others, and the circuits would take those for its accomplices.
    pub fn repeats(self) -> Repeats {
        match self {
            Self::Thread(tid) => Repeats::AllBut(tid),
            Self::Suspects => Repeats::Nobodys,
            Self::Nobody => Repeats::Everybodys,
        }
    }
}

/// Whether a process is ended by this signal for what it has done itself.
pub(super) fn is_fault(number: i32) -> bool {
    FAULTS.iter().any(|signal| signal.as_raw() == number)
}

impl State {
    /// What of a dead engine's requests may be run again, whose last process has ended so. Memory that was damaged may have lost
    /// what they were.
    pub fn repeats(&self, id: u64, process: u16, status: ExitStatus) -> Repeats {
        let Some(dead) = self.generations.get(id) else { return Repeats::Nobodys };
        dead.backend.inspect();
        let is_damaged = dead.backend.damage().is_some();
        if is_damaged { Repeats::Nobodys } else { Blame::of(dead, process, status).repeats() }
    }

    /// Counts an engine's death for the circuits of what ran, and of what booted. The requests that wait for one that opens by
    /// that are told.
    pub fn count_death(&self, blame: Blame, last: &LastRequests, booting: &[Booting]) {
        let (suspects, killer) = match blame {
            // What is killed from outside runs once more. What is killed again by that may be why: memory that runs out, say.
            Blame::Nobody => match last.repeated() {
                none if none.is_empty() => return,
                repeated => (repeated, None),
            },
            Blame::Suspects => (last.suspects(), None),
            // It may have run none: a script that boots, or the engine itself.
            Blame::Thread(tid) => match last.suspect(tid) {
                Some(killer) => (vec![killer], Some(0)),
                None => return self.count_boots(booting, blame),
            },
        };
        if self.setup.pools.circuits.died(&suspects, killer) {
            self.setup.clients.look_at_pools();
        }
    }
}
