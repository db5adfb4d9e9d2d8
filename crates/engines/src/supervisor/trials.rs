//! Workers that kill their engine while they boot: who they are, and when they are booted again.
//!
//! A worker whose circuit is open has no threads in new generations. After its pause a generation is started with it beside the
//! current one, as for any restart: if the worker kills that, nobody has lost a request; if it boots, that generation takes over.

use super::State;
use super::blame::Blame;
use super::generation::Generation;
use super::generations::Role;
use crate::thread_table::{ThreadEntry, ThreadStage};
use regent_dispatch::circuits::{Booting, Phase};
use regent_wire::ThreadState;
use std::os::unix::ffi::OsStrExt;

/// Why a generation is started.
const TRIAL: &str = "a worker that has killed engines while it booted is tried again";

impl State {
    /// Which workers booted when this engine died, or this process of it, and may have been why.
    pub(super) fn booting(&self, id: u64, process: Option<u16>, blame: Blame) -> Vec<Booting> {
        // Another generation takes nobody along.
        let dead = self.generations.get(id).filter(|_| self.generations.role(id) == Role::Current);
        let Some(dead) = dead else { return Vec::new() };
        let is_why = |entry: &ThreadEntry| {
            let view = dead.region().thread_view(usize::from(entry.index));
            let is_of =
                process.is_none_or(|process| dead.threads.process(entry.index) == usize::from(process));
            let is_it = match blame {
                Blame::Thread(tid) => view.tid == tid,
                Blame::Suspects | Blame::Nobody => true,
                Blame::Deadline => false,
            };
            is_of && is_it && view.state == ThreadState::Booting
        };
        let plans = self.setup.plan.pools.iter().zip(0..);
        plans
            .filter_map(|(plan, pool)| Some((plan.worker.as_ref()?, pool)))
            .filter(|(_, pool)| dead.threads.entries(*pool).any(|entry| is_why(&entry)))
            .map(|(file, pool)| Booting { pool, script: file.as_os_str().as_bytes().into() })
            .collect()
    }

    /// Looks whether what was tried has booted, and whether something is to be tried.
    pub(super) fn look_at_trials(&mut self) {
        if self.setup.pools.circuits.note_served(|| self.served()) {
            self.setup.clients.look_at_pools();
        }
        if self.trial == Some(self.generations.current.id) {
            self.look_at_trial();
        }
        let is_settled = self.generations.replacement.is_none() && self.generations.current.has_started();
        if is_settled && self.setup.pools.circuits.next_trial().is_some() {
            self.replace(TRIAL);
            match &self.generations.replacement {
                Some(next) => self.trial = Some(next.id),
                None => self.setup.pools.circuits.trial_failed(),
            }
        }
    }

    /// This generation was to take over and does not. If a worker was tried in it, that has failed, whatever the reason.
    pub(super) fn trial_failed(&mut self, id: u64) {
        if self.trial.take_if(|trial| *trial == id).is_some() {
            self.setup.pools.circuits.trial_failed();
        }
    }

    /// If a worker was tried in this generation, which has died, and was not why, it is tried in another.
    pub(super) fn trial_has_ended(&mut self, id: u64) {
        if self.generations.role(id) != Role::Replacement
            && self.trial.take_if(|trial| *trial == id).is_some()
        {
            self.setup.pools.circuits.give_back_trial();
        }
    }

    /// What takes the place of this dead process leaves out the workers that have killed it.
    pub(super) fn leave_out_refused(&mut self, id: u64, process: u16) {
        let Some(generation) = self.generations.get_mut(id) else { return };
        let circuits = &self.setup.pools.circuits;
        let is_refused = |pool: u16| circuits.boot_phase(usize::from(pool)) == Some(Phase::Open);
        let threads = generation.threads_of(process);
        let refused =
            threads.filter(|(pool, entry)| entry.stage == ThreadStage::Ordered && is_refused(*pool));
        let refused: Vec<u16> = refused.map(|(_, entry)| entry.index).collect();
        generation.threads.retire(&refused);
    }

    /// The worker that is tried in the current generation, because that has not waited for it any longer, or because the last
    /// one has died.
    fn look_at_trial(&mut self) {
        let circuits = &self.setup.pools.circuits;
        let pools = 0..self.setup.plan.pools.len();
        let tried = pools.filter(|pool| circuits.boot_phase(*pool) == Some(Phase::Probing));
        for pool in tried {
            if !boots(&self.generations.current, pool as u16) {
                circuits.booted(pool);
                self.trial = None;
            }
        }
    }

    /// Pools that have threads which take requests.
    pub(super) fn served(&self) -> Vec<u16> {
        let current = &self.generations.current;
        let pools = 0..self.setup.plan.pools.len() as u16;
        pools.filter(|pool| current.is_alive() && serves(current, *pool)).collect()
    }
}

fn serves(generation: &Generation, pool: u16) -> bool {
    states(generation, pool).any(|state| matches!(state, ThreadState::Idle | ThreadState::Busy))
}

/// Whether a thread of the pool has not done yet with the boot of its script, in whatever way.
fn boots(generation: &Generation, pool: u16) -> bool {
    states(generation, pool).any(|state| matches!(state, ThreadState::Absent | ThreadState::Booting))
}

fn states(generation: &Generation, pool: u16) -> impl Iterator<Item = ThreadState> {
    let there = generation.threads.entries(pool).filter(|entry| entry.stage == ThreadStage::Ordered);
    there.map(|entry| generation.region().thread_view(usize::from(entry.index)).state)
}
