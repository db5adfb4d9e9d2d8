//! Traces: what a client says goes on through the queue into PHP and to upstreams, and a collector sees one connected trace.
#![forbid(unsafe_code)]

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use regent_tests::upstream::ok;
use regent_tests::{Setup, Upstream, own_address, until};
use std::net::{SocketAddr, TcpListener};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
const SERVER: i32 = 2;
const CLIENT: i32 = 3;

/// Takes whatever comes.
fn collector() -> Upstream {
    Upstream::answering(|_| ok("Content-Type: application/x-protobuf\r\n", ""))
}

/// Everything that a collector has got, but for the requests by which the tests find out that the server is ready.
fn spans(collector: &Upstream) -> Vec<Span> {
    let batches = collector.requests().into_iter().map(|request| {
        assert_eq!(request.line(), "POST /v1/traces HTTP/1.1");
        assert_eq!(request.field("content-type"), "application/x-protobuf");
        ExportTraceServiceRequest::decode(&request.body[..]).expect("a message of OTLP")
    });
    let all = batches.flat_map(|batch| batch.resource_spans).flat_map(|spans| spans.scope_spans);
    all.flat_map(|spans| spans.spans).filter(|span| text(span, "url.path") != "/is-it-ready.txt").collect()
}

fn value(pairs: &[KeyValue], name: &str) -> Option<Value> {
    pairs.iter().find(|pair| pair.key == name).and_then(|pair| pair.value.clone()?.value)
}

fn text(span: &Span, name: &str) -> String {
    match value(&span.attributes, name) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    let [span] = found[..] else { panic!("{} spans `{name}` in {spans:#?}", found.len()) };
    span
}

/// A site whose spans go to this collector soon.
fn traced(collector: SocketAddr, site: &str) -> Setup {
    Setup::new()
        .site(&format!("tracing\n\t{site}"))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{collector}"))
        .env("OTEL_BSP_SCHEDULE_DELAY", "20")
}

fn field(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

#[test]
fn a_trace_goes_on_through_the_queue_into_php() {
    let collector = collector();
    let server = traced(
        collector.address(),
        "log {\n\t\toutput file DIRECTORY/access.log\n\t}\n\theader X-Ids {http.vars.trace_id}/{http.vars.span_id}\n\tphp_server",
    )
    .env("OTEL_SERVICE_NAME", "shop")
    .file("shop.php", "<?php echo $_SERVER['HTTP_TRACEPARENT'], ' ', $_SERVER['HTTP_TRACESTATE'], ' ', $_SERVER['REGENT_TRACE_ID'];")
    .start();
    let request = server.request("GET", "/shop.php?secret=1").header("traceparent", field("01"));
    let response =
        request.header("tracestate", "a=1 , b=2").header("User-Agent", "test/1").send().expect(200);
    let spans = until("three spans come", || Some(spans(&collector)).filter(|spans| spans.len() == 3));
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE && span.trace_state == "a=1,b=2"));

    let (queue, php) = (named(&spans, "queue"), named(&spans, "php"));
    let request = spans.iter().find(|span| span.kind == SERVER).expect("a span of the request");
    assert_eq!(hex(&request.parent_span_id), PARENT);
    assert_eq!(request.flags, 0x301, "the parent is remote");
    assert!([queue, php].iter().all(|span| span.parent_span_id == request.span_id));
    let id = hex(&request.span_id);
    assert_eq!(response.header("x-ids"), Some(format!("{TRACE}/{id}").as_str()));
    let seen = response.text();
    assert_eq!(
        seen,
        format!("00-{TRACE}-{}-01 a=1,b=2 {TRACE}", hex(&php.span_id)),
        "PHP's own spans are under it"
    );

    let (ip, port) = (server.address().ip().to_string(), server.address().port().to_string());
    for (name, expected) in [
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("url.scheme", "http"),
        ("url.path", "/shop.php"),
        ("server.address", &ip),
        ("server.port", &port),
        ("client.address", "127.0.0.1"),
        ("network.protocol.version", "1.1"),
        ("user_agent.original", "test/1"),
    ] {
        assert_eq!(text(request, name), expected, "{name}");
    }
    let route = text(request, "http.route");
    assert_eq!(request.name, format!("GET {route}"), "as the conventions have it");
    assert_eq!(text(php, "code.file.path"), server.root().join("shop.php").display().to_string());
    assert!(text(php, "regent.thread").parse::<u32>().is_ok() && !text(php, "regent.pool").is_empty());
    assert!(!format!("{spans:?}").contains("secret"), "the query stays here");
    let times = |span: &Span| (span.start_time_unix_nano, span.end_time_unix_nano);
    assert!(times(request).0 <= times(queue).0 && times(queue).1 <= times(php).0);
    assert!(times(php).0 < times(php).1 && times(php).1 <= times(request).1);

    let log = until("the line of the access log", || {
        let log = std::fs::read_to_string(server.directory().join("access.log")).ok()?;
        log.lines().find(|line| line.contains("/shop.php")).map(str::to_owned)
    });
    let log: serde_json::Value = serde_json::from_str(&log).expect("JSON");
    assert_eq!((log["traceID"].as_str(), log["spanID"].as_str()), (Some(TRACE), Some(id.as_str())));
    server.stop();
    let batch =
        ExportTraceServiceRequest::decode(&collector.requests()[0].body[..]).expect("a message of OTLP");
    let resource = batch.resource_spans[0].resource.clone().expect("a resource").attributes;
    assert_eq!(value(&resource, "service.name"), Some(Value::StringValue("shop".into())));
}

#[test]
fn a_trace_goes_on_to_an_upstream_with_the_span_of_the_call() {
    let collector = collector();
    let upstream = Upstream::answering(|_| ok("", "hello"));
    let nobody = own_address();
    let site = format!(
        "handle /is-it-ready.txt {{\nfile_server\n}}\nhandle {{\ntracing {{\nspan \"shop {{path}}\"\nspan_attributes {{\ntenant {{header.X-Tenant}}\n}}\n}}\n\
         reverse_proxy {nobody} {address} {{\nlb_policy first\nlb_retries 1\n}}\n}}",
        address = upstream.address()
    );
    let server = traced(collector.address(), &site).start();
    let request = server.request("GET", "/a").header("traceparent", field("01")).header("tracestate", "a=1");
    request.header("X-Tenant", "one").send().expect(200);
    let spans = until("three spans come", || Some(spans(&collector)).filter(|spans| spans.len() == 3));
    let request = named(&spans, "shop /a");
    assert_eq!(
        (hex(&request.parent_span_id), text(request, "tenant")),
        (PARENT.to_owned(), "one".to_owned())
    );
    let call = |address: SocketAddr| {
        let port = address.port().to_string();
        let call = spans.iter().find(|span| span.kind == CLIENT && text(span, "server.port") == port);
        call.expect("a span of the call").clone()
    };
    let (failed, call) = (call(nobody), call(upstream.address()));
    assert!([&failed, &call].iter().all(|span| span.parent_span_id == request.span_id && span.name == "GET"));
    assert_eq!(
        (text(&failed, "error.type").as_str(), failed.status.map(|status| status.code)),
        ("connect", Some(2))
    );
    assert_eq!(text(&call, "url.full"), format!("http://{}/a", upstream.address()));
    assert_eq!(
        (
            text(&call, "http.response.status_code").as_str(),
            text(&call, "http.request.resend_count").as_str()
        ),
        ("200", "1")
    );
    assert_eq!(upstream.last().field("traceparent"), format!("00-{TRACE}-{}-01", hex(&call.span_id)));
    assert_eq!(upstream.last().field("tracestate"), "a=1");
    server.stop();
}

#[test]
fn what_is_not_sampled_is_passed_on_so_and_never_exported() {
    let collector = collector();
    let upstream = Upstream::answering(|_| ok("", "hello"));
    let site = format!("reverse_proxy /up/* {}\n\tphp_server", upstream.address());
    let server = traced(collector.address(), &site)
        .env("OTEL_TRACES_SAMPLER", "parentbased_always_off")
        .file("index.php", "<?php echo $_SERVER['HTTP_TRACEPARENT'];")
        .start();
    let asked = |flags: &str| {
        let request = server.request("GET", "/up/x").header("traceparent", field(flags));
        request.send().expect(200);
        upstream.last().field("traceparent")
    };
    let passed_on = asked("00");
    assert!(passed_on.starts_with(&format!("00-{TRACE}-")) && passed_on.ends_with("-00"), "{passed_on}");
    assert!(!passed_on.contains(PARENT), "the parent is this server's span");
    server.get("/up/x").expect(200);
    let own = upstream.last().field("traceparent");
    assert!(
        own.starts_with("00-") && own.ends_with("-00") && own.len() == 55 && !own.contains(TRACE),
        "{own}"
    );
    let in_php = server.get("/").expect(200).text();
    assert!(in_php.ends_with("-00") && in_php.len() == 55, "{in_php}");
    assert!(asked("01").ends_with("-01"), "the client has decided");
    server.stop();
    let spans = spans(&collector);
    assert!(spans.len() == 2 && spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:#?}");
}

#[test]
fn a_trace_that_is_malformed_is_none() {
    let upstream = Upstream::answering(|_| ok("", "hello"));
    let collector = collector();
    let server = traced(collector.address(), &format!("reverse_proxy {}", upstream.address())).start();
    let good = field("01");
    let hostile = [
        vec![format!("{good}-x")],
        vec![good.to_uppercase()],
        vec![good.replace(TRACE, &"0".repeat(32))],
        vec![good.replace("00-", "ff-")],
        vec!["x".repeat(4000)],
        vec![good.clone(), good.clone()],
    ];
    for fields in hostile {
        let mut request = server.request("GET", "/").header("tracestate", "a=1");
        for field in &fields {
            request = request.header("traceparent", field.as_str());
        }
        request.send().expect(200);
        let (parent, state) = (upstream.last().field("traceparent"), upstream.last().field("tracestate"));
        assert!(parent.len() == 55 && parent.ends_with("-01") && !parent.contains(TRACE), "{parent}");
        assert_eq!(state, "", "it belongs to a trace that nobody knows");
    }
    let request = server.request("GET", "/").header("traceparent", good).header("tracestate", "A=1,b");
    request.send().expect(200);
    assert!(upstream.last().field("traceparent").contains(TRACE));
    assert_eq!(upstream.last().field("tracestate"), "");
    server.stop();
}

#[test]
fn a_collector_that_is_not_there_costs_no_request() {
    let nobody = own_address();
    let server = traced(nobody, "php_server")
        .admin("ADMIN")
        .env("OTEL_BSP_EXPORT_TIMEOUT", "1")
        .file("index.php", "<?php echo 'ok';")
        .start();
    for _ in 0..20 {
        assert_eq!(server.get("/").expect(200).text(), "ok");
    }
    server.wait_for_log("the collector does not take all traces");
    until("what is lost is counted", || {
        let page = server.admin().get("/metrics").expect(200).text();
        let lost = page.lines().find_map(|line| {
            line.strip_prefix("regent_traces_dropped_total{reason=\"unreachable\"} ")?.parse::<f64>().ok()
        });
        assert!(page.contains("\nregent_traces_exported_total 0\n"), "{page}");
        lost.filter(|lost| *lost >= 60.0)
    });
    assert_eq!(server.log().matches("the collector does not take all traces").count(), 1, "once a minute");
    server.stop();
}

#[test]
fn what_waits_is_sent_before_the_end_and_a_collector_that_hangs_does_not_hold_that_up() {
    let collector = collector();
    let setup = |address| {
        traced(address, "php_server")
            .env("OTEL_BSP_SCHEDULE_DELAY", "3600000")
            .file("index.php", "<?php echo 'ok';")
    };
    let server = setup(collector.address()).start();
    server.get("/").expect(200);
    server.stop();
    assert_eq!(spans(&collector).len(), 3);

    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = setup(listener.local_addr().expect("an address")).start();
    server.get("/").expect(200);
    server.stop();
}

#[test]
fn an_error_that_php_makes_is_one_of_its_span() {
    let collector = collector();
    let server = traced(collector.address(), "php_server")
        .file("bad.php", "<?php http_response_code(503); echo 'no';")
        .file("endless.php", "<?php while (true) { usleep(1000); }")
        .php_options("num_threads 2\n\t\trequest_timeout 1s")
        .start();
    server.get("/bad.php").expect(503);
    server.get("/endless.php").expect(504);
    server.stop();
    let spans = spans(&collector);
    let of = |path: &str, kind: i32| {
        let requests = spans.iter().find(|span| span.kind == SERVER && text(span, "url.path") == path);
        let request = requests.expect("a span of the request");
        let found = spans.iter().find(|span| match kind {
            SERVER => span.span_id == request.span_id,
            _ => span.name == "php" && span.parent_span_id == request.span_id,
        });
        found.cloned().expect("a span")
    };
    let error = |span: &Span| (text(span, "error.type"), span.status.as_ref().map(|status| status.code));
    assert_eq!(error(&of("/bad.php", SERVER)), ("503".to_owned(), Some(2)));
    assert_eq!(error(&of("/bad.php", CLIENT)), (String::new(), None), "PHP has done as it was told");
    assert_eq!(error(&of("/endless.php", SERVER)), ("504".to_owned(), Some(2)));
    assert_eq!(error(&of("/endless.php", CLIENT)), ("request_timeout".to_owned(), Some(2)));
}
