//! What `rate_limit` refuses, under the names of mholt/caddy-ratelimit; without its label `key`, of which there is no end.

use crate::families::{Series, counter, gauge, labels};
use crate::gauges::RateZoneGauge;
use prometheus::proto::MetricFamily;

pub(crate) fn families(zones: &[RateZoneGauge]) -> [MetricFamily; 3] {
    let each = |value: fn(&RateZoneGauge) -> u64| -> Series<f64> {
        zones.iter().map(|zone| (labels(&[("zone", &zone.zone)]), value(zone) as f64)).collect()
    };
    [
        counter(
            "caddy_rate_limit_requests_total",
            "Requests that a zone of rate_limit was asked about, those that it refused with them.",
            each(|zone| zone.requests),
        ),
        counter(
            "caddy_rate_limit_declined_requests_total",
            "Requests that a zone of rate_limit refused.",
            each(|zone| zone.declined),
        ),
        gauge(
            "caddy_rate_limit_keys_total",
            "Keys that a zone of rate_limit remembers now.",
            each(|zone| zone.keys),
        ),
    ]
}
