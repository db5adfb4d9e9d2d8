//! A server that has two pools, and how its scrapes are read.

use regent_metrics::{
    AdminRequest, CacheDiskGauges, CacheGauges, CertificateGauge, CircuitGauge, Gauges, HostLabel, Hosts,
    HttpRequest, LaneGauges, MemoryGauges, PhpGauge, PoolGauges, PoolId, RateZoneGauge, Recorder, Registry,
    ReloadOutcome, RouteId, Serves, Standing, TaskEnd, Threads, TraceGauges, UpstreamGauge, render,
};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// A classic pool and a worker, with a route each.
pub struct Server {
    pub began: Instant,
    pub registry: Registry,
    pub recorder: Recorder,
    pub classic: PoolId,
    pub worker: PoolId,
    pub route: RouteId,
}

impl Server {
    pub fn new() -> Self {
        let began = Instant::now();
        let registry = Registry::new(began);
        let recorder = registry.recorder();
        let classic = registry.pool("classic", Serves::Classic);
        let worker = registry.pool("/app/worker.php", Serves::Worker("/app/worker.php".into()));
        registry.route(classic, "/index.php", Standing::Returning);
        let route = registry.route(worker, "/users", Standing::Returning);
        Self { began, registry, recorder, classic, worker, route }
    }

    /// A few threads in each pool, and a queue before the worker.
    pub fn gauges(&self) -> Gauges {
        let classic = PoolGauges {
            threads: Threads { idle: 3, busy: 2, ..Threads::default() },
            most: 16,
            ..PoolGauges::empty(self.classic)
        };
        let worker = PoolGauges {
            threads: Threads { booting: 1, idle: 0, busy: 7, backoff: 2 },
            stuck: 4,
            queue_length: 5,
            oldest_wait: Duration::from_millis(1500),
            ..PoolGauges::empty(self.worker)
        };
        let lane =
            LaneGauges { pool: classic.pool, route: "/report".into(), limit: 4, inside: 4, waiting: 2 };
        let circuit =
            CircuitGauge { pool: classic.pool, route: "/export".into(), script: "/www/index.php".into() };
        let certificate = CertificateGauge {
            name: "shop.example.com".into(),
            source: "acme",
            not_after: UNIX_EPOCH + Duration::from_secs(2_000_000_000),
        };
        let upstream = UpstreamGauge {
            address: "app:9000".into(),
            is_healthy: true,
            requests: 1,
            requests_total: 3,
            failures_total: 2,
        };
        let (pools, lanes) = (vec![classic, worker], vec![lane]);
        let disk = Some(CacheDiskGauges { files: 7, is_working: true, ..CacheDiskGauges::default() });
        let cache = Some(CacheGauges { hits: 3, limit: 1 << 20, disk, ..CacheGauges::default() });
        let http = Some(HostLabel::Shown);
        let memory = Some(MemoryGauges { limit: 1 << 30, used: 1 << 28 });
        let circuits = vec![circuit];
        let (certificates, upstreams) = (vec![certificate], vec![upstream]);
        let rate_zones = vec![RateZoneGauge { zone: "login".into(), requests: 7, declined: 2, keys: 3 }];
        let traces = Some(TraceGauges { exported: 3, dropped: vec![("queue_full", 1)] });
        let php = Some(PhpGauge {
            version: "8.4.24".into(),
            package: String::new(),
            state: "below",
            is_below_floor: true,
        });
        Gauges {
            pools,
            lanes,
            circuits,
            certificates,
            upstreams,
            rate_zones,
            cache,
            memory,
            traces,
            http,
            php,
        }
    }

    /// What is counted under Caddy's names has no series before.
    fn answer_for_caddy(&self) {
        let registry = &self.registry;
        registry.reloaded(ReloadOutcome::Loaded);
        registry.task_started("artisan queue:work");
        registry.task_ended("artisan queue:work", TaskEnd::Failed);
        registry.admin_answered(AdminRequest { path: "/stop", method: "GET", status: 405 });
        let labels = registry.http_labels("srv0", "subroute", Hosts::Named(&["shop.example.com".into()]));
        let meter = Rc::new(registry.http_meter());
        HttpRequest::begin(&meter, &labels, ("GET", "shop.example.com"), 100, self.began);
    }

    pub fn scrape(&self) -> Scrape {
        self.answer_for_caddy();
        Scrape(render(&self.registry, &self.gauges()))
    }
}

pub struct Scrape(pub String);

impl Scrape {
    pub fn has(&self, line: &str) -> bool {
        self.0.lines().any(|found| found == line)
    }

    /// Names of metrics and their types, as the `# TYPE` lines say.
    pub fn families(&self) -> BTreeMap<&str, &str> {
        let types = self.0.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        types.map(|line| line.split_once(' ').expect("a type")).collect()
    }

    /// Read by a parser that is not ours.
    pub fn samples(&self) -> Vec<prometheus_parse::Sample> {
        let lines = self.0.lines().map(|line| Ok(line.to_owned()));
        prometheus_parse::Scrape::parse(lines).expect("a scrape").samples
    }

    /// Names of the labels of a family's series.
    pub fn labels(&self, family: &str) -> BTreeSet<String> {
        let samples = self.samples();
        samples
            .iter()
            .filter(|sample| sample.metric == family)
            .flat_map(|sample| sample.labels.keys().cloned())
            .collect()
    }
}
