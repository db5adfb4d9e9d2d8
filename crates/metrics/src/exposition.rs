//! The figures as Prometheus reads them: text format 0.0.4.
//!
//! In it, names are free. OpenMetrics wants `_total` at the end of each counter, and a client library that follows it
//! appends that; FrankenPHP's counters have no such end, so what is written here is the older format. Prometheus and
//! all agents that are compatible with it read both.

use crate::Reason;
use crate::cache;
use crate::circuits;
use crate::families::{Labels, Series, counter, family, gauge, label, labels, seconds};
use crate::figures::{PoolPhase, RoutePhase, STATUS_CLASSES};
use crate::gauges::{CertificateGauge, Gauges, LaneGauges, MemoryGauges, PoolGauges, UpstreamGauge};
use crate::http;
use crate::names::Serves;
use crate::php;
use crate::rate_zones;
use crate::reading::{PoolReading, Reading, RouteReading};
use crate::registry::Registry;
use crate::snapshot::{CoarseSnapshot, Snapshot};
use crate::traces;
use prometheus::TextEncoder;
use prometheus::proto::{Bucket, Histogram, Metric, MetricFamily, MetricType};
use std::time::{Duration, UNIX_EPOCH};

/// Of the answer that carries what [`render`] returns.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics as text.
pub fn render(registry: &Registry, gauges: &Gauges) -> String {
    let families = families(registry, gauges);
    TextEncoder::new().encode_to_string(&families).expect("invariant: every family has a name and metrics")
}

/// All metrics. The series of all pools and routes of the configuration are there, with 0 where nothing has happened.
pub fn families(registry: &Registry, gauges: &Gauges) -> Vec<MetricFamily> {
    let mut reading = registry.read();
    // Those of former configurations keep their numbers, and come back with them.
    reading.pools.retain(|pool| pool.serves == Serves::Classic || gauges.has(pool.id));
    let pools: Vec<_> = reading.pools.iter().map(|pool| (pool, gauges.of(pool.id))).collect();
    let mut families = process(&reading);
    families.extend(gauges.php.iter().flat_map(php::families));
    families.extend(frankenphp(&pools));
    families.extend(requests(&reading));
    families.extend(deadlines(&reading));
    families.extend(phases(&reading));
    families.extend(state(&pools));
    families.extend(lanes(&reading, &gauges.lanes));
    families.extend(circuits::families(&reading, &gauges.circuits));
    families.extend(registry.connections.families());
    families.push(certificates(&gauges.certificates));
    families.extend(upstreams(&gauges.upstreams));
    families.extend(rate_zones::families(&gauges.rate_zones));
    families.extend(gauges.cache.iter().flat_map(cache::families));
    families.extend(gauges.memory.iter().flat_map(memory));
    families.extend(gauges.traces.iter().flat_map(traces::families));
    families.extend(gauges.http.into_iter().flat_map(|host| http::families(&registry.http, host)));
    families.extend(registry.administration());
    families.extend(registry.tasks());
    // There are no workers, no lanes, no open circuits, no certificates, no upstreams, no zones, or no pools at all.
    families.retain(|family| !family.get_metric().is_empty());
    families
}

type ObservedPool<'a> = (&'a PoolReading, PoolGauges);

fn process(reading: &Reading) -> Vec<MetricFamily> {
    let started = reading.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let build = labels(&[("version", env!("CARGO_PKG_VERSION"))]);
    vec![
        gauge("regent_build_info", "Always 1; the label says which version runs.", [(build, 1.0)]),
        gauge(
            "process_start_time_seconds",
            "When the server was started, in seconds since the Unix epoch.",
            [(vec![], seconds(started))],
        ),
        counter(
            "regent_generations_total",
            "Engines that were started: the first, and one for each replacement.",
            [(vec![], reading.generations as f64)],
        ),
        counter(
            "regent_engine_deaths_total",
            "Engines that ended without having been asked to.",
            [(vec![], reading.engine_deaths as f64)],
        ),
    ]
}

/// FrankenPHP's names, types and labels, but for the type of `frankenphp_total_threads`: there it is a counter that
/// nothing changes after the start; here it follows the scaling, and so it is a gauge.
fn frankenphp(pools: &[ObservedPool]) -> Vec<MetricFamily> {
    let of = |is_meant: fn(&Serves) -> bool| pools.iter().filter(move |(pool, _)| is_meant(&pool.serves));
    let classic = || of(|serves| *serves == Serves::Classic).map(|(_, gauges)| gauges);
    let php = of(|serves| *serves != Serves::Service);
    let total = php.map(|(_, gauges)| u64::from(gauges.threads.total())).sum::<u64>();
    // There, a thread of a worker is busy as long as its script runs, whether it has a request or not.
    let at_rest =
        classic().map(|gauges| u64::from(gauges.threads.total() - gauges.threads.busy)).sum::<u64>();
    let queued = classic().map(|gauges| gauges.queue_length).sum::<u64>();
    let of_all = |name, help, value| gauge(name, help, [(vec![], value as f64)]);
    let mut families = vec![
        of_all("frankenphp_total_threads", "Total number of PHP threads", total),
        of_all("frankenphp_busy_threads", "Number of busy PHP threads", total - at_rest),
        of_all("frankenphp_queue_depth", "Number of regular queued requests", queued),
    ];
    families.extend(frankenphp_workers(pools));
    families
}

fn frankenphp_workers(pools: &[ObservedPool]) -> Vec<MetricFamily> {
    let by_worker = |value: fn(&ObservedPool) -> f64| {
        let workers = pools.iter().filter(|(pool, _)| pool.serves.worker().is_some());
        workers.map(|pool| (labels(&[("worker", &pool.0.name)]), value(pool))).collect::<Vec<_>>()
    };
    vec![
        gauge(
            "frankenphp_total_workers",
            "Total number of PHP workers for this worker",
            by_worker(|(_, gauges)| gauges.threads.total().into()),
        ),
        gauge(
            "frankenphp_busy_workers",
            "Number of busy PHP workers for this worker",
            by_worker(|(_, gauges)| gauges.threads.busy.into()),
        ),
        gauge(
            "frankenphp_ready_workers",
            "Running workers that have successfully called frankenphp_handle_request at least once",
            by_worker(|(_, gauges)| gauges.threads.ready().into()),
        ),
        counter(
            "frankenphp_worker_request_time",
            "Seconds that this worker has spent on requests",
            by_worker(|(pool, _)| seconds(execution(pool).sum())),
        ),
        counter(
            "frankenphp_worker_request_count",
            "Number of requests that this worker has answered",
            by_worker(|(pool, _)| execution(pool).count() as f64),
        ),
        counter(
            "frankenphp_worker_crashes",
            "Number of PHP worker crashes for this worker",
            by_worker(|(pool, _)| pool.events.crashes as f64),
        ),
        counter(
            "frankenphp_worker_restarts",
            "Number of PHP worker restarts for this worker",
            by_worker(|(pool, _)| pool.events.restarts as f64),
        ),
        gauge(
            "frankenphp_worker_queue_depth",
            "Number of queued requests for this worker",
            by_worker(|(_, gauges)| gauges.queue_length as f64),
        ),
    ]
}

fn execution(pool: &PoolReading) -> Snapshot {
    pool.total(RoutePhase::Execution)
}

/// What became of requests.
fn requests(reading: &Reading) -> Vec<MetricFamily> {
    let answers = each_route(reading, |pool, route| {
        let counts = STATUS_CLASSES.into_iter().zip(route.totals.counts.answers);
        counts
            .map(|(class, count)| (route_labels(pool, route, Some(("class", class))), count as f64))
            .collect()
    });
    let shed = each_route(reading, |pool, route| {
        let counts = Reason::ALL.into_iter().zip(route.totals.counts.shed);
        let label = |reason: Reason| route_labels(pool, route, Some(("reason", reason.label())));
        counts.map(|(reason, count)| (label(reason), count as f64)).collect()
    });
    let lost = by_route(reading, |route| route.totals.counts.lost as f64);
    let retried = by_route(reading, |route| route.totals.counts.retried as f64);
    let overdue = by_route(reading, |route| route.totals.counts.overdue as f64);
    vec![
        counter(
            "regent_requests_total",
            "Requests that an engine answered, by class of the status.",
            answers,
        ),
        counter(
            "regent_shed_total",
            "Requests that were refused or given up without an engine, by reason.",
            shed,
        ),
        counter("regent_lost_total", "Requests whose engine died while they ran.", lost),
        counter(
            "regent_retries_total",
            "Requests that were run once more, since their engine died.",
            retried,
        ),
        counter(
            "regent_request_timeouts_total",
            "Requests that ran for longer than their request_timeout.",
            overdue,
        ),
    ]
}

fn deadlines(reading: &Reading) -> Vec<MetricFamily> {
    vec![
        counter(
            "regent_deadline_requests_total",
            "Answered requests that had a deadline.",
            by_route(reading, |route| route.totals.counts.promised as f64),
        ),
        counter(
            "regent_deadline_misses_total",
            "Requests that were answered after their deadline.",
            by_route(reading, |route| route.totals.counts.missed as f64),
        ),
        gauge(
            "regent_deadline_miss_ratio",
            "Part of the answered requests with a deadline that missed it, in the last minute.",
            by_route(reading, |route| route.recent.last_minute.miss_ratio()),
        ),
        gauge(
            "regent_worst_seconds",
            "The longest request of the last minute, to the last byte of its answer.",
            by_route(reading, |route| seconds(Duration::from_nanos(route.recent.worst))),
        ),
    ]
}

fn phases(reading: &Reading) -> Vec<MetricFamily> {
    let histograms = |name, help, phase: &dyn Fn(&RouteReading) -> CoarseSnapshot| {
        let series = each_route(reading, |pool, route| {
            vec![(route_labels(pool, route, None), histogram(&phase(route)))]
        });
        family(name, help, MetricType::HISTOGRAM, series, Metric::set_histogram)
    };
    let fine = |phase| move |route: &RouteReading| route.totals.fine[phase as usize].coarse();
    let coarse = |phase| move |route: &RouteReading| route.totals.coarse[phase as usize].clone();
    vec![
        histograms("regent_queue_wait_seconds", "Time in the queue of a pool.", &fine(RoutePhase::QueueWait)),
        histograms(
            "regent_time_to_first_byte_seconds",
            "From the first byte of a request's head to the first byte of its answer.",
            &coarse(PoolPhase::FirstByte),
        ),
        histograms(
            "regent_execution_seconds",
            "Time on a thread of an engine.",
            &fine(RoutePhase::Execution),
        ),
        histograms("regent_cpu_seconds", "CPU time of a sample of the requests.", &fine(RoutePhase::Cpu)),
        histograms(
            "regent_request_duration_seconds",
            "From the first byte of a request's head to the last byte of its answer.",
            &fine(RoutePhase::Total),
        ),
    ]
}

/// Of pools and their threads.
fn state(pools: &[ObservedPool]) -> Vec<MetricFamily> {
    let by_pool = |value: fn(&ObservedPool) -> f64| {
        let series = pools.iter().map(|pool| (labels(&[("pool", &pool.0.name)]), value(pool)));
        series.collect::<Vec<_>>()
    };
    let split = |label: &'static str, values: fn(&ObservedPool) -> Vec<(&'static str, f64)>| {
        let series = pools.iter().flat_map(|pool| {
            let of_pool = |(name, value)| (labels(&[("pool", &pool.0.name), (label, name)]), value);
            values(pool).into_iter().map(of_pool)
        });
        series.collect::<Vec<_>>()
    };
    let threads = split("state", |(_, gauges)| {
        let threads = gauges.threads;
        let states = [threads.booting, threads.idle, threads.busy, threads.backoff].map(f64::from);
        ["booting", "idle", "busy", "backoff"].into_iter().zip(states).collect()
    });
    let scaled = split("direction", |(pool, _)| {
        vec![("up", pool.events.scaled_up as f64), ("down", pool.events.scaled_down as f64)]
    });
    vec![
        gauge("regent_threads", "Threads of engines, by state.", threads),
        gauge(
            "regent_threads_limit",
            "Threads that the pool may have.",
            by_pool(|(_, gauges)| gauges.most.into()),
        ),
        gauge(
            "regent_threads_stuck",
            "Busy threads far beyond their route's service time and off the CPU.",
            by_pool(|(_, gauges)| gauges.stuck.into()),
        ),
        gauge(
            "regent_queue_length",
            "Requests that wait for a thread.",
            by_pool(|(_, gauges)| gauges.queue_length as f64),
        ),
        gauge(
            "regent_queue_oldest_wait_seconds",
            "How long the first request in the queue has waited.",
            by_pool(|(_, gauges)| seconds(gauges.oldest_wait)),
        ),
        counter(
            "regent_threads_written_off_total",
            "Threads that did not come back from a request whose time was over.",
            by_pool(|(pool, _)| pool.events.written_off as f64),
        ),
        counter(
            "regent_departed_timeouts_total",
            "Requests that stood in a wait when their client had left, until departed_timeout ended them.",
            by_pool(|(pool, _)| pool.events.departed as f64),
        ),
        counter("regent_scale_events_total", "Changes of the number of threads, however many each.", scaled),
    ]
}

fn lanes(reading: &Reading, lanes: &[LaneGauges]) -> Vec<MetricFamily> {
    let by_lane = |value: fn(&LaneGauges) -> u32| {
        let series = lanes.iter().filter_map(|lane| {
            let pool = reading.pools.iter().find(|pool| pool.id == lane.pool)?;
            Some((labels(&[("pool", &pool.name), ("route", &lane.route)]), f64::from(value(lane))))
        });
        series.collect::<Vec<_>>()
    };
    vec![
        gauge("regent_lane_limit", "Threads that a limited route may hold.", by_lane(|lane| lane.limit)),
        gauge(
            "regent_lane_inside",
            "Requests of a limited route in the pool's queue or running.",
            by_lane(|lane| lane.inside),
        ),
        gauge(
            "regent_lane_waiting",
            "Requests of a limited route that wait for their turn.",
            by_lane(|lane| lane.waiting),
        ),
    ]
}

fn certificates(certificates: &[CertificateGauge]) -> MetricFamily {
    let series = certificates.iter().map(|certificate| {
        let since_1970 = certificate.not_after.duration_since(UNIX_EPOCH).unwrap_or_default();
        (labels(&[("name", &certificate.name), ("source", certificate.source)]), seconds(since_1970))
    });
    gauge(
        "regent_certificate_not_after_seconds",
        "When a certificate that is served ends, in seconds since the Unix epoch.",
        series,
    )
}

/// The first is Caddy's.
fn upstreams(upstreams: &[UpstreamGauge]) -> [MetricFamily; 4] {
    let each = |value: &dyn Fn(&UpstreamGauge) -> u64| -> Series<f64> {
        let series =
            |upstream: &UpstreamGauge| (labels(&[("upstream", &upstream.address)]), value(upstream) as f64);
        upstreams.iter().map(series).collect()
    };
    [
        gauge(
            "caddy_reverse_proxy_upstreams_healthy",
            "Whether an upstream of reverse_proxy is given requests: 1 or 0.",
            each(&|upstream| u64::from(upstream.is_healthy)),
        ),
        gauge(
            "regent_proxy_requests_in_flight",
            "Requests that an upstream has, until their responses have ended.",
            each(&|upstream| upstream.requests),
        ),
        counter(
            "regent_proxy_requests_total",
            "Requests that an upstream was given.",
            each(&|upstream| upstream.requests_total),
        ),
        counter(
            "regent_proxy_failures_total",
            "Requests that an upstream has failed at.",
            each(&|upstream| upstream.failures_total),
        ),
    ]
}

fn memory(memory: &MemoryGauges) -> [MetricFamily; 2] {
    let one = |value: u64| [(vec![], value as f64)];
    [
        gauge(
            "regent_memory_used_bytes",
            "Memory in use, of the machine or the control group that leaves less.",
            one(memory.used),
        ),
        gauge("regent_memory_limit_bytes", "The bound of that.", one(memory.limit)),
    ]
}

fn by_route(reading: &Reading, value: impl Fn(&RouteReading) -> f64) -> Series<f64> {
    each_route(reading, |pool, route| vec![(route_labels(pool, route, None), value(route))])
}

fn each_route<V>(reading: &Reading, series: impl Fn(&PoolReading, &RouteReading) -> Series<V>) -> Series<V> {
    let of_pool = |pool: &PoolReading| {
        let series = pool.routes.iter().flat_map(|route| series(pool, route));
        series.collect::<Vec<_>>()
    };
    reading.pools.iter().flat_map(of_pool).collect()
}

fn route_labels(pool: &PoolReading, route: &RouteReading, more: Option<(&str, &str)>) -> Labels {
    let names = [("pool", pool.name.as_str()), ("route", route.name.as_str())];
    names.into_iter().chain(more).map(label).collect()
}

fn histogram(snapshot: &CoarseSnapshot) -> Histogram {
    let bucket = |(bound, count)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(seconds(Duration::from_nanos(bound)));
        bucket.set_cumulative_count(count);
        bucket
    };
    let mut histogram = Histogram::default();
    histogram.set_bucket(snapshot.cumulative().map(bucket).collect());
    histogram.set_sample_count(snapshot.count());
    histogram.set_sample_sum(seconds(Duration::from_nanos(snapshot.sum)));
    histogram
}
