//! What was recorded is what a report says.

use regent_metrics::{
    Direction, PoolId, PoolReport, Reason, Recorder, Registry, Report, Request, RouteId, Serves, Standing,
};
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);

struct Server {
    began: Instant,
    registry: Registry,
    recorder: Recorder,
    pool: PoolId,
    route: RouteId,
}

impl Server {
    fn new() -> Self {
        let began = Instant::now();
        let registry = Registry::new(began);
        let recorder = registry.recorder();
        let pool = registry.pool("api", Serves::Worker("/app/api.php".into()));
        let route = registry.route(pool, "/users", Standing::Returning);
        Self { began, registry, recorder, pool, route }
    }

    fn answer(&self, total: Duration) {
        self.recorder.request(&request(self.route, total));
    }

    /// The clock says that so many seconds have passed since the start.
    fn tick(&self, seconds: u64) {
        self.registry.tick(self.began + Duration::from_secs(seconds));
    }

    fn pool(&self) -> PoolReport {
        self.registry.report().pools.remove(0)
    }
}

fn request(route: RouteId, total: Duration) -> Request {
    Request {
        route,
        queue_wait: total / 10,
        execution: total / 2,
        cpu: None,
        first_byte: total * 9 / 10,
        total,
        status: 200,
        deadline: None,
    }
}

fn near(measured: f64, exact: f64) -> bool {
    (measured - exact).abs() <= 0.0501 * exact
}

#[test]
fn a_request_is_counted_and_measured_by_pool_and_route() {
    let server = Server::new();
    server.recorder.request(&Request { cpu: Some(MS), ..request(server.route, 40 * MS) });
    let pool = server.pool();
    let (route, of_pool) = (&pool.routes[1].since_start, &pool.since_start);
    assert_eq!((pool.routes[1].name.as_str(), route.requests, of_pool.requests), ("/users", 1, 1));
    for (latency, seconds) in [
        (route.latencies.queue_wait, 0.004),
        (route.latencies.total, 0.040),
        (of_pool.latencies.queue_wait, 0.004),
        (of_pool.latencies.first_byte, 0.036),
        (of_pool.latencies.execution, 0.020),
        (of_pool.latencies.cpu, 0.001),
        (of_pool.latencies.total, 0.040),
    ] {
        assert_eq!((latency.count, latency.max, latency.mean), (1, seconds, seconds));
        assert!(near(latency.p50, seconds) && near(latency.p999, seconds));
    }
}

#[test]
fn cpu_time_is_counted_only_where_it_was_measured() {
    let server = Server::new();
    server.answer(MS);
    server.recorder.request(&Request { cpu: Some(MS), ..request(server.route, MS) });
    let latencies = server.pool().since_start.latencies;
    assert_eq!((latencies.cpu.count, latencies.execution.count), (1, 2));
}

#[test]
fn answers_are_counted_by_class_of_their_status() {
    let server = Server::new();
    for status in [200, 204, 301, 404, 500, 503, 700] {
        server.recorder.request(&Request { status, ..request(server.route, MS) });
    }
    let answers = server.pool().since_start.answers;
    assert_eq!((answers.success, answers.redirection, answers.client_error), (2, 1, 1));
    assert_eq!((answers.server_error, answers.other), (2, 1));
}

#[test]
fn what_is_shed_or_lost_is_no_answer() {
    let server = Server::new();
    for (times, reason) in (1..).zip(Reason::ALL) {
        (0..times).for_each(|_| server.recorder.shed(server.route, reason));
    }
    server.recorder.lost(server.route);
    let pool = server.pool().since_start;
    let shed = pool.shed;
    assert_eq!((pool.requests, pool.lost, pool.latencies.total.count), (0, 1, 0));
    assert_eq!(
        [
            shed.queue_full,
            shed.wait_time,
            shed.deadline,
            shed.max_connections,
            shed.client_gone,
            shed.circuit
        ],
        [1, 2, 3, 4, 5, 6]
    );
}

#[test]
fn a_deadline_is_missed_only_after_it() {
    let server = Server::new();
    for total in [9 * MS, 10 * MS, 10 * MS + Duration::from_nanos(1), 11 * MS] {
        server.recorder.request(&Request { deadline: Some(10 * MS), ..request(server.route, total) });
    }
    server.answer(500 * MS);
    let deadlines = server.pool().since_start.deadlines;
    assert_eq!((deadlines.promised, deadlines.missed, deadlines.miss_ratio), (4, 2, 0.5));
}

#[test]
fn threads_are_added_up() {
    let server = Server::new();
    let threads = (1..=4).map(|n| (server.registry.recorder(), n));
    std::thread::scope(|scope| {
        for (recorder, n) in threads {
            scope.spawn(move || {
                for _ in 0..n * 1_000 {
                    recorder.request(&request(server.route, n * MS));
                }
            });
        }
    });
    let pool = server.pool().since_start;
    assert_eq!(
        (pool.requests, pool.latencies.total.count, pool.latencies.total.max),
        (10_000, 10_000, 0.004)
    );
}

#[test]
fn recent_is_ten_seconds() {
    let server = Server::new();
    server.answer(100 * MS);
    server.tick(1);
    server.answer(MS);
    server.tick(2);
    let recent = server.pool().recent;
    assert_eq!((recent.requests, recent.latencies.total.count), (2, 2));
    assert!(recent.latencies.total.max >= 0.1 && recent.latencies.total.max <= 0.11);

    server.tick(11);
    let recent = server.pool().recent;
    assert_eq!((recent.requests, recent.latencies.execution.count), (1, 1));
    assert!(near(recent.latencies.total.p50, 0.001));

    server.tick(12);
    assert_eq!(server.pool().recent.requests, 0);
    assert_eq!(server.pool().since_start.requests, 2);
}

#[test]
fn a_late_tick_and_a_doubled_one_lose_nothing() {
    let server = Server::new();
    server.answer(MS);
    server.tick(5);
    server.answer(MS);
    server.tick(5);
    assert_eq!(server.pool().recent.requests, 1);
    server.tick(1_000);
    let report = server.registry.report();
    assert_eq!((report.uptime_seconds, report.window_seconds), (1_000, 10));
    assert_eq!(report.pools[0].recent.requests, 1);
}

#[test]
fn the_worst_case_is_that_of_the_last_minute() {
    let server = Server::new();
    let worst = || server.pool().last_minute.worst;
    server.recorder.request(&Request { deadline: Some(MS), ..request(server.route, 900 * MS) });
    server.tick(1);
    server.answer(70 * MS);
    server.tick(2);
    assert_eq!((worst(), server.pool().routes[1].last_minute.worst), (0.9, 0.9));
    server.tick(60);
    assert_eq!((worst(), server.pool().last_minute.deadlines.missed), (0.9, 1));
    server.tick(61);
    assert_eq!((worst(), server.pool().last_minute.deadlines.missed), (0.07, 0));
    server.tick(62);
    assert_eq!(worst(), 0.0);
}

#[test]
fn events_are_counted_by_pool() {
    let server = Server::new();
    let (registry, classic) = (&server.registry, server.registry.pool("classic", Serves::Classic));
    registry.generation_started();
    registry.engine_died();
    registry.generation_started();
    registry.scaled(server.pool, Direction::Up);
    registry.scaled(server.pool, Direction::Up);
    registry.scaled(classic, Direction::Down);
    registry.worker_crashed(server.pool);
    registry.worker_restarted(server.pool);
    let report = registry.report();
    let [api, classic] = &report.pools[..] else { panic!("two pools, not {}", report.pools.len()) };
    assert_eq!((report.generations, report.engine_deaths), (2, 1));
    assert_eq!((api.scaled_up, api.scaled_down, api.worker_crashes, api.worker_restarts), (2, 0, 1, 1));
    assert_eq!((classic.scaled_up, classic.scaled_down), (0, 1));
}

#[test]
fn what_has_no_route_of_its_own_is_other() {
    let server = Server::new();
    server.recorder.request(&request(server.pool.other(), MS));
    let pool = server.pool();
    assert_eq!((pool.routes[0].name.as_str(), pool.routes[0].since_start.requests), ("other", 1));
}

#[test]
fn a_report_survives_json() {
    let server = Server::new();
    server.answer(MS);
    server.tick(1);
    let report = server.registry.report();
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    assert!(json.contains(r#""2xx":1"#), "{json}");
}
