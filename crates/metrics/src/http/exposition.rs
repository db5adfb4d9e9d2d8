//! The families, under the names, labels and buckets of Caddy.

use super::HttpFamily;
use super::buckets::{BucketTotals, DURATIONS, SIZES};
use super::figures::{HttpTotals, ScopeTotals, SeriesTotals};
use super::scopes::{HostLabel, Scope, ScopeId};
use crate::families::{Series, counter, family, gauge, labels};
use prometheus::proto::{Bucket, Histogram, Metric, MetricFamily, MetricType};

/// So many of what is counted are one of Prometheus' units.
const NANOS_PER_SECOND: f64 = 1e9;
const BYTES_PER_BYTE: f64 = 1.0;

/// Series of scopes with a host, or those without: only one kind belongs to the configuration.
pub(crate) fn families(http: &HttpFamily, host: HostLabel) -> Vec<MetricFamily> {
    let figures = Figures { scopes: http.scopes.all(), totals: HttpTotals::of(&http.threads()), host };
    let durations = |value: fn(&SeriesTotals) -> &BucketTotals<{ DURATIONS.len() }>| {
        figures.by_series(|totals| histogram(&DURATIONS, value(totals), NANOS_PER_SECOND))
    };
    let sizes = |value: fn(&SeriesTotals) -> &BucketTotals<{ SIZES.len() }>| {
        figures.by_series(|totals| histogram(&SIZES, value(totals), BYTES_PER_BYTE))
    };
    vec![
        gauge(
            "caddy_http_requests_in_flight",
            "Number of requests currently handled by this server.",
            figures.by_scope(|totals| totals.in_flight() as f64),
        ),
        counter(
            "caddy_http_request_errors_total",
            "Number of requests resulting in middleware errors.",
            figures.by_scope(|totals| totals.failed as f64),
        ),
        counter(
            "caddy_http_requests_total",
            "Counter of HTTP(S) requests made.",
            figures.by_scope(|totals| totals.ended as f64),
        ),
        histograms(
            "caddy_http_request_duration_seconds",
            "Histogram of round-trip request durations.",
            durations(|totals| &totals.duration),
        ),
        histograms(
            "caddy_http_request_size_bytes",
            "Total size of the request. Includes body",
            sizes(|totals| &totals.request_size),
        ),
        histograms(
            "caddy_http_response_size_bytes",
            "Size of the returned response.",
            sizes(|totals| &totals.response_size),
        ),
        histograms(
            "caddy_http_response_duration_seconds",
            "Histogram of times to first byte in response bodies.",
            durations(|totals| &totals.first_byte),
        ),
    ]
}

struct Figures {
    scopes: Vec<Scope>,
    totals: HttpTotals,
    host: HostLabel,
}

impl Figures {
    fn by_scope(&self, value: fn(&ScopeTotals) -> f64) -> Series<f64> {
        let series = self.totals.scopes.iter().filter_map(|(id, totals)| {
            let scope = self.scope(*id)?;
            Some((labels(&in_order(scope, None)), value(totals)))
        });
        series.collect()
    }

    fn by_series(&self, value: impl Fn(&SeriesTotals) -> Histogram) -> Series<Histogram> {
        let series = self.totals.series.iter().filter_map(|(key, totals)| {
            let (scope, code) = (self.scope(key.scope)?, key.status.to_string());
            Some((labels(&in_order(scope, Some((&code, key.method.text())))), value(totals)))
        });
        series.collect()
    }

    /// `None`: one of the other kind.
    fn scope(&self, id: ScopeId) -> Option<&Scope> {
        let scope = &self.scopes[id.index()];
        (scope.host.is_some() == (self.host == HostLabel::Shown)).then_some(scope)
    }
}

/// In the order of the alphabet, as Caddy writes them. `response`: code and method.
fn in_order<'a>(scope: &'a Scope, response: Option<(&'a str, &'a str)>) -> Vec<(&'a str, &'a str)> {
    let pairs = [
        response.map(|(code, _)| ("code", code)),
        Some(("handler", scope.handler)),
        scope.host.as_deref().map(|host| ("host", host)),
        response.map(|(_, method)| ("method", method)),
        Some(("server", &*scope.server)),
    ];
    pairs.into_iter().flatten().collect()
}

fn histograms(name: &str, help: &str, series: Series<Histogram>) -> MetricFamily {
    family(name, help, MetricType::HISTOGRAM, series, Metric::set_histogram)
}

fn histogram<const N: usize>(bounds: &[u64; N], totals: &BucketTotals<N>, per_unit: f64) -> Histogram {
    let mut count = 0;
    let bucket = |(bound, within): (&u64, &u64)| {
        count += within;
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound as f64 / per_unit);
        bucket.set_cumulative_count(count);
        bucket
    };
    let mut histogram = Histogram::default();
    histogram.set_bucket(bounds.iter().zip(&totals.within).map(bucket).collect());
    histogram.set_sample_count(count + totals.rest);
    histogram.set_sample_sum(totals.sum as f64 / per_unit);
    histogram
}
