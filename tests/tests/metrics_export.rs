//! Metrics that are sent to a collector of OpenTelemetry.
#![forbid(unsafe_code)]

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use prost::Message;
use regent_tests::upstream::ok;
use regent_tests::{Server, Setup, Upstream, own_address, until};
use std::net::SocketAddr;

const NEVER: &str = "3600000";

/// Takes whatever comes.
fn collector() -> Upstream {
    Upstream::answering(|_| ok("Content-Type: application/x-protobuf\r\n", ""))
}

/// Everything that a collector has got, by the requests to it.
fn exports(collector: &Upstream) -> Vec<Vec<Metric>> {
    let requests = collector.requests().into_iter().map(|request| {
        assert_eq!(request.line(), "POST /v1/metrics HTTP/1.1");
        let export = ExportMetricsServiceRequest::decode(&request.body[..]).expect("a message of OTLP");
        let of_resource = export.resource_metrics.into_iter().flat_map(|metrics| metrics.scope_metrics);
        of_resource.flat_map(|metrics| metrics.metrics).collect()
    });
    requests.collect()
}

/// The sum of all series of a counter.
fn counted(metrics: &[Metric], name: &str) -> Option<f64> {
    let metric = metrics.iter().find(|metric| metric.name == name)?;
    let Some(Data::Sum(sum)) = &metric.data else { panic!("{name} is no counter: {metric:?}") };
    let values = sum.data_points.iter().map(|point| match point.value {
        Some(Value::AsDouble(value)) => value,
        ref other => panic!("{name} has {other:?}"),
    });
    Some(values.sum())
}

fn sending(collector: SocketAddr, interval: &str) -> Setup {
    Setup::new()
        .admin("ADMIN")
        .global_options("metrics {\n\t\totlp\n\t}")
        .file("page.php", "<?php echo 'page';")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{collector}"))
        .env("OTEL_METRIC_EXPORT_INTERVAL", interval)
}

#[test]
fn a_collector_gets_what_prometheus_would() {
    let collector = collector();
    let server = sending(collector.address(), "50").start();
    for _ in 0..3 {
        assert_eq!(server.get("/page.php").text(), "page");
    }
    let metrics = until("three requests are counted", || {
        let counts = |metrics: &Vec<Metric>| counted(metrics, "regent_requests_total") >= Some(3.0);
        exports(&collector).into_iter().find(counts)
    });
    let scraped = server.admin().get("/metrics").text();
    let names = scraped.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let missing: Vec<_> = names.filter(|name| metrics.iter().all(|metric| metric.name != *name)).collect();
    assert_eq!(missing, [""; 0]);
    server.stop();
}

#[test]
fn a_stop_sends_what_was_counted_last() {
    let collector = collector();
    let server = sending(collector.address(), NEVER).start();
    assert_eq!(server.get("/page.php").text(), "page");
    assert_eq!(exports(&collector).len(), 0);
    server.stop();
    let exports = exports(&collector);
    let [metrics] = &exports[..] else { panic!("{} exports", exports.len()) };
    assert_eq!(counted(metrics, "regent_requests_total"), Some(1.0));
}

#[test]
fn nobody_waits_for_a_collector_that_is_not_there() {
    let server = sending(own_address(), "20").start();
    server.wait_for_log("the collector does not take metrics");
    assert_eq!(server.get("/page.php").text(), "page");
    let complaints = server.log().matches("the collector does not take metrics").count();
    assert_eq!(complaints, 1, "the log says it once");
    server.stop();
}

#[test]
fn a_reload_begins_and_ends_it() {
    let collector = collector();
    let caddyfile = |metrics: &str| {
        format!(
            "{{\n\tadmin ADMIN\n{metrics}}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\troot * ROOT\n\tphp_server\n}}\n"
        )
    };
    let (with, without) = (caddyfile("\tmetrics {\n\t\totlp\n\t}\n"), caddyfile(""));
    let server = sending(collector.address(), NEVER).caddyfile(&without).start();
    reload(&server, &with);
    // With the thread that sends goes what was counted last.
    reload(&server, &without);
    until("the last metrics come", || (exports(&collector).len() == 1).then_some(()));
    server.stop();
    assert_eq!(exports(&collector).len(), 1);
}

fn reload(server: &Server, caddyfile: &str) {
    server.write_caddyfile(caddyfile);
    server.admin().request("POST", "/regent/reload").send().expect(200);
}
