use super::*;
use crate::{Environment, Errors, Loaded, OtlpCompression, OtlpEndpoint};
use std::path::Path;

fn load(variables: &[(&str, &str)]) -> Result<Loaded, Errors> {
    load_text(":80 {\n\ttracing\n}\n", variables)
}

fn load_text(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, Errors> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let environment = Environment { variables, current_dir: "/srv".into() };
    crate::parse("Caddyfile", text, Path::new("/srv"), &environment)
}

fn traces(variables: &[(&str, &str)]) -> Traces {
    let loaded = load(variables).unwrap();
    assert_eq!(loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    loaded.config.global.traces.unwrap()
}

fn export_of(variables: &[(&str, &str)]) -> TraceExport {
    traces(variables).export.unwrap()
}

fn url(endpoint: &OtlpEndpoint) -> String {
    let scheme = if endpoint.is_https { "https" } else { "http" };
    format!("{scheme} {} {} {}", endpoint.host, endpoint.port, endpoint.path)
}

#[test]
fn without_a_word_all_goes_to_a_collector_on_this_machine() {
    let found = traces(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]);
    assert_eq!(found.sampler, TraceSampler { ratio: 1.0, follows_parent: true });
    assert_eq!(found.propagation, TracePropagation::TraceContext);
    let export = found.export.unwrap();
    assert_eq!(url(&export.collector.endpoint), "http localhost 4318 /v1/traces");
    assert_eq!(export.batches, TraceBatches::default());
    assert_eq!(export.collector.resource, [("service.name".to_owned(), "regent".to_owned())]);
}

#[test]
fn endpoints() {
    let of_all = |text| url(&export_of(&[("OTEL_EXPORTER_OTLP_ENDPOINT", text)]).collector.endpoint);
    assert_eq!(of_all("https://collector.example"), "https collector.example 443 /v1/traces");
    assert_eq!(of_all("http://[::1]:4318/otlp/"), "http ::1 4318 /otlp/v1/traces");
    let of_traces = |text| {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://other:1");
        url(&export_of(&[all, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", text)]).collector.endpoint)
    };
    assert_eq!(of_traces("HTTP://a:1/x?key=1#part"), "http a 1 /x?key=1");
    assert_eq!(of_traces("http://a:1"), "http a 1 /");
    for bad in [
        "localhost:4318",
        "unix:/run/x",
        "http://",
        "http://a:0",
        "http://u@a",
        "http://[a]:1",
        "http://a:1/\u{e9}",
        "http://a b",
    ] {
        let errors = load(&[("OTEL_EXPORTER_OTLP_ENDPOINT", bad)]).unwrap_err().to_string();
        assert!(errors.starts_with("Caddyfile:2:2: OTEL_EXPORTER_OTLP_ENDPOINT="), "{bad}: {errors}");
    }
}

#[test]
fn samplers() {
    let of = |name, argument| {
        let found = traces(&[("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", argument)]).sampler;
        (found.ratio, found.follows_parent)
    };
    assert_eq!(of("always_on", "0.5"), (1.0, false));
    assert_eq!(of("always_off", ""), (0.0, false));
    assert_eq!(of("traceidratio", "0.25"), (0.25, false));
    assert_eq!(of("traceidratio", ""), (1.0, false));
    assert_eq!(of("parentbased_traceidratio", "0.01"), (0.01, true));
    assert_eq!(of("parentbased_always_off", ""), (0.0, true));
}

#[test]
fn secrets_and_names() {
    let export = export_of(&[
        ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20eA==, x-team = a=b ,"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=one,deployment.environment.name=a%2Cb"),
        ("OTEL_SERVICE_NAME", "shop"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
    ])
    .collector;
    let headers: Vec<_> =
        export.headers.iter().map(|(name, value)| (name.as_str(), value.0.as_str())).collect();
    assert_eq!(headers, [("authorization", "Basic eA=="), ("x-team", "a=b")]);
    let shown = serde_json::to_string(&export).unwrap();
    assert!(!shown.contains("eA=="), "{shown}");
    let resource: Vec<_> =
        export.resource.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(resource, [("deployment.environment.name", "a,b"), ("service.name", "shop")]);
    assert_eq!((export.compression, export.timeout), (OtlpCompression::Gzip, Duration::from_millis(1500)));
    assert_eq!(export.certificate.unwrap(), Path::new("/srv/ca.pem"));
}

#[test]
fn batches_have_bounds() {
    let batches = export_of(&[
        ("OTEL_BSP_MAX_QUEUE_SIZE", "100000000"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "100000000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "99999999999"),
    ])
    .batches;
    assert_eq!((batches.queue, batches.size), (MOST_QUEUED, MOST_QUEUED));
    assert_eq!((batches.delay, batches.patience), (Duration::from_millis(50), LONGEST));
}

#[test]
fn what_cannot_be_understood_is_a_warning_and_what_cannot_be_done_an_error() {
    let variables = [
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_PROPAGATORS", "b3,tracecontext,baggage"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_RESOURCE_ATTRIBUTES", "x"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
    ];
    let loaded = load(&variables).unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), variables.len(), "{warnings:#?}");
    assert!(
        warnings.iter().all(|warning| warning.starts_with("Caddyfile:2:2: ") && !warning.contains("secret"))
    );
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "key.pem"),
    ] {
        let errors = load(&[(name, value)]).unwrap_err();
        assert_eq!(errors.0.len(), 1);
        assert!(errors.to_string().contains(name), "{errors}");
    }
}

#[test]
fn traces_can_be_turned_off_in_whole_or_in_part() {
    let loaded = load(&[("OTEL_SDK_DISABLED", "True")]).unwrap();
    assert_eq!((loaded.config.global.traces, loaded.warnings.len()), (None, 1));
    let passed_on = traces(&[("OTEL_TRACES_EXPORTER", "none")]);
    assert_eq!(passed_on.export, None);
    assert_eq!(traces(&[("OTEL_PROPAGATORS", "none")]).propagation, TracePropagation::Nothing);
}

#[test]
fn metrics_are_sent_where_they_are_wanted() {
    let wanted = "{\n\tmetrics {\n\t\totlp\n\t}\n}\n:80 {\n}\n";
    let export = |variables: &[(&str, &str)]| {
        let loaded = load_text(wanted, variables).unwrap();
        (loaded.config.global.metrics_export, loaded.warnings.len())
    };
    let (usual, _) = export(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://other:1")]);
    let usual = usual.unwrap();
    assert_eq!(url(&usual.collector.endpoint), "http localhost 4318 /v1/metrics");
    assert_eq!(usual.interval, Duration::from_secs(60));
    let (own, warnings) = export(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:1"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://own/x"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a=b"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "15000"),
    ]);
    let own = own.unwrap();
    assert_eq!((url(&own.collector.endpoint), warnings), ("https own 443 /x".to_owned(), 1));
    assert_eq!((own.collector.headers.len(), own.interval), (1, Duration::from_secs(15)));
    for nothing in [("OTEL_METRICS_EXPORTER", "none"), ("OTEL_SDK_DISABLED", "true")] {
        assert_eq!(export(&[nothing]), (None, 1), "{nothing:?}");
    }
    let error = load_text(wanted, &[("OTEL_METRICS_EXPORTER", "console")]).unwrap_err().to_string();
    assert!(error.starts_with("Caddyfile:3:3: OTEL_METRICS_EXPORTER=console is not possible"), "{error}");
    assert_eq!(load_text(":80 {\n}\n", &[]).unwrap().config.global.metrics_export, None);
}
