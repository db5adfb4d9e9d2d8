//! When opcache is to be emptied: because a script calls `opcache_reset()`, or because it is full. A generation is started for
//! the first that asks at once. Those that ask while it boots, or soon after, get one together, later: a page that empties the
//! cache each time costs everybody else an engine that boots, and a cache that is empty, every [`PAUSE`] and no more often.

use super::State;
use super::generations::Role;
use super::overdue::{LONGEST_TEXT, text_of};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Between the starts of two generations for it.
pub(super) const PAUSE: Duration = Duration::from_secs(10);
/// Callers that are told apart; the others are counted.
const NAMED: usize = 8;

/// Who wants opcache to be emptied.
#[derive(Debug, Default)]
pub(super) struct Resets {
    /// When a generation was started for it.
    last: Option<Instant>,
    /// Since then, or since any other was started, which has an empty cache too: who has asked, and how often.
    callers: Vec<(String, u64)>,
    /// Calls of others.
    others: u64,
}

impl Resets {
    /// Returns whether it is the first since the last generation.
    fn ask(&mut self, caller: String) -> bool {
        let is_first = self.callers.is_empty();
        match self.callers.iter().position(|(known, _)| *known == caller) {
            Some(index) => self.callers[index].1 += 1,
            None if self.callers.len() < NAMED => self.callers.push((caller, 1)),
            None => self.others += 1,
        }
        is_first
    }

    /// How long the next generation has to wait; `None`: nobody wants one.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let since = self.last.map(|last| now.saturating_duration_since(last));
        (!self.callers.is_empty()).then(|| since.map_or(Duration::ZERO, |since| PAUSE.saturating_sub(since)))
    }

    /// A generation is started for them. Returns why, for the log.
    fn take(&mut self, now: Instant) -> String {
        self.last = Some(now);
        let mut reason = String::new();
        for (caller, calls) in &self.callers {
            let separator = if reason.is_empty() { "" } else { ", " };
            let times = if *calls > 1 { format!(" ({calls} times)") } else { String::new() };
            // A string takes anything.
            let _ = write!(reason, "{separator}{caller}{times}");
        }
        if self.others > 0 {
            let _ = write!(reason, ", and {} calls of others", self.others);
        }
        self.are_done();
        reason
    }

    /// A generation is started, for whatever reason: its cache is empty.
    pub fn are_done(&mut self) {
        self.callers.clear();
        self.others = 0;
    }
}

impl State {
    /// An engine wants opcache to be emptied. `script`: that has asked for it.
    pub(super) fn reset_wanted(&mut self, role: Role, reason: &str, script: Option<&str>) {
        // What a script of an engine that drains wants is meant for the current one. One that is about to take over has nothing
        // that is old; it would never come to an end, if its workers asked each time they boot.
        let is_meant = match role {
            Role::Current => true,
            Role::Draining => script.is_some(),
            Role::Replacement | Role::Gone => false,
        };
        if !is_meant {
            return;
        }
        let caller = script.map_or_else(|| reason.to_owned(), |script| format!("{reason} by {script}"));
        let caller = text_of(&caller, LONGEST_TEXT);
        let is_first = self.resets.ask(caller.clone());
        self.look_at_resets();
        if let Some(wait) = self.resets.wait(Instant::now()).filter(|_| is_first) {
            tracing::warn!(
                engine = %self.setup.plan.kind,
                reason = caller,
                wait_ms = wait.as_millis() as u64,
                "opcache is to be emptied again so soon: a generation is started for all that ask until then"
            );
        }
    }

    /// Starts the generation that is due.
    pub(super) fn look_at_resets(&mut self) {
        let now = Instant::now();
        if self.generations.replacement.is_none() && self.resets.wait(now) == Some(Duration::ZERO) {
            let reason = self.resets.take(now);
            self.replace(&reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESET: &str = "opcache_reset() by /a.php";

    /// When generations are started, if it is asked for so often, and how long after the first.
    fn started(every: Duration, times: u32) -> Vec<Duration> {
        let (mut resets, begin) = (Resets::default(), Instant::now());
        let mut starts = Vec::new();
        for time in (0..times).map(|n| every * n) {
            resets.ask(RESET.to_owned());
            if resets.wait(begin + time) == Some(Duration::ZERO) {
                resets.take(begin + time);
                starts.push(time);
            }
        }
        starts
    }

    #[test]
    fn a_flood_of_calls_gets_a_generation_at_once_and_then_one_after_each_pause() {
        let starts = started(Duration::from_millis(10), 3000);
        assert_eq!(starts, [0, 1, 2].map(|n| PAUSE * n));
    }

    #[test]
    fn calls_that_are_rare_get_one_each_at_once() {
        assert_eq!(started(PAUSE, 5).len(), 5);
    }

    #[test]
    fn the_last_call_is_never_forgotten() {
        let (mut resets, now) = (Resets::default(), Instant::now());
        assert!(resets.ask(RESET.to_owned()));
        resets.take(now);
        assert_eq!(resets.wait(now), None);
        assert!(resets.ask(RESET.to_owned()) && !resets.ask(RESET.to_owned()));
        assert_eq!(resets.wait(now + PAUSE / 4), Some(PAUSE * 3 / 4));
        assert_eq!(resets.wait(now + PAUSE * 9), Some(Duration::ZERO));
        assert_eq!(resets.take(now + PAUSE * 9), format!("{RESET} (2 times)"));
    }

    #[test]
    fn another_generation_serves_them_as_well() {
        let (mut resets, now) = (Resets::default(), Instant::now());
        resets.ask(RESET.to_owned());
        resets.are_done();
        assert_eq!(resets.wait(now), None);
    }

    #[test]
    fn of_many_callers_some_are_named() {
        let mut resets = Resets::default();
        for n in 0..1000 {
            resets.ask(format!("opcache_reset() by /{n}.php"));
        }
        let reason = resets.take(Instant::now());
        assert!(reason.starts_with("opcache_reset() by /0.php, opcache_reset() by /1.php, "), "{reason}");
        assert!(reason.ends_with(&format!(", and {} calls of others", 1000 - NAMED)), "{reason}");
    }
}
