//! When opcache is to be emptied: because a script calls `opcache_reset()`, or because it is full. A generation is started for
//! the first that asks at once. Those that ask while it boots, or soon after, get one together, later: a page that empties the
//! cache each time costs everybody else an engine that boots, and a cache that is empty, every [`PAUSE`] and no more often.

use super::State;
use super::generations::Role;
use super::overdue::{LONGEST_TEXT, text_of};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Between the starts of two generations for it; twice as long after each in a row that could not serve.
pub(super) const PAUSE: Duration = Duration::from_secs(10);
/// So often it is doubled: 5 minutes and 20 seconds.
const MOST_DOUBLED: u32 = 5;
/// Callers that are told apart; the others are counted.
const NAMED: usize = 8;

/// Who wants opcache to be emptied.
#[derive(Debug, Default)]
pub(super) struct Resets {
    /// When a generation was started for it.
    last: Option<Instant>,
    /// Generations in a row that could not serve.
    failures: u32,
    /// Since then, or since any other was started, which has an empty cache too.
    asked: Calls,
    /// Those whose generation is on its way.
    served: Calls,
}

/// Who has asked, and how often.
#[derive(Debug, Default)]
struct Calls {
    callers: Vec<(String, u64)>,
    /// Calls of others.
    others: u64,
}

impl Calls {
    fn add(&mut self, caller: String, calls: u64) {
        match self.callers.iter().position(|(known, _)| *known == caller) {
            Some(index) => self.callers[index].1 += calls,
            None if self.callers.len() < NAMED => self.callers.push((caller, calls)),
            None => self.others += calls,
        }
    }

    /// For the log.
    fn text(&self) -> String {
        let mut text = String::new();
        for (caller, calls) in &self.callers {
            let separator = if text.is_empty() { "" } else { ", " };
            let times = if *calls > 1 { format!(" ({calls} times)") } else { String::new() };
            // A string takes anything.
            let _ = write!(text, "{separator}{caller}{times}");
        }
        if self.others > 0 {
            let _ = write!(text, ", and {} calls of others", self.others);
        }
        text
    }
}

impl Resets {
    /// Returns whether it is the first since the last generation.
    fn ask(&mut self, caller: String) -> bool {
        let is_first = self.asked.callers.is_empty();
        self.asked.add(caller, 1);
        is_first
    }

    /// How long the next generation has to wait; `None`: nobody wants one.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let pause = PAUSE * (1 << self.failures.min(MOST_DOUBLED));
        let since = self.last.map(|last| now.saturating_duration_since(last));
        let wanted = !self.asked.callers.is_empty();
        wanted.then(|| since.map_or(Duration::ZERO, |since| pause.saturating_sub(since)))
    }

    /// A generation is started for them. Returns why, for the log.
    fn take(&mut self, now: Instant) -> String {
        self.last = Some(now);
        self.asked.text()
    }

    /// A generation is started, for whatever reason: its cache is empty.
    pub fn begun(&mut self) {
        self.served = std::mem::take(&mut self.asked);
    }

    /// It serves.
    pub fn done(&mut self) {
        self.served = Calls::default();
        self.failures = 0;
    }

    /// It cannot serve, and the one before goes on, whose cache is as it was.
    pub fn failed(&mut self) {
        let Calls { callers, others } = std::mem::take(&mut self.served);
        if callers.is_empty() {
            return;
        }
        self.failures += 1;
        callers.into_iter().for_each(|(caller, calls)| self.asked.add(caller, calls));
        self.asked.others += others;
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
                resets.begun();
                resets.done();
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
        resets.begun();
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
        resets.begun();
        assert_eq!(resets.wait(now), None);
    }

    #[test]
    fn what_a_generation_was_to_serve_that_cannot_is_asked_for_again_ever_later() {
        let (mut resets, mut now) = (Resets::default(), Instant::now());
        resets.ask(RESET.to_owned());
        let mut waits = Vec::new();
        for _ in 0..7 {
            assert_eq!(resets.take(now), RESET);
            resets.begun();
            resets.failed();
            let wait = resets.wait(now).expect("it is still wanted");
            waits.push(wait.as_secs() / PAUSE.as_secs());
            now += wait;
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 32, 32]);
        resets.take(now);
        resets.begun();
        resets.done();
        assert_eq!(resets.wait(now), None);
        assert!(resets.ask(RESET.to_owned()));
        assert_eq!(resets.wait(now), Some(PAUSE), "it has served");
    }

    #[test]
    fn a_generation_that_nobody_has_asked_to_empty_the_cache_fails_for_itself() {
        let (mut resets, now) = (Resets::default(), Instant::now());
        resets.begun();
        resets.ask(RESET.to_owned());
        resets.failed();
        assert_eq!(resets.wait(now), Some(Duration::ZERO));
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
