//! The end of a process of an engine. If it has others, they go on: the queue lies in the memory that they share, and another
//! process takes the place of the dead one beside them. If it has none, or the memory is not to be trusted any more, it is the
//! end of the generation.

use super::State;
use super::blame::Blame;
use super::generation::Generation;
use super::generations::Role;
use super::last_requests::LastRequests;
use super::process_handle::{Burial, EngineEvent, EventKind, ProcessLaunch};
use super::replacement::{NO_START, STABLE, backoff};
use super::reports::describe;
use crate::thread_table::{ThreadEntry, ThreadStage};
use regent_dispatch::circuits::Booting;
use regent_wire::control::{Event, ThreadStart};
use regent_wire::{Repeats, ThreadState};
use std::collections::HashMap;
use std::process::ExitStatus;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Of what an engine has died, as far as that is known. `Last`: what the I/O threads will say of its requests.
struct Death<Last> {
    blame: Blame,
    booting: Vec<Booting>,
    last: Last,
}

impl State {
    /// A process has ended; `None`: it could not be started, or there was no need for it any more.
    pub async fn on_process_end(&mut self, id: u64, process: u16, status: Option<ExitStatus>) {
        let (role, kind) = (self.generations.role(id), self.setup.plan.kind);
        let Some(generation) = self.generations.get_mut(id) else { return };
        generation.processes[usize::from(process)].note_ended();
        generation.backend.inspect();
        let has_others = generation.processes.len() > 1;
        if has_others && let Some(damage) = generation.backend.damage() {
            generation.condemn(kind, &format!("it has damaged the shared memory: {damage}"));
        }
        let (is_condemned, is_alive) = (generation.is_condemned(), generation.is_alive());
        if has_others {
            self.profile_of_process_ended(id, process);
        }
        match role {
            Role::Current if has_others && !is_condemned => self.replace_process(id, process, status).await,
            // In an orderly end nothing runs.
            Role::Draining if is_alive && !is_condemned && status.is_some_and(|status| !status.success()) => {
                self.bury_process(id, process, status).await;
            }
            Role::Current | Role::Draining if is_alive => {}
            _ => self.end_generation(id, process, status).await,
        }
    }

    /// Its last process has ended.
    async fn end_generation(&mut self, id: u64, process: u16, status: Option<ExitStatus>) {
        let role = self.generations.role(id);
        let is_spent = self.generations.get(id).is_some_and(Generation::is_spent);
        let repeats = status.map_or(Repeats::Nobodys, |status| self.repeats(id, process, status));
        if let Some(status) =
            status.filter(|status| role != Role::Draining || !(status.success() || is_spent))
        {
            self.setup.pools.registry.engine_died();
            tracing::error!(engine = %self.setup.plan.kind, reason = describe(status), "the engine has died");
            if let Some(death) = self.death(id, process, None, status) {
                self.report(death).await;
            }
        }
        self.forget_profile(id);
        self.trial_has_ended(id);
        match role {
            Role::Current => self.replace_dead(repeats).await,
            Role::Replacement => self.give_up_replacement(NO_START),
            Role::Draining => {
                let drained = self.generations.take_drained(id);
                drained.into_iter().for_each(|dead| self.setup.clients.forget_dead(&dead.backend, repeats));
            }
            Role::Gone => {}
        }
    }

    /// Names what ran in the log, in one process or in all, and counts who is to blame for its circuit.
    async fn report(&mut self, death: Death<impl Future<Output = LastRequests>>) {
        let Death { blame, booting, last } = death;
        let last = last.await;
        last.log();
        self.count_death(blame, &last, &booting);
    }

    /// What is known of it, before anything is buried.
    fn death(
        &self,
        id: u64,
        process: u16,
        of: Option<u16>,
        status: ExitStatus,
    ) -> Option<Death<impl Future<Output = LastRequests> + use<>>> {
        // A replacement has had no requests.
        let has_served = matches!(self.generations.role(id), Role::Current | Role::Draining);
        let dead = self.generations.get(id).filter(|_| has_served)?;
        let last = LastRequests::of(dead, of, &self.setup.plan.pools, &self.setup.clients);
        let blame = Blame::of(dead, process, status);
        Some(Death { blame, booting: self.booting(id, of, blame), last })
    }

    /// The others go on, and another takes its place.
    async fn replace_process(&mut self, id: u64, process: u16, status: Option<ExitStatus>) {
        let buried = self.bury_process(id, process, status).await;
        let Some(generation) = self.generations.get_mut(id) else { return };
        let dead = &generation.processes[usize::from(process)];
        let failures = if dead.since.elapsed() < STABLE { dead.failures + 1 } else { 0 };
        let wait = backoff(failures);
        if !wait.is_zero() {
            tracing::warn!(
                engine = %self.setup.plan.kind,
                process,
                ?wait,
                failures,
                "a process of the engine keeps dying; waiting before the next start"
            );
        }
        let is_to_stay = |entry: &ThreadEntry| entry.stage == ThreadStage::Ordered;
        let threads = generation.threads_of(process).filter(|(_, entry)| is_to_stay(entry));
        let threads = threads.map(|(pool, entry)| ThreadStart { index: entry.index, pool }).collect();
        let backend = Arc::clone(&generation.backend);
        let launch = ProcessLaunch { id, number: process, backend, threads, buried, wait, failures };
        generation.relaunch(&self.setup, launch);
    }

    /// What ran in it is lost or run again. Returns what ends when its threads' numbers may be used again.
    async fn bury_process(&mut self, id: u64, process: u16, status: Option<ExitStatus>) -> Option<Burial> {
        let engine = self.setup.plan.kind;
        if let Some(status) = status {
            let reason = describe(status);
            tracing::error!(%engine, process, reason, "a process of the engine has died; the others go on");
            self.setup.pools.registry.engine_died();
        }
        let death = status.and_then(|status| self.death(id, process, Some(process), status));
        self.generations.get(id).into_iter().for_each(|dead| bury_idle(dead, process));
        let repeats = status.map_or(HashMap::new(), |status| self.repeats_by_thread(id, process, status));
        if let Some(death) = death {
            self.report(death).await;
        }
        self.leave_out_refused(id, process);
        let generation = self.generations.get(id)?;
        let (mut burials, mut ended) = (Vec::new(), Vec::new());
        for (_, entry) in generation.threads_of(process) {
            let repeats = repeats.get(&entry.index).copied().unwrap_or(Repeats::Nobodys);
            generation.region().bury(usize::from(entry.index));
            burials.push(self.setup.clients.bury(&generation.backend, entry.index, repeats));
            match entry.stage {
                ThreadStage::Retiring | ThreadStage::Replaced | ThreadStage::WrittenOff => {
                    ended.push(entry.index)
                }
                ThreadStage::Ordered | ThreadStage::Failed => {}
            }
        }
        let events = self.events.clone();
        let (done, is_done) = oneshot::channel::<()>();
        // As in the death of one thread's process: until then the numbers are nobody's.
        tokio::spawn(async move {
            for burial in burials {
                burial.await;
            }
            for index in ended {
                let kind = EventKind::Message(Event::ThreadEnded { index, error: None });
                // The supervisor has ended otherwise.
                let _ = events.send(EngineEvent { id, process, kind }).await;
            }
            drop(done);
        });
        Some(Box::pin(async move { drop(is_done.await) }))
    }

    /// Which of its requests may be run again.
    fn repeats_by_thread(&self, id: u64, process: u16, status: ExitStatus) -> HashMap<u16, Repeats> {
        let Some(dead) = self.generations.get(id) else { return HashMap::new() };
        let of_thread = |index: u16| match Blame::of(dead, process, status).repeats() {
            // By the burial its number is gone.
            Repeats::AllBut(tid) if dead.region().thread_view(usize::from(index)).tid == tid => {
                Repeats::Nobodys
            }
            Repeats::AllBut(_) => Repeats::Everybodys,
            repeats => repeats,
        };
        dead.threads_of(process).map(|(_, entry)| (entry.index, of_thread(entry.index))).collect()
    }
}

/// At once, though the others have to be described first: until then requests would wait for the wakes of idle threads that do
/// not come.
fn bury_idle(dead: &Generation, process: u16) {
    let region = dead.region();
    for (_, entry) in dead.threads_of(process) {
        let index = usize::from(entry.index);
        if region.thread_state(index) != ThreadState::Busy {
            region.bury(index);
        }
    }
}
