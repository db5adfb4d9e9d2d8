//! A count beside the stored one.

use std::collections::{BTreeMap, BTreeSet};

use crate::build::Build;
use crate::scenario::{Figure, Scenario};
use crate::stored::Stored;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Within the tolerance.
    Same { change: Change },
    /// More instructions than the tolerance allows.
    Costlier { change: Change },
    /// So many fewer that the stored figure would hide a later loss.
    Cheaper { change: Change },
    /// There is no stored figure for this build.
    NotCompared { counted: u64 },
}

/// Instructions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub stored: u64,
    pub counted: u64,
}

impl Change {
    /// In per cent of the stored figure.
    pub fn percent(self) -> f64 {
        (self.counted as f64 / self.stored as f64 - 1.0) * 100.0
    }
}

/// Judges each of these counts.
pub fn compare(stored: &Stored, build: &Build, counted: &BTreeMap<Figure, u64>) -> Vec<(Figure, Verdict)> {
    let judge = |(&figure, &counted): (&Figure, &u64)| match stored.get(build, figure) {
        Some(stored_count) => {
            (figure, judge(Change { stored: stored_count, counted }, stored.tolerance_percent))
        }
        None => (figure, Verdict::NotCompared { counted }),
    };
    counted.iter().map(judge).collect()
}

/// The scenarios with a figure that is costlier, each once.
pub fn costlier(verdicts: &[(Figure, Verdict)]) -> BTreeSet<Scenario> {
    let is_costlier = |verdict: &Verdict| matches!(verdict, Verdict::Costlier { .. });
    verdicts.iter().filter(|(_, verdict)| is_costlier(verdict)).map(|(figure, _)| figure.scenario).collect()
}

fn judge(change: Change, tolerance_percent: f64) -> Verdict {
    match change.percent() {
        percent if percent > tolerance_percent => Verdict::Costlier { change },
        percent if percent < -tolerance_percent => Verdict::Cheaper { change },
        _ => Verdict::Same { change },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Process;
    use crate::stored::tests::{build, empty};

    #[test]
    fn a_change_counts_beyond_the_tolerance_in_both_directions() {
        let judge = |counted| judge(Change { stored: 10_000, counted }, 2.0);
        let change = |counted| Change { stored: 10_000, counted };
        assert_eq!(judge(10_201), Verdict::Costlier { change: change(10_201) });
        assert_eq!(judge(10_199), Verdict::Same { change: change(10_199) });
        assert_eq!(judge(9_801), Verdict::Same { change: change(9_801) });
        assert_eq!(judge(9_799), Verdict::Cheaper { change: change(9_799) });
    }

    #[test]
    fn a_scenario_is_counted_again_once_for_both_its_processes() {
        let figure = |process| Figure { process, scenario: Scenario::Classic };
        let change = Change { stored: 100, counted: 200 };
        let costlier_one = |process| (figure(process), Verdict::Costlier { change });
        let same = (
            Figure { process: Process::Server, scenario: Scenario::File },
            Verdict::Same { change: Change { stored: 1, counted: 1 } },
        );
        let verdicts = [costlier_one(Process::Server), costlier_one(Process::Engine), same];
        assert_eq!(costlier(&verdicts), BTreeSet::from([Scenario::Classic]));
    }

    #[test]
    fn figures_of_another_build_are_not_compared() {
        let figure = Figure { process: Process::Server, scenario: Scenario::Respond };
        let mut stored = empty();
        stored.store(build("1.90.0"), BTreeMap::from([(figure, 100)]));
        let verdict = |rustc| compare(&stored, &build(rustc), &BTreeMap::from([(figure, 200)]))[0].1;
        assert_eq!(verdict("1.90.0"), Verdict::Costlier { change: Change { stored: 100, counted: 200 } });
        assert_eq!(verdict("1.91.0"), Verdict::NotCompared { counted: 200 });
    }
}
