//! Families of Prometheus as metrics of OpenTelemetry.
//!
//! As the specification has it for the way between the two (`compatibility/prometheus_and_openmetrics.md`): names stay as they
//! are, what counts is a cumulative sum, and buckets no longer contain those below them.

use crate::envelope::{nanoseconds, pair};
use crate::message::metrics::{
    CUMULATIVE, Data, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};
use crate::message::{KeyValue, Value};
use prometheus::proto;
use prometheus::proto::{MetricFamily, MetricType};
use std::time::SystemTime;

/// `started`: from when counters count.
pub(crate) fn metrics(families: &[MetricFamily], started: SystemTime, now: SystemTime) -> Vec<Metric> {
    let times = Times { started: nanoseconds(started), now: nanoseconds(now) };
    families.iter().map(|family| times.metric(family)).collect()
}

/// In nanoseconds since the Unix epoch.
struct Times {
    started: u64,
    now: u64,
}

impl Times {
    fn metric(&self, family: &MetricFamily) -> Metric {
        let points = |value: fn(&proto::Metric) -> f64, started: u64| {
            family.get_metric().iter().map(|metric| self.number(metric, value(metric), started)).collect()
        };
        let data = match family.get_field_type() {
            MetricType::COUNTER => Data::Sum(Sum {
                data_points: points(|metric| metric.get_counter().get_value(), self.started),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            MetricType::HISTOGRAM => Data::Histogram(Histogram {
                data_points: family.get_metric().iter().map(|metric| self.histogram(metric)).collect(),
                aggregation_temporality: CUMULATIVE,
            }),
            // Regent has no summaries.
            MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => {
                Data::Gauge(Gauge { data_points: points(|metric| metric.get_gauge().get_value(), 0) })
            }
        };
        Metric {
            name: family.name().to_owned(),
            description: family.help().to_owned(),
            unit: unit(family.name()).to_owned(),
            data: Some(data),
        }
    }

    fn number(&self, metric: &proto::Metric, value: f64, started: u64) -> NumberDataPoint {
        NumberDataPoint {
            start_time_unix_nano: started,
            time_unix_nano: self.now,
            as_double: Some(value),
            attributes: attributes(metric),
        }
    }

    fn histogram(&self, metric: &proto::Metric) -> HistogramDataPoint {
        let histogram = metric.get_histogram();
        let finite = histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite());
        let (mut explicit_bounds, mut bucket_counts, mut below) = (Vec::new(), Vec::new(), 0);
        for bucket in finite {
            explicit_bounds.push(bucket.upper_bound());
            bucket_counts.push(bucket.cumulative_count().saturating_sub(below));
            below = bucket.cumulative_count();
        }
        bucket_counts.push(histogram.get_sample_count().saturating_sub(below));
        HistogramDataPoint {
            start_time_unix_nano: self.started,
            time_unix_nano: self.now,
            count: histogram.get_sample_count(),
            sum: Some(histogram.get_sample_sum()),
            bucket_counts,
            explicit_bounds,
            attributes: attributes(metric),
        }
    }
}

fn attributes(metric: &proto::Metric) -> Vec<KeyValue> {
    let labels = metric.get_label().iter();
    labels.map(|label| pair(label.name().to_owned(), Value::Text(label.value().to_owned()))).collect()
}

/// In the code for units that OpenTelemetry uses (UCUM), by the end of the name, as Prometheus has it.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    let known = [("_seconds", "s"), ("_bytes", "By"), ("_ratio", "1")];
    known.into_iter().find(|(end, _)| name.ends_with(end)).map_or("", |(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Envelope;
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Official;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data as OfficialData;
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as OfficialValue;
    use prometheus::core::Collector;
    use prometheus::{GaugeVec, HistogramOpts, IntCounterVec, Opts};
    use prost::Message;
    use regent_config::OtlpCompression;
    use std::time::{Duration, UNIX_EPOCH};

    fn families() -> Vec<MetricFamily> {
        let requests = IntCounterVec::new(Opts::new("requests_total", "Requests."), &["pool"]).unwrap();
        requests.with_label_values(&["php"]).inc_by(7);
        requests.with_label_values(&["api"]).inc_by(2);
        let memory = GaugeVec::new(Opts::new("memory_used_bytes", "Bytes."), &[]).unwrap();
        memory.with_label_values::<&str>(&[]).set(4096.0);
        let options = HistogramOpts::new("wait_seconds", "Waits.").buckets(vec![0.1, 1.0]);
        let waits = prometheus::Histogram::with_opts(options).unwrap();
        [0.05, 0.05, 0.5, 20.0].into_iter().for_each(|wait| waits.observe(wait));
        [requests.collect(), memory.collect(), waits.collect()].concat()
    }

    /// What the protocol's own code makes of it.
    #[test]
    fn others_read_what_is_written() {
        let started = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let metrics = metrics(&families(), started, started + Duration::from_secs(60));
        let body = Envelope::new(&[], "1.2.3", OtlpCompression::None).of_metrics(metrics);
        let read = Official::decode(&body[..]).unwrap();
        let of_scope = &read.resource_metrics[0].scope_metrics[0];
        assert_eq!(of_scope.scope.as_ref().unwrap().name, "regent");
        let [requests, memory, waits] = &of_scope.metrics[..] else { panic!("{of_scope:?}") };

        let Some(OfficialData::Sum(sum)) = &requests.data else { panic!("{requests:?}") };
        assert_eq!((requests.name.as_str(), requests.description.as_str()), ("requests_total", "Requests."));
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        let mut points: Vec<_> = sum.data_points.iter().collect();
        points.sort_by_key(|point| format!("{:?}", point.attributes));
        assert!(format!("{:?}", points[1].attributes).contains("\"php\""));
        assert_eq!(points[1].value, Some(OfficialValue::AsDouble(7.0)));
        assert_eq!(points[1].start_time_unix_nano, 1_700_000_000_000_000_000);
        assert_eq!(points[1].time_unix_nano, 1_700_000_060_000_000_000);

        let Some(OfficialData::Gauge(gauge)) = &memory.data else { panic!("{memory:?}") };
        assert_eq!(memory.unit, "By");
        assert_eq!(gauge.data_points[0].value, Some(OfficialValue::AsDouble(4096.0)));

        let Some(OfficialData::Histogram(histogram)) = &waits.data else { panic!("{waits:?}") };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum, waits.unit.as_str()), (4, Some(20.6), "s"));
        assert_eq!((&point.explicit_bounds[..], &point.bucket_counts[..]), (&[0.1, 1.0][..], &[2, 1, 1][..]));
    }

    #[test]
    fn units_are_those_of_names() {
        for (name, want) in [("a_seconds_total", "s"), ("a_bytes", "By"), ("a_ratio", "1"), ("a_total", "")] {
            assert_eq!(unit(name), want, "{name}");
        }
    }
}
