//! Names, values and grammar.

use crate::server::{Scrape, Server};
use prometheus_parse::Value;
use regent_metrics::{
    Direction, Gauges, PoolGauges, Reason, Registry, Request, Serves, Standing, Threads, render,
};
use regex::Regex;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

fn request(server: &Server, total: Duration) -> Request {
    Request {
        route: server.route,
        queue_wait: Duration::ZERO,
        execution: total,
        cpu: None,
        first_byte: total,
        total,
        status: 200,
        deadline: None,
    }
}

/// The grammar of the format, more strictly than parsers take it.
fn assert_grammar(scrape: &Scrape) {
    let comment = Regex::new(r"^# (HELP [a-z_]+ .+|TYPE [a-z_]+ (counter|gauge|histogram))$").unwrap();
    let label = r#"[a-z_]+="([^"\\\n]|\\["\\n])*""#;
    let sample = Regex::new(&format!(r"^[a-z_]+(\{{{label}(,{label})*\}})? [0-9]+(\.[0-9]+)?$")).unwrap();
    for line in scrape.0.lines() {
        assert!(comment.is_match(line) || sample.is_match(line), "{line}");
    }
}

#[test]
fn names_types_and_labels_are_frankenphps() {
    let scrape = Server::new().scrape();
    let families = scrape.families();
    let ours: BTreeMap<_, _> =
        families.into_iter().filter(|(name, _)| name.starts_with("frankenphp_")).collect();
    let theirs = BTreeMap::from([
        ("frankenphp_busy_threads", "gauge"),
        ("frankenphp_busy_workers", "gauge"),
        ("frankenphp_queue_depth", "gauge"),
        ("frankenphp_ready_workers", "gauge"),
        // There a counter, which nothing changes after the start.
        ("frankenphp_total_threads", "gauge"),
        ("frankenphp_total_workers", "gauge"),
        ("frankenphp_worker_crashes", "counter"),
        ("frankenphp_worker_queue_depth", "gauge"),
        ("frankenphp_worker_request_count", "counter"),
        ("frankenphp_worker_request_time", "counter"),
        ("frankenphp_worker_restarts", "counter"),
    ]);
    assert_eq!(ours, theirs);
    for name in theirs.into_keys() {
        let labels = scrape.labels(name).into_iter().collect::<Vec<_>>();
        assert_eq!(labels.contains(&"worker".into()), name.contains("worker"), "{name}");
        assert!(labels.len() <= 1, "{name}");
    }
}

#[test]
fn values_mean_what_they_do_in_frankenphp() {
    let server = Server::new();
    server.recorder.request(&request(&server, Duration::from_millis(1500)));
    server.recorder.request(&request(&server, Duration::from_millis(500)));
    server.registry.worker_crashed(server.worker);
    (0..3).for_each(|_| server.registry.worker_restarted(server.worker));
    let scrape = server.scrape();
    for line in [
        "frankenphp_total_threads 15",
        // Two classic ones, and all of the worker's.
        "frankenphp_busy_threads 12",
        "frankenphp_queue_depth 0",
        r#"frankenphp_total_workers{worker="/app/worker.php"} 10"#,
        r#"frankenphp_busy_workers{worker="/app/worker.php"} 7"#,
        r#"frankenphp_ready_workers{worker="/app/worker.php"} 7"#,
        r#"frankenphp_worker_request_time{worker="/app/worker.php"} 2"#,
        r#"frankenphp_worker_request_count{worker="/app/worker.php"} 2"#,
        r#"frankenphp_worker_crashes{worker="/app/worker.php"} 1"#,
        r#"frankenphp_worker_restarts{worker="/app/worker.php"} 3"#,
        r#"frankenphp_worker_queue_depth{worker="/app/worker.php"} 5"#,
    ] {
        assert!(scrape.has(line), "{line}\n{}", scrape.0);
    }
}

#[test]
fn ours_say_what_was_recorded() {
    let server = Server::new();
    let deadline = Some(Duration::from_millis(100));
    server.recorder.request(&Request {
        deadline,
        status: 500,
        ..request(&server, Duration::from_millis(250))
    });
    server.recorder.shed(server.route, Reason::QueueFull);
    server.recorder.lost(server.classic.other());
    server.recorder.overdue(server.classic.other());
    server.recorder.retried(server.classic.other());
    server.registry.scaled(server.worker, Direction::Up);
    server.registry.thread_written_off(server.worker);
    server.registry.generation_started();
    server.registry.engine_died();
    server.registry.tick(server.began + Duration::from_secs(1));
    let scrape = server.scrape();
    let route = r#"pool="/app/worker.php",route="/users""#;
    for line in [
        format!(r#"regent_requests_total{{{route},class="5xx"}} 1"#),
        format!(r#"regent_requests_total{{{route},class="2xx"}} 0"#),
        format!(r#"regent_shed_total{{{route},reason="queue_full"}} 1"#),
        r#"regent_lost_total{pool="classic",route="other"} 1"#.into(),
        r#"regent_request_timeouts_total{pool="classic",route="other"} 1"#.into(),
        r#"regent_retries_total{pool="classic",route="other"} 1"#.into(),
        format!("regent_deadline_requests_total{{{route}}} 1"),
        format!("regent_deadline_misses_total{{{route}}} 1"),
        format!("regent_deadline_miss_ratio{{{route}}} 1"),
        format!("regent_worst_seconds{{{route}}} 0.25"),
        format!("regent_request_duration_seconds_sum{{{route}}} 0.25"),
        format!("regent_execution_seconds_count{{{route}}} 1"),
        format!("regent_cpu_seconds_count{{{route}}} 0"),
        r#"regent_threads{pool="/app/worker.php",state="booting"} 1"#.into(),
        r#"regent_threads{pool="/app/worker.php",state="busy"} 7"#.into(),
        r#"regent_threads{pool="/app/worker.php",state="backoff"} 2"#.into(),
        r#"regent_threads{pool="classic",state="idle"} 3"#.into(),
        r#"regent_threads_stuck{pool="/app/worker.php"} 4"#.into(),
        r#"regent_queue_length{pool="/app/worker.php"} 5"#.into(),
        r#"regent_queue_oldest_wait_seconds{pool="/app/worker.php"} 1.5"#.into(),
        r#"regent_threads_written_off_total{pool="/app/worker.php"} 1"#.into(),
        r#"regent_scale_events_total{pool="/app/worker.php",direction="up"} 1"#.into(),
        r#"regent_scale_events_total{pool="classic",direction="down"} 0"#.into(),
        r#"regent_php_info{version="8.4.24",package="",state="below"} 1"#.into(),
        "regent_php_below_floor 1".into(),
        "regent_generations_total 1".into(),
        "regent_engine_deaths_total 1".into(),
        concat!(r#"regent_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#).into(),
    ] {
        assert!(scrape.has(&line), "{line}\n{}", scrape.0);
    }
}

#[test]
fn bounds_are_inclusive_and_nothing_is_interpolated() {
    let server = Server::new();
    for micros in [500, 501, 1_000, 2_500, 10_000_000, 10_000_001] {
        server.recorder.request(&request(&server, Duration::from_micros(micros)));
    }
    let scrape = server.scrape();
    for name in ["regent_request_duration_seconds", "regent_execution_seconds"] {
        let bucket = |le, count| {
            let line = format!(r#"{name}_bucket{{pool="/app/worker.php",route="/users",le="{le}"}} {count}"#);
            assert!(scrape.has(&line), "{line}\n{}", scrape.0);
        };
        bucket("0.0005", 1);
        bucket("0.001", 3);
        bucket("0.0025", 4);
        bucket("5", 4);
        bucket("10", 5);
        bucket("+Inf", 6);
    }
}

#[test]
fn the_first_scrape_has_all_series_with_zero() {
    let server = Server::new();
    let first = Scrape(render(&server.registry, &Gauges::default()));
    for sample in first.samples() {
        let name = sample.metric.as_str();
        let zero = match &sample.value {
            Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => *value == 0.0,
            Value::Histogram(buckets) => {
                buckets.len() == 15 && buckets.iter().all(|bucket| bucket.count == 0.0)
            }
            Value::Summary(_) => false,
        };
        assert!(zero || ["regent_build_info", "process_start_time_seconds"].contains(&name), "{sample:?}");
    }
    server.recorder.request(&request(&server, Duration::from_secs(1)));
    server.recorder.shed(server.classic.other(), Reason::ClientGone);
    let scrape = server.scrape();
    let mut later = series(&scrape);
    // Lanes, certificates and upstreams come and go, Caddy has no series of what has not happened, and memory,
    // spans and PHP are looked at.
    let comes_and_goes = [
        "regent_cache_",
        "regent_circuit_open",
        "regent_lane_",
        "regent_certificate_",
        "regent_proxy_",
        "regent_task",
        "regent_memory_",
        "regent_php_",
        "regent_traces_",
        "caddy_",
    ];
    later.retain(|series| !comes_and_goes.iter().any(|start| series.starts_with(start)));
    assert!(series(&first) == later, "{:?}", series(&first).symmetric_difference(&later));
}

/// Names with labels, without values.
fn series(scrape: &Scrape) -> HashSet<&str> {
    scrape
        .0
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect()
}

#[test]
fn what_circuits_refuse_is_counted_by_pool() {
    let server = Server::new();
    (0..2).for_each(|_| server.recorder.shed(server.classic.other(), Reason::Circuit));
    server.recorder.shed(server.classic.other(), Reason::QueueFull);
    server.recorder.shed(server.route, Reason::Circuit);
    let scrape = server.scrape();
    for line in [
        "regent_circuit_open{pool=\"classic\",route=\"/export\",script=\"/www/index.php\"} 1",
        "regent_circuit_rejected_total{pool=\"classic\"} 2",
        "regent_circuit_rejected_total{pool=\"/app/worker.php\"} 1",
    ] {
        assert!(scrape.0.lines().any(|scraped| scraped == line), "{line}:\n{}", scrape.0);
    }
}

#[test]
fn the_end_of_a_certificate_is_a_time() {
    let scrape = Server::new().scrape();
    let line = "regent_certificate_not_after_seconds{name=\"shop.example.com\",source=\"acme\"} 2000000000";
    assert!(scrape.0.lines().any(|scraped| scraped == line), "{}", scrape.0);
}

#[test]
fn no_series_comes_twice() {
    let server = Server::new();
    server.registry.route(server.worker, "/users", Standing::Returning);
    let scrape = server.scrape();
    let samples = scrape.0.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(series(&scrape).len(), samples);
}

#[test]
fn hostile_names_stay_within_their_quotes() {
    let server = Server::new();
    let hostile =
        ["\"} 1\nevil_metric 1", "back\\slash", "new\nline", "{}=,#", "\u{202e}ü\0\t", &"x".repeat(10_000)];
    for name in hostile {
        server.registry.pool(name, Serves::Classic);
        server.registry.route(server.classic, name, Standing::Returning);
    }
    let scrape = server.scrape();
    assert_grammar(&scrape);
    assert!(scrape.0.contains(r#"route="\"} 1\nevil_metric 1""#), "{}", scrape.0);
    assert!(scrape.0.contains(r#"route="back\\slash""#), "{}", scrape.0);
    assert!(!scrape.0.contains(&"x".repeat(200)));
}

/// It was 7.6 MB.
#[test]
fn a_hundred_thousand_invented_paths_leave_the_page_small() {
    let server = Server::new();
    for path in 0..100_000 {
        let route = server.registry.route(server.classic, &format!("/invented-{path}"), Standing::New);
        server.recorder.request(&Request { route, ..request(&server, Duration::from_millis(3)) });
    }
    let page = server.scrape().0;
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(page.contains(r#"{pool="classic",route="other",class="2xx"}"#), "they are counted");
}

#[test]
fn the_output_is_of_the_grammar() {
    let server = Server::new();
    server.recorder.request(&request(&server, Duration::from_nanos(123)));
    server.recorder.request(&request(&server, Duration::MAX));
    assert_grammar(&server.scrape());
    assert_grammar(&Scrape(render(&Registry::new(Instant::now()), &Gauges::default())));
}

#[test]
fn without_workers_there_are_none() {
    let registry = Registry::new(Instant::now());
    registry.pool("classic", Serves::Classic);
    let scrape = Scrape(render(&registry, &Gauges::default()));
    assert!(scrape.has("frankenphp_total_threads 0"));
    assert!(!scrape.0.contains("frankenphp_total_workers"));
}

#[test]
fn a_native_service_is_a_pool_and_no_part_of_php() {
    let registry = Registry::new(Instant::now());
    let hello = registry.pool("hello", Serves::Service);
    let idle = Threads { idle: 3, ..Threads::default() };
    let pool = PoolGauges { threads: idle, ..PoolGauges::empty(hello) };
    let scrape = Scrape(render(&registry, &Gauges { pools: vec![pool], ..Gauges::default() }));
    assert!(scrape.has(r#"regent_threads{pool="hello",state="idle"} 3"#), "{}", scrape.0);
    assert!(scrape.has("frankenphp_total_threads 0") && scrape.has("frankenphp_queue_depth 0"));
}
