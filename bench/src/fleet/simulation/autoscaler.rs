//! The algorithm of Kubernetes' HorizontalPodAutoscaler, as far as a fleet of equal pods needs it
//! (pkg/controller/podautoscaler/horizontal.go): desired pods by each metric, the more of them; the most cautious
//! recommendation of a window; bounds on what may change in a period.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Moment, nanoseconds};
use crate::fleet::model::{Autoscaling, Bounds};

/// A metric that differs from its target by less changes nothing.
const TOLERANCE: f64 = 0.1;

pub struct Autoscaler {
    options: Autoscaling,
    least: usize,
    /// Pods that are wanted: that serve or start.
    pods: usize,
    totals: Totals,
    /// At each look.
    history: VecDeque<(Moment, Totals)>,
    recommended: VecDeque<(Moment, usize)>,
    /// What was added or taken away, and when.
    changes: VecDeque<(Moment, i64)>,
}

/// Since the beginning.
#[derive(Clone, Copy, Default)]
struct Totals {
    requests: f64,
    wait_seconds: f64,
    busy_seconds: f64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub more: usize,
    pub fewer: usize,
}

impl Autoscaler {
    pub fn new(options: Autoscaling, pods: usize) -> Self {
        Self {
            options,
            least: pods,
            pods,
            totals: Totals::default(),
            history: VecDeque::from([(0, Totals::default())]),
            recommended: VecDeque::new(),
            changes: VecDeque::new(),
        }
    }

    pub fn start(&self) -> Moment {
        nanoseconds(self.options.start)
    }

    pub fn sync(&self) -> Moment {
        nanoseconds(self.options.sync)
    }

    /// A request has begun to run.
    pub fn observe(&mut self, wait: Moment, service: Moment) {
        self.totals.requests += 1.0;
        self.totals.wait_seconds += wait as f64 / 1e9;
        self.totals.busy_seconds += service as f64 / 1e9;
    }

    /// `serving` pods have so many threads together.
    pub fn look(&mut self, now: Moment, serving: usize, threads: usize) -> Change {
        let desired = self.desired(now, serving, threads);
        let stable = self.stabilized(now, desired);
        let wanted = self.bounded(now, stable);
        let change = Change {
            more: wanted.saturating_sub(self.pods),
            fewer: self.pods.saturating_sub(wanted).min(serving.saturating_sub(1)),
        };
        self.changes.push_back((now, change.more as i64 - change.fewer as i64));
        self.pods = self.pods + change.more - change.fewer;
        change
    }

    /// By the metric that asks for more. Pods that start count with nothing, as there.
    fn desired(&mut self, now: Moment, serving: usize, threads: usize) -> usize {
        let begin = now.saturating_sub(nanoseconds(self.options.window));
        while self.history.get(1).is_some_and(|(at, _)| *at <= begin) {
            self.history.pop_front();
        }
        let (since, before) = self.history.front().copied().unwrap_or_default();
        self.history.push_back((now, self.totals));
        let requests = self.totals.requests - before.requests;
        let wait = (self.totals.wait_seconds - before.wait_seconds) / requests.max(1.0);
        let thread_seconds = (now - since) as f64 / 1e9 * threads as f64;
        let busy = (self.totals.busy_seconds - before.busy_seconds) / thread_seconds.max(f64::MIN_POSITIVE);
        let by_wait = self.by(serving, wait / self.options.target_wait.as_secs_f64());
        let by_busy = self.by(serving, busy / self.options.target_busy);
        by_wait.max(by_busy).clamp(self.least, self.options.most)
    }

    fn by(&self, serving: usize, ratio: f64) -> usize {
        let ratio_of_all = ratio * serving as f64 / self.pods.max(1) as f64;
        if (ratio_of_all - 1.0).abs() <= TOLERANCE {
            return self.pods;
        }
        // A cast is not more than the greatest number.
        (ratio * serving as f64).ceil() as usize
    }

    fn stabilized(&mut self, now: Moment, desired: usize) -> usize {
        self.recommended.push_back((now, desired));
        let longest = self.options.up.stabilization.max(self.options.down.stabilization);
        while self.recommended.front().is_some_and(|(at, _)| *at + nanoseconds(longest) < now) {
            self.recommended.pop_front();
        }
        let within = |window: Duration| {
            let begin = now.saturating_sub(nanoseconds(window));
            self.recommended.iter().filter(move |(at, _)| *at >= begin).map(|(_, pods)| *pods)
        };
        let up = within(self.options.up.stabilization).min().unwrap_or(desired);
        let down = within(self.options.down.stabilization).max().unwrap_or(desired);
        if up > self.pods { up } else { down.min(self.pods) }
    }

    /// `min_by` of the policies' bounds: the one that allows more.
    fn bounded(&self, now: Moment, wanted: usize) -> usize {
        let at_begin = |bounds: Bounds, is_meant: fn(i64) -> bool| {
            let begin = now.saturating_sub(nanoseconds(bounds.period));
            let changed = self.changes.iter().filter(|(at, change)| *at > begin && is_meant(*change));
            (self.pods as i64 - changed.map(|(_, change)| change).sum::<i64>()).max(0) as usize
        };
        if wanted > self.pods {
            let (bounds, before) = (self.options.up, at_begin(self.options.up, |change| change > 0));
            let by_part = (before as f64 * (1.0 + bounds.part)).ceil() as usize;
            return wanted.min(by_part.max(before + bounds.pods)).max(self.pods);
        }
        let (bounds, before) = (self.options.down, at_begin(self.options.down, |change| change < 0));
        let by_part = (before as f64 * (1.0 - bounds.part)).floor() as usize;
        wanted.max(by_part.min(before.saturating_sub(bounds.pods))).min(self.pods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Moment = 1_000_000_000;

    /// All pods serve at once; what is wanted every 15 s.
    fn pods(wait_ms: impl Fn(u64) -> u64, busy: f64, seconds: u64) -> Vec<usize> {
        let mut autoscaler = Autoscaler::new(Autoscaling::packaged(50), 10);
        (1..=seconds / 15)
            .map(|look| {
                let threads = autoscaler.pods;
                for _ in 0..100 {
                    let service = busy * threads as f64 * 15.0 / 100.0;
                    autoscaler.observe(wait_ms(look * 15) * 1_000_000, (service * 1e9) as Moment);
                }
                autoscaler.look(look * 15 * SECOND, threads, threads);
                autoscaler.pods
            })
            .collect()
    }

    #[test]
    fn a_target_that_is_met_changes_nothing() {
        assert!(pods(|_| 50, 0.3, 600).iter().all(|pods| *pods == 10));
        assert!(pods(|_| 0, 0.7, 600).iter().all(|pods| *pods == 10));
    }

    #[test]
    fn a_wait_raises_by_half_in_a_minute_at_most() {
        let pods = pods(|_| 1000, 0.5, 300);
        assert_eq!(pods[3], 15, "after a minute: {pods:?}");
        assert!(pods.windows(5).all(|five| five[4] <= (five[0] * 3).div_ceil(2)), "{pods:?}");
        assert_eq!(pods.last(), Some(&50), "{pods:?}");
    }

    #[test]
    fn fewer_are_wanted_only_after_five_minutes() {
        let pods = pods(|second| if second <= 60 { 1000 } else { 0 }, 0.1, 1200);
        let most = *pods.iter().max().expect("there are some");
        let last = pods.iter().rposition(|pods| *pods == most).expect("it is one of them");
        assert!(last >= 60 / 15 + 300 / 15 - 1, "{pods:?}");
        assert_eq!(pods.last(), Some(&10), "never fewer than at first: {pods:?}");
    }
}
