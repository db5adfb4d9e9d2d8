//! Of what an engine has died, as far as its requests may be why: their circuits are to know.

use super::State;
use super::generation::Generation;
use super::last_requests::LastRequests;
use super::process_handle::Sentence;
use regent_dispatch::circuits::{BootBlame, Booting};
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
    /// The server has cut it off: it had not drained by the deadline.
    Deadline,
}

impl Blame {
    /// Of a process of this generation.
    pub fn of(dead: &Generation, process: u16, status: ExitStatus) -> Self {
        let index = usize::from(process);
        Self::judge(dead.region().fault_tid(index), status.signal(), dead.processes[index].sentence())
    }

    fn judge(fault_tid: u32, signal: Option<i32>, sentence: Option<Sentence>) -> Self {
        match (fault_tid, signal, sentence) {
            (0, Some(_), Some(Sentence::Undrained)) => Self::Deadline,
            (0, Some(signal), None) if !is_fault(signal) => Self::Nobody,
            (0, ..) => Self::Suspects,
            (tid, ..) => Self::Thread(tid),
        }
    }

    /// Whose requests may be run again. Where one of several must be why, and nobody knows which, none is: it would end the
    /// next engine too, beside the same others, and the circuits would take those for its accomplices. Nor is what has had all
    /// the time to drain: it may hang.
    pub fn repeats(self) -> Repeats {
        match self {
            Self::Thread(tid) => Repeats::AllBut(tid),
            Self::Suspects | Self::Deadline => Repeats::Nobodys,
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
        let circuits = &self.setup.pools.circuits;
        let opens = match blame {
            // What is killed from outside runs once more. What is killed again by that may be why: memory that runs out, say.
            Blame::Nobody => {
                let repeated = last.repeated();
                !repeated.is_empty() && circuits.died(&repeated, None)
            }
            Blame::Suspects => circuits.died(&last.suspects(), None),
            // It may have run none: a script that boots, or the engine itself.
            Blame::Thread(tid) => last.suspect(tid).is_some_and(|killer| circuits.died(&[killer], Some(0))),
            // Long requests are not to be refused.
            Blame::Deadline => return,
        };
        let of_boots = match blame {
            Blame::Thread(_) => BootBlame::Known,
            Blame::Suspects if last.are_none() => BootBlame::Alone,
            _ => BootBlame::Anybody,
        };
        let opens_boots = circuits.died_at_boot(booting, of_boots, || self.served());
        if opens || opens_boots {
            self.setup.clients.look_at_pools();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILL: Option<i32> = Some(Signal::KILL.as_raw());

    #[test]
    fn what_was_killed_from_outside_is_run_again() {
        assert_eq!(Blame::judge(0, KILL, None).repeats(), Repeats::Everybodys);
        assert_eq!(Blame::judge(7, Some(Signal::SEGV.as_raw()), None).repeats(), Repeats::AllBut(7));
        assert_eq!(Blame::judge(0, None, None).repeats(), Repeats::Nobodys, "it has ended itself");
    }

    #[test]
    fn what_the_server_has_killed_is_not_run_again() {
        assert_eq!(Blame::judge(0, KILL, Some(Sentence::Unfit)), Blame::Suspects);
        assert_eq!(Blame::judge(0, KILL, Some(Sentence::Undrained)), Blame::Deadline);
        assert_eq!(Blame::Deadline.repeats(), Repeats::Nobodys);
        let crash = Blame::judge(7, Some(Signal::SEGV.as_raw()), Some(Sentence::Undrained));
        assert_eq!(crash, Blame::Thread(7), "it has crashed before it was killed");
    }
}
