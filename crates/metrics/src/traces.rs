//! Spans that are sent to a collector, as Prometheus reads it.

use crate::families::{counter, labels};
use crate::gauges::TraceGauges;
use prometheus::proto::MetricFamily;

pub(crate) fn families(traces: &TraceGauges) -> [MetricFamily; 2] {
    let dropped = traces.dropped.iter();
    let dropped = dropped.map(|(reason, spans)| (labels(&[("reason", *reason)]), *spans as f64));
    [
        counter(
            "regent_traces_exported_total",
            "Spans of traces that the collector has taken.",
            [(vec![], traces.exported as f64)],
        ),
        counter(
            "regent_traces_dropped_total",
            "Spans of traces that the collector has not got, by reason.",
            dropped,
        ),
    ]
}
