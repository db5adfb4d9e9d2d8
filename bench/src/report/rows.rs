//! Samples summarized over the rounds: one row for each server and number of connections.

use serde::Serialize;

use crate::hello::Sample;
use crate::peers::ServerKind;
use crate::statistics::{Comparison, Spread, distinct};

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub connections: u32,
    pub server: ServerKind,
    /// Requests per second.
    pub throughput: Spread,
    /// Throughput against the reference server's; `None` for itself and without it.
    pub versus: Option<Comparison>,
    pub p50_ms: Spread,
    pub p90_ms: Spread,
    pub p99_ms: Spread,
    pub p999_ms: Spread,
    pub max_ms: Spread,
    pub p99_over_mean: Option<Spread>,
    pub cpu_us_per_request: Option<Spread>,
    pub context_switches_per_request: Option<Spread>,
    /// Largest of the rounds.
    pub memory_bytes: u64,
    /// Largest of the rounds.
    pub threads: u64,
    /// Sum over the rounds.
    pub errors: u64,
}

/// By connections, then by server, each in the order in which they were first measured.
pub fn summarize(samples: &[Sample], reference: ServerKind) -> Vec<Row> {
    let connections = distinct(samples.iter().map(|sample| sample.connections));
    let servers = distinct(samples.iter().map(|sample| sample.server));
    let mut rows = Vec::new();
    for &connections in &connections {
        let base = throughputs(&select(samples, reference, connections));
        for &server in &servers {
            rows.extend(row(server, connections, &select(samples, server, connections), &base, reference));
        }
    }
    rows
}

/// The samples of one server at one number of connections, by round.
pub fn select(samples: &[Sample], server: ServerKind, connections: u32) -> Vec<&Sample> {
    let mut selected: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.server == server && sample.connections == connections)
        .collect();
    selected.sort_by_key(|sample| sample.round);
    selected
}

/// `None` without samples.
fn row(
    server: ServerKind,
    connections: u32,
    samples: &[&Sample],
    base: &[f64],
    reference: ServerKind,
) -> Option<Row> {
    let over = |value: &dyn Fn(&Sample) -> Option<f64>| {
        Spread::of(samples.iter().filter_map(|sample| value(sample)))
    };
    let latency = |value: &dyn Fn(&Sample) -> f64| Spread::of(samples.iter().map(|sample| value(sample)));
    let versus = if server == reference { None } else { Comparison::of(&throughputs(samples), base) };
    Some(Row {
        connections,
        server,
        throughput: Spread::of(throughputs(samples))?,
        versus,
        p50_ms: latency(&|sample| sample.load.latency_ms.p50)?,
        p90_ms: latency(&|sample| sample.load.latency_ms.p90)?,
        p99_ms: latency(&|sample| sample.load.latency_ms.p99)?,
        p999_ms: latency(&|sample| sample.load.latency_ms.p999)?,
        max_ms: latency(&|sample| sample.load.latency_ms.max)?,
        p99_over_mean: over(&|sample| sample.load.p99_over_mean(connections)),
        cpu_us_per_request: over(&|sample| sample.usage.cpu_us_per_request),
        context_switches_per_request: over(&|sample| sample.usage.context_switches_per_request),
        memory_bytes: samples.iter().map(|sample| sample.usage.memory_bytes).max()?,
        threads: samples.iter().map(|sample| sample.usage.threads).max()?,
        errors: samples.iter().map(|sample| sample.load.errors.total()).sum(),
    })
}

fn throughputs(samples: &[&Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.load.throughput).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Verdict;

    #[test]
    fn rows_are_medians_over_rounds_in_the_order_of_measurement() {
        let mut samples = Vec::new();
        for (round, worker) in [(1, 90_000.0), (2, 110_000.0), (3, 100_000.0)] {
            samples.push(Sample::made_up(ServerKind::Worker, 10, round, worker, 1.0));
            samples.push(Sample::made_up(ServerKind::Fpm, 10, round, worker / 4.0, 2.0));
        }
        let rows = summarize(&samples, ServerKind::Fpm);
        assert_eq!(
            rows.iter().map(|row| row.server).collect::<Vec<_>>(),
            [ServerKind::Worker, ServerKind::Fpm]
        );
        let expected = Spread { median: 100_000.0, min: 90_000.0, max: 110_000.0 };
        assert_eq!(rows[0].throughput, expected);
        let versus = rows[0].versus.expect("there is a reference");
        assert_eq!((versus.ratio.median, versus.verdict), (4.0, Verdict::Differs));
        assert!(rows[1].versus.is_none());
    }

    #[test]
    fn without_the_reference_there_is_no_ratio() {
        let rows = summarize(&[Sample::made_up(ServerKind::Apache, 10, 1, 1_000.0, 1.0)], ServerKind::Fpm);
        assert!(rows[0].versus.is_none());
    }

    #[test]
    fn errors_add_up_and_the_largest_memory_counts() {
        let mut samples: Vec<Sample> =
            (1..=2).map(|round| Sample::made_up(ServerKind::Fpm, 10, round, 1_000.0, 1.0)).collect();
        samples[0].load.errors.read = 2;
        samples[1].load.errors.timeout = 3;
        samples[1].usage.memory_bytes = 99 << 20;
        let rows = summarize(&samples, ServerKind::Fpm);
        assert_eq!((rows[0].errors, rows[0].memory_bytes), (5, 99 << 20));
    }
}
