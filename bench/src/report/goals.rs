//! What Regent promises of its speed, against what was measured.

use serde::Serialize;

use super::rows::{Row, select};
use crate::hello::Sample;
use crate::peers::ServerKind;
use crate::statistics::{Comparison, Verdict};

/// Connections at which the throughput is promised, and the least ratios to php-fpm.
const LOADED: [u32; 3] = [10, 100, 500];
const CLASSIC_RATIO: f64 = 2.5;
const WORKER_RATIO: f64 = 3.5;
/// Connections at which the tail is promised, and the largest p99 ÷ (connections ÷ throughput).
const TAIL_CONNECTIONS: u32 = 100;
const TAIL_RATIO: f64 = 1.7;

/// One promise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    pub promise: String,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "measured")]
pub enum Outcome {
    Met(f64),
    Missed(f64),
    NotMeasured,
}

/// All promises, whether or not this run measured them.
pub fn check(rows: &[Row], samples: &[Sample]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (server, least) in [(ServerKind::Classic, CLASSIC_RATIO), (ServerKind::Worker, WORKER_RATIO)] {
        for connections in LOADED {
            let ratio =
                find(rows, server, connections).and_then(|row| row.versus).map(|versus| versus.ratio.median);
            goals.push(Goal {
                promise: format!(
                    "{server}, {connections} connections: throughput at least {least} × php-fpm's"
                ),
                outcome: Outcome::of(ratio, |ratio| ratio >= least),
            });
        }
        let tail =
            find(rows, server, TAIL_CONNECTIONS).and_then(|row| row.p99_over_mean).map(|tail| tail.median);
        goals.push(Goal {
            promise: format!(
                "{server}, {TAIL_CONNECTIONS} connections: p99 at most {TAIL_RATIO} × (connections ÷ throughput)"
            ),
            outcome: Outcome::of(tail, |tail| tail <= TAIL_RATIO),
        });
        goals.push(latency_alone(server, samples));
    }
    goals
}

/// One connection: a p50 no worse than php-fpm's, which it also is where the spreads overlap.
fn latency_alone(server: ServerKind, samples: &[Sample]) -> Goal {
    let medians = |server| -> Vec<f64> {
        select(samples, server, 1).iter().map(|sample| sample.load.latency_ms.p50).collect()
    };
    let comparison = Comparison::of(&medians(server), &medians(ServerKind::Fpm));
    let equal = comparison.is_some_and(|comparison| comparison.verdict == Verdict::NoDifference);
    Goal {
        promise: format!("{server}, 1 connection: p50 at most 1 × php-fpm's"),
        outcome: Outcome::of(comparison.map(|c| c.ratio.median), |ratio| ratio <= 1.0 || equal),
    }
}

fn find(rows: &[Row], server: ServerKind, connections: u32) -> Option<&Row> {
    rows.iter().find(|row| row.server == server && row.connections == connections)
}

impl Outcome {
    fn of(measured: Option<f64>, kept: impl Fn(f64) -> bool) -> Self {
        match measured {
            None => Self::NotMeasured,
            Some(value) if kept(value) => Self::Met(value),
            Some(value) => Self::Missed(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::rows::summarize;

    fn outcomes(samples: &[Sample], server: ServerKind) -> Vec<Outcome> {
        let goals = check(&summarize(samples, ServerKind::Fpm), samples);
        goals.into_iter().filter(|g| g.promise.starts_with(&server.to_string())).map(|g| g.outcome).collect()
    }

    #[test]
    fn goals_are_met_missed_or_not_measured() {
        let samples = [
            Sample::made_up(ServerKind::Worker, 100, 1, 80_000.0, 3.0),
            Sample::made_up(ServerKind::Fpm, 100, 1, 25_000.0, 5.0),
        ];
        // 3.2 × instead of 3.5; p99 is 3.0 ÷ (100 ÷ 80 per ms) = 2.4.
        assert_eq!(
            outcomes(&samples, ServerKind::Worker),
            [
                Outcome::NotMeasured,
                Outcome::Missed(3.2),
                Outcome::NotMeasured,
                Outcome::Missed(2.4),
                Outcome::NotMeasured
            ]
        );
        assert!(
            outcomes(&samples, ServerKind::Classic).iter().all(|outcome| *outcome == Outcome::NotMeasured)
        );
    }

    #[test]
    fn a_median_that_cannot_be_told_from_php_fpms_is_no_worse() {
        let samples = [
            Sample::made_up(ServerKind::Classic, 1, 1, 9_000.0, 2.2),
            Sample::made_up(ServerKind::Fpm, 1, 1, 9_000.0, 2.0),
            Sample::made_up(ServerKind::Classic, 1, 2, 9_000.0, 2.4),
            Sample::made_up(ServerKind::Fpm, 1, 2, 9_000.0, 2.3),
        ];
        assert!(matches!(outcomes(&samples, ServerKind::Classic)[4], Outcome::Met(ratio) if ratio > 1.0));
        assert!(matches!(outcomes(&samples[..2], ServerKind::Classic)[4], Outcome::Missed(_)));
    }
}
