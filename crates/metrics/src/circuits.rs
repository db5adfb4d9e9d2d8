//! What is refused because it kills engines, as Prometheus reads it.

use crate::Reason;
use crate::families::{counter, gauge, labels};
use crate::gauges::CircuitGauge;
use crate::reading::{PoolReading, Reading};
use prometheus::proto::MetricFamily;

pub(crate) fn families(reading: &Reading, circuits: &[CircuitGauge]) -> [MetricFamily; 2] {
    let open = circuits.iter().filter_map(|circuit| {
        let pool = reading.pools.iter().find(|pool| pool.id == circuit.pool)?;
        Some((labels(&[("pool", &pool.name), ("route", &circuit.route), ("script", &circuit.script)]), 1.0))
    });
    let rejected = reading.pools.iter().map(|pool| (labels(&[("pool", &pool.name)]), rejected(pool) as f64));
    [
        gauge(
            "regent_circuit_open",
            "1 for each route or script that is refused because it has killed its engine.",
            open,
        ),
        counter("regent_circuit_rejected_total", "Requests that an open circuit refused.", rejected),
    ]
}

fn rejected(pool: &PoolReading) -> u64 {
    pool.routes.iter().map(|route| route.totals.counts.shed[Reason::Circuit as usize]).sum()
}
