//! Families of series, as the library that writes them has them.

use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use std::time::Duration;

pub(crate) type Labels = Vec<LabelPair>;
pub(crate) type Series<V> = Vec<(Labels, V)>;

pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().map(label).collect()
}

pub(crate) fn label((name, value): (&str, &str)) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.into());
    pair.set_value(value.into());
    pair
}

pub(crate) fn counter(
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (Labels, f64)>,
) -> MetricFamily {
    family(name, help, MetricType::COUNTER, series, |metric, value| {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    })
}

pub(crate) fn gauge(name: &str, help: &str, series: impl IntoIterator<Item = (Labels, f64)>) -> MetricFamily {
    family(name, help, MetricType::GAUGE, series, |metric, value| {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
    })
}

pub(crate) fn family<V>(
    name: &str,
    help: &str,
    kind: MetricType,
    series: impl IntoIterator<Item = (Labels, V)>,
    set: impl Fn(&mut Metric, V),
) -> MetricFamily {
    let metric = |(labels, value)| {
        let mut metric = Metric::from_label(labels);
        set(&mut metric, value);
        metric
    };
    let mut family = MetricFamily::default();
    family.set_name(name.into());
    family.set_help(help.into());
    family.set_field_type(kind);
    family.set_metric(series.into_iter().map(metric).collect());
    family
}

pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
