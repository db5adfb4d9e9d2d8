//! Workers that kill their engine while they boot: who they are, and when they are booted again.
//!
//! A worker whose circuit is open has no threads in new generations. After its pause a generation is started with it beside the
//! current one, as for any restart: if the worker kills that, nobody has lost a request; if it boots, that generation takes over.

use super::State;
use super::blame::Blame;
use super::generation::Generation;
use regent_dispatch::circuits::{BootBlame, Booting, Phase};
use regent_wire::ThreadState;
use std::os::unix::ffi::OsStrExt;

/// Why a generation is started.
const TRIAL: &str = "a worker that has killed engines while it booted is tried again";

impl State {
    /// Who booted when this engine died, and may have been why; nobody if something else was.
    pub(super) fn boots_to_blame(&self, dead: &Generation, blame: Blame) -> Vec<Booting> {
        // Of others, the next ones are spared by `trial_failed`.
        if dead.id != self.generations.current.id {
            return Vec::new();
        }
        let workers = self.setup.plan.pools.iter().zip(0..).filter_map(|(plan, pool)| Some((plan.worker.as_ref()?, pool)));
        let booted = |pool: u16| {
            dead.threads.entries(pool).any(|entry| {
                let view = dead.region().thread_view(usize::from(entry.index));
                view.state == ThreadState::Booting
                    && match blame {
                        Blame::Thread(tid) => view.tid == tid,
                        Blame::Suspects => true,
                        Blame::Nobody => false,
                    }
            })
        };
        workers
            .filter(|(_, pool)| booted(*pool))
            .map(|(file, pool)| Booting { pool, script: file.as_os_str().as_bytes().into() })
            .collect()
    }

    /// Counts the death of an engine for the workers that booted. Requests that wait for one whose circuit opens are told.
    pub(super) fn count_boots(&self, booting: &[Booting], blame: Blame) {
        let blame = match blame {
            Blame::Thread(_) => BootBlame::Killer,
            Blame::Suspects => BootBlame::Suspects,
            Blame::Nobody => return,
        };
        if !booting.is_empty() && self.setup.pools.circuits.died_at_boot(booting, blame) {
            self.setup.clients.look_at_pools();
        }
    }

    /// Looks whether what was tried has booted, and whether something is to be tried.
    pub(super) fn look_at_trials(&mut self) {
        let circuits = &self.setup.pools.circuits;
        let pools = 0..self.setup.plan.pools.len();
        for pool in pools.filter(|pool| circuits.boot_phase(*pool).is_some()) {
            if has_booted(&self.generations.current, pool as u16) {
                circuits.booted(pool);
            }
        }
        let is_settled = self.generations.replacement.is_none() && self.generations.current.has_started;
        if is_settled && circuits.next_trial().is_some() {
            self.replace(TRIAL);
            if self.generations.replacement.is_none() {
                self.end_trial();
            }
        }
    }

    /// The generation that was to take over does not. If a worker was tried in it, that has failed, whatever the reason.
    pub(super) fn end_trial(&self) {
        let (circuits, threads) = (&self.setup.pools.circuits, &self.generations.current.threads);
        let is_tried = |pool: usize| {
            circuits.boot_phase(pool) == Some(Phase::Probing) && threads.size(pool as u16) == 0
        };
        if (0..self.setup.plan.pools.len()).any(is_tried) {
            circuits.trial_failed();
        }
    }
}

/// Whether a pool has threads, and all of them have done with the boot of their script, in whatever way.
fn has_booted(generation: &Generation, pool: u16) -> bool {
    let mut states = generation
        .threads
        .entries(pool)
        .map(|entry| generation.region().thread_view(usize::from(entry.index)).state)
        .peekable();
    states.peek().is_some() && states.all(|state| !matches!(state, ThreadState::Absent | ThreadState::Booting))
}
