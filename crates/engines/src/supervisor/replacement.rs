//! How one generation takes the place of another: because it was asked for, or because the other has died.

use super::generation::{Generation, Launch};
use super::generations::Fate;
use super::{CommandRefused, State};
use crate::plan::PoolPlan;
use regent_wire::{EngineMemory, RegionError, Repeats};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// An engine that lived shorter than this failed; the next waits before it starts.
pub(super) const STABLE: Duration = Duration::from_secs(5);
/// The first replacement starts at once, the second after this, then twice as long each time.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LAST_BACKOFF: Duration = Duration::from_secs(5);
/// How long a new generation may boot its workers before it takes over all the same.
pub(super) const BOOT_DEADLINE: Duration = Duration::from_secs(30);

/// Why the workers' threads are not replaced.
pub(super) const NO_BOOT: &str =
    "the worker scripts of the new generation do not boot; the old ones go on: see the log";
/// Why a replacement cannot serve that has ended.
pub(super) const NO_START: &str = "the new generation of the engine did not start: see the log";
/// Why a generation was started after the death of another.
const DIED: &str = "the last engine died";
/// Why one is started beside another that serves.
const RESTART: &str = "a restart was asked for";

/// Told how many threads have been restarted, when they serve.
pub(super) type RestartAnswer = oneshot::Sender<Result<u32, CommandRefused>>;

/// Who waits for new generations.
#[derive(Default)]
pub(super) struct Restarts {
    /// For the replacement to serve, or to fail.
    now: Vec<RestartAnswer>,
    /// Asked when the replacement was on its way, which may have loaded code that is old by now.
    later: Vec<RestartAnswer>,
}

impl State {
    pub fn restart_on_demand(&mut self, answer: RestartAnswer) {
        if self.generations.replacement.is_some() {
            return self.restarts.later.push(answer);
        }
        self.restarts.now.push(answer);
        self.replace(RESTART);
    }

    /// A new generation is wanted: it starts beside the current one, and takes over when its workers have booted.
    pub fn replace(&mut self, reason: &str) {
        if self.generations.replacement.is_some() {
            return;
        }
        tracing::info!(engine = %self.setup.plan.kind, reason, "starting a new generation of the engine");
        match self.setup.new_memory() {
            Ok(backend) => {
                let next = self.launch(backend, Duration::ZERO, reason);
                next.remind_after(BOOT_DEADLINE);
                self.generations.replacement = Some(next);
            }
            Err(error) => {
                tracing::error!(%error, "no memory for a new generation; the current one goes on");
                self.answer_restarts(&Err(CommandRefused::Unavailable(error.to_string())));
            }
        }
    }

    pub async fn take_over(&mut self) {
        let Some(next) = self.generations.replacement.take() else { return };
        self.swap(next, Fate::Drains).await;
        self.resets.done();
        self.failures = 0;
        tracing::info!(engine = %self.setup.plan.kind, "the new generation has taken over");
        let threads = self.restarted_threads();
        if !self.restarts.now.is_empty() {
            self.setup.pools.circuits.end_boot_pauses();
        }
        self.answer_restarts(&Ok(threads));
        self.look_at_trials();
    }

    /// `reason`: for who wanted it.
    pub fn give_up_replacement(&mut self, reason: &str) {
        tracing::error!(engine = %self.setup.plan.kind, reason, "the new generation cannot serve; the current one goes on");
        if let Some(failed) = self.generations.replacement.take() {
            self.trial_failed(failed.id);
        }
        self.resets.failed();
        self.answer_restarts(&Err(CommandRefused::Unavailable(reason.to_owned())));
    }

    /// The current engine is dead. Its queue moves to new memory at once; the next engine starts on that. `repeats`: what of
    /// its requests may be run again.
    pub async fn replace_dead(&mut self, repeats: Repeats) {
        if let Some(next) = self.generations.replacement.take() {
            // It is on its way already.
            self.swap(next, Fate::Dead(repeats)).await;
            self.resets.done();
            let threads = self.restarted_threads();
            return self.answer_restarts(&Ok(threads));
        }
        let wait = self.count_failure();
        match self.setup.new_memory() {
            Ok(backend) => {
                let next = self.launch(backend, wait, DIED);
                self.resets.done();
                self.swap(next, Fate::Dead(repeats)).await;
            }
            Err(error) => self.start_on_old_memory(&error),
        }
    }

    /// New requests go to `next` when this returns, which has as many threads as the generation before it.
    async fn swap(&mut self, mut next: Generation, fate: Fate) {
        self.setup.clients.switch_to(&next.backend).await;
        let old = &self.generations.current;
        self.autoscaler.begin_generation(old);
        // Its sizes may have changed since `next` was launched.
        self.autoscaler.carry_over(old, &mut next);
        let dead = self.generations.swap(next, fate);
        if let (Some(dead), Fate::Dead(repeats)) = (dead, fate) {
            self.setup.clients.forget_dead(&dead.backend, repeats);
        }
        self.note_given_up();
    }

    /// The requests stay where they are.
    fn start_on_old_memory(&mut self, error: &RegionError) {
        tracing::error!(%error, "no memory for a new engine; the old memory is used again");
        self.autoscaler.begin_generation(&self.generations.current);
        let memory = Arc::clone(&self.generations.current.backend);
        self.generations.current = self.launch(memory, LAST_BACKOFF, DIED);
        self.resets.done();
    }

    /// How long the next engine has to wait.
    fn count_failure(&mut self) -> Duration {
        let lived = self.generations.current.since.elapsed();
        self.failures = if lived < STABLE { self.failures + 1 } else { 0 };
        let wait = backoff(self.failures);
        if !wait.is_zero() {
            tracing::warn!(
                engine = %self.setup.plan.kind,
                ?wait,
                failures = self.failures,
                "the engine keeps dying; waiting before the next start"
            );
        }
        wait
    }

    fn answer_restarts(&mut self, answer: &Result<u32, CommandRefused>) {
        for waiting in self.restarts.now.drain(..) {
            // Who asked has gone otherwise.
            let _ = waiting.send(answer.clone());
        }
        if !self.restarts.later.is_empty() {
            self.restarts.now = std::mem::take(&mut self.restarts.later);
            self.replace(RESTART);
        }
    }

    fn restarted_threads(&self) -> u32 {
        let (plans, threads) = (&self.setup.plan.pools, &self.generations.current.threads);
        let has_any = plans.iter().any(PoolPlan::keeps_code);
        let restarted = plans.iter().enumerate().filter(|(_, pool)| pool.keeps_code() || !has_any);
        restarted.map(|(index, _)| u32::from(threads.size(index as u16))).sum()
    }

    /// A process on this memory, with as many threads as the current generation has, that is started after `wait`.
    fn launch(&mut self, backend: Arc<EngineMemory>, wait: Duration, reason: &str) -> Generation {
        let id = self.next_id;
        self.next_id += 1;
        self.resets.begun();
        let sizes = self.autoscaler.sizes(Some(&self.generations.current));
        let launch = Launch { id, backend, sizes, reason: reason.to_owned(), wait };
        Generation::launch(&self.setup, launch, self.events.clone())
    }
}

pub(super) fn backoff(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        more => FIRST_BACKOFF.saturating_mul(1 << (more - 2).min(6)).min(LAST_BACKOFF),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_replacement_starts_at_once_and_later_ones_wait() {
        let waits: Vec<u128> = [0, 1, 2, 3, 4, 20].map(|n| backoff(n).as_millis()).into();
        assert_eq!(waits, [0, 0, 100, 200, 400, 5000]);
    }
}
