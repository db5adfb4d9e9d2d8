//! What one thread counts for a pool and for a route, and the sums over all threads.

use crate::bounds::Sample;
use crate::counter::{Counter, Greatest, Latest};
use crate::histogram::{CoarseHistogram, Histogram};
use crate::snapshot::{CoarseSnapshot, Snapshot};
use regent_dispatch::admission::Reason;
use std::array;
use std::ops::AddAssign;

/// Classes of the status; the last is for what an engine may send outside of them.
pub(crate) const STATUS_CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "5xx", "other"];

fn status_class(status: u16) -> usize {
    match status / 100 {
        class @ 2..=5 => usize::from(class) - 2,
        _ => STATUS_CLASSES.len() - 1,
    }
}

/// Parts of a request of which the quantiles are known by route. Those of a pool follow from its routes'.
#[derive(Clone, Copy)]
pub(crate) enum RoutePhase {
    QueueWait,
    Execution,
    Cpu,
    Total,
}

pub(crate) const ROUTE_PHASES: usize = 4;

/// Parts of a request of which the quantiles are known by pool, and by route the buckets that Prometheus gets.
#[derive(Clone, Copy)]
pub(crate) enum PoolPhase {
    FirstByte,
}

pub(crate) const POOL_PHASES: usize = 1;

/// Of one pool by one thread: 2.5 KiB.
pub(crate) struct PoolFigures {
    phases: [Histogram; POOL_PHASES],
}

impl PoolFigures {
    pub fn add(&self, phase: PoolPhase, sample: Sample) {
        self.phases[phase as usize].add(sample);
    }

    pub fn add_to(&self, totals: &mut [Snapshot; POOL_PHASES]) {
        for (total, phase) in totals.iter_mut().zip(&self.phases) {
            total.merge(&phase.snapshot());
        }
    }
}

impl Default for PoolFigures {
    fn default() -> Self {
        Self { phases: array::from_fn(|_| Histogram::default()) }
    }
}

/// Of one route by one thread: 10.5 KiB.
#[derive(Default)]
pub(crate) struct RouteFigures {
    pub answers: StatusCounters,
    pub shed: ReasonCounters,
    pub lost: Counter,
    pub overdue: Counter,
    pub retried: Counter,
    /// Answered requests that had a deadline, and those of them that missed it.
    pub promised: Counter,
    pub missed: Counter,
    /// The deadline of the last request that had one, in ns; 0 without any.
    pub deadline: Latest,
    /// The longest request since the last tick, in ns.
    pub worst: Greatest,
    fine: [Histogram; ROUTE_PHASES],
    coarse: [CoarseHistogram; POOL_PHASES],
}

#[derive(Default)]
pub(crate) struct StatusCounters([Counter; STATUS_CLASSES.len()]);

impl StatusCounters {
    pub fn count(&self, status: u16) {
        self.0[status_class(status)].add(1);
    }
}

#[derive(Default)]
pub(crate) struct ReasonCounters([Counter; Reason::ALL.len()]);

impl ReasonCounters {
    pub fn count(&self, reason: Reason) {
        self.0[reason as usize].add(1);
    }
}

impl RouteFigures {
    pub fn add(&self, phase: RoutePhase, sample: Sample) {
        self.fine[phase as usize].add(sample);
    }

    pub fn add_coarsely(&self, phase: PoolPhase, sample: Sample) {
        self.coarse[phase as usize].add(sample);
    }

    pub fn add_to(&self, totals: &mut RouteTotals) {
        totals.counts += self.counts();
        totals.deadline = totals.deadline.max(self.deadline.get());
        for (total, phase) in totals.fine.iter_mut().zip(&self.fine) {
            total.merge(&phase.snapshot());
        }
        for (total, phase) in totals.coarse.iter_mut().zip(&self.coarse) {
            total.merge(&phase.snapshot());
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            answers: array::from_fn(|class| self.answers.0[class].get()),
            shed: array::from_fn(|reason| self.shed.0[reason].get()),
            lost: self.lost.get(),
            overdue: self.overdue.get(),
            retried: self.retried.get(),
            promised: self.promised.get(),
            missed: self.missed.get(),
        }
    }
}

/// Of one route, by all threads.
#[derive(Clone, Default)]
pub(crate) struct RouteTotals {
    pub counts: Counts,
    /// In ns; 0: none.
    pub deadline: u64,
    /// By [`RoutePhase`].
    pub fine: [Snapshot; ROUTE_PHASES],
    /// By [`PoolPhase`].
    pub coarse: [CoarseSnapshot; POOL_PHASES],
}

/// What became of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// By [`STATUS_CLASSES`].
    pub answers: [u64; STATUS_CLASSES.len()],
    /// By [`Reason`].
    pub shed: [u64; Reason::ALL.len()],
    pub lost: u64,
    /// Ran for longer than they may.
    pub overdue: u64,
    /// Run once more, because an engine died with them.
    pub retried: u64,
    pub promised: u64,
    pub missed: u64,
}

impl Counts {
    pub fn answered(&self) -> u64 {
        self.answers.iter().sum()
    }

    pub fn miss_ratio(&self) -> f64 {
        if self.promised == 0 { 0.0 } else { self.missed as f64 / self.promised as f64 }
    }

    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            answers: array::from_fn(|class| self.answers[class] - earlier.answers[class]),
            shed: array::from_fn(|reason| self.shed[reason] - earlier.shed[reason]),
            lost: self.lost - earlier.lost,
            overdue: self.overdue - earlier.overdue,
            retried: self.retried - earlier.retried,
            promised: self.promised - earlier.promised,
            missed: self.missed - earlier.missed,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.answers.iter_mut().zip(other.answers) {
            *count += more;
        }
        for (count, more) in self.shed.iter_mut().zip(other.shed) {
            *count += more;
        }
        self.lost += other.lost;
        self.overdue += other.overdue;
        self.retried += other.retried;
        self.promised += other.promised;
        self.missed += other.missed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class() {
        let classes = [200, 299, 304, 404, 500, 599, 103, 600, 999, 0]
            .map(|status| STATUS_CLASSES[status_class(status)]);
        assert_eq!(classes, ["2xx", "2xx", "3xx", "4xx", "5xx", "5xx", "other", "other", "other", "other"]);
    }

    #[test]
    fn reasons_are_counted_in_the_order_of_all() {
        assert!(Reason::ALL.iter().enumerate().all(|(index, reason)| *reason as usize == index));
    }

    #[test]
    fn what_a_thread_keeps_is_as_small_as_documented() {
        assert!(size_of::<PoolFigures>() <= 2_560 && size_of::<RouteFigures>() <= 10_752);
    }
}
