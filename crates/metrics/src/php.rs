//! Which PHP the engines run.

use crate::families::{gauge, labels};
use crate::gauges::PhpGauge;
use prometheus::proto::MetricFamily;

pub(crate) fn families(php: &PhpGauge) -> [MetricFamily; 2] {
    let known = labels(&[("version", &php.version), ("package", &php.package), ("state", php.state)]);
    [
        gauge("regent_php_info", "Always 1; the labels say which PHP the engines run.", [(known, 1.0)]),
        gauge(
            "regent_php_below_floor",
            "Whether that PHP has holes that are known and run an attacker's code: 1 or 0.",
            [(vec![], f64::from(u8::from(php.is_below_floor)))],
        ),
    ]
}
