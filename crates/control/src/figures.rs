//! Pools, statistics and gauges, in the words of the admin API and of the metrics.

use crate::php;
use crate::seen::{self, Seen};
use regent_admin::{
    Circuit, CircuitState, Confinement, Generation, Lane, Percentiles, Pool, PoolStatistics, Readiness,
    RouteStatistics, ScaleEvent, Statistics, ThreadCounts, Traffic,
};
use regent_dispatch::circuits::Phase;
use regent_dispatch::lanes::LaneFigures;
use regent_engines::{EngineControl, Php, PoolPlan, PoolView, ThreadListing, ThreadStage};
use regent_metrics::{
    CircuitGauge, Gauges, LaneGauges, Latency, Period, PoolGauges, Report, RouteReport, TraceGauges,
};
use regent_otlp::Counts;
use regent_wire::ThreadState;
use std::time::Duration;

/// Scale events that are shown.
const EVENTS: usize = 100;

pub(crate) fn pools(views: &[Seen<'_>]) -> Vec<Pool> {
    each_pool(views).map(|(plan, view)| pool(plan, view)).collect()
}

/// A request of each pool is served at once, or at least by a thread that is there.
pub(crate) fn readiness(views: &[Seen<'_>]) -> Readiness {
    let without = each_pool(views).find(|(_, pool)| {
        let counts = counts(pool);
        counts.idle + counts.busy == 0
    });
    match without {
        None => Readiness::Ready,
        Some((plan, _)) => {
            Readiness::NotReady(format!("no thread of the pool `{}` is ready for requests", plan.name))
        }
    }
}

/// The pools of all engines, as they are planned and as they stand.
fn each_pool<'a>(views: &'a [Seen<'_>]) -> impl Iterator<Item = (&'a PoolPlan, &'a PoolView)> {
    views.iter().flat_map(|(engine, view)| engine.plans.iter().zip(&view.pools))
}

/// Of no engine: there is no engine at this moment.
pub(crate) fn gauges(views: &[Seen<'_>]) -> Gauges {
    let pools = || views.iter().flat_map(|(engine, _)| engine.pools.iter());
    let planned = views.iter().flat_map(|(engine, view)| {
        engine.pools.iter().zip(&engine.plans).zip(&view.pools).map(|((pool, plan), view)| (pool, plan, view))
    });
    let gauges = planned.map(|(pool, plan, view)| {
        let threads = |state| {
            let of = |thread: &&_| is_there(thread) && thread.view.state == state;
            view.threads.iter().filter(of).count() as u32
        };
        PoolGauges {
            pool: pool.id,
            threads: regent_metrics::Threads {
                booting: threads(ThreadState::Booting) + threads(ThreadState::Absent),
                idle: threads(ThreadState::Idle),
                busy: threads(ThreadState::Busy),
                backoff: threads(ThreadState::Backoff),
            },
            most: plan.most.into(),
            stuck: view.threads.iter().filter(|thread| thread.is_stuck).count() as u32,
            queue_length: view.waiting,
            oldest_wait: view.oldest_wait,
        }
    });
    Gauges {
        pools: gauges.collect(),
        lanes: pools().flat_map(lanes).collect(),
        circuits: views.iter().flat_map(|(engine, _)| circuit_gauges(engine)).collect(),
        certificates: Vec::new(),
        upstreams: Vec::new(),
        rate_zones: Vec::new(),
        cache: None,
        memory: None,
        traces: None,
        http: None,
        php: running_php(views).map(php::gauge),
    }
}

/// Of spans that are sent to a collector.
pub(crate) fn traces(counts: Counts) -> TraceGauges {
    let dropped = counts.lost().map(|(loss, spans)| (loss.label(), spans)).collect();
    TraceGauges { exported: counts.exported, dropped }
}

fn lanes(pool: &regent_engines::Pool) -> impl Iterator<Item = LaneGauges> {
    pool.lanes.figures().into_iter().map(|lane| LaneGauges {
        pool: pool.id,
        route: lane.route.name().to_owned(),
        limit: lane.limit,
        inside: lane.inside,
        waiting: lane.waiting,
    })
}

fn circuit_gauges(engine: &EngineControl) -> impl Iterator<Item = CircuitGauge> {
    engine.pools.circuits.figures().into_iter().map(|figures| {
        let circuit = figures.circuit;
        CircuitGauge {
            pool: engine.pools.get(usize::from(circuit.pool)).id,
            route: circuit.route.as_deref().unwrap_or_default().to_owned(),
            script: circuit.script_name(),
        }
    })
}

pub(crate) fn statistics(views: &[Seen<'_>], report: &Report) -> Statistics {
    let traffic = |label: &str| report.pools.iter().find(|pool| pool.name == label);
    let pools = each_pool(views).map(|(plan, of)| PoolStatistics {
        pool: pool(plan, of),
        traffic: traffic(&plan.label()).map_or_else(Traffic::default, pool_traffic),
    });
    Statistics {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime: Duration::from_secs(report.uptime_seconds),
        window: Duration::from_secs(report.window_seconds),
        pools: pools.collect(),
        routes: routes(views, report),
        circuits: views.iter().flat_map(|(engine, _)| circuits(engine)).collect(),
        scale_events: scale_events(views),
        generations: generations(views),
        php: running_php(views).map(php::listed),
    }
}

/// That of the engine that started last.
fn running_php<'a>(views: &'a [Seen<'_>]) -> Option<&'a Php> {
    views.iter().find_map(|(_, view)| view.php.as_ref())
}

fn is_there(thread: &ThreadListing) -> bool {
    thread.stage == ThreadStage::Ordered
}

fn pool(plan: &PoolPlan, view: &PoolView) -> Pool {
    Pool {
        name: plan.name.clone(),
        engine: seen::engine(plan.kind),
        worker: plan.worker.as_ref().map(|file| file.display().to_string()),
        threads: counts(view),
        least: plan.least,
        most: plan.most,
        queued: u32::try_from(view.waiting).unwrap_or(u32::MAX),
        oldest_wait: view.oldest_wait,
    }
}

fn counts(pool: &PoolView) -> ThreadCounts {
    let mut counts = ThreadCounts::default();
    for thread in &pool.threads {
        let count = match (thread.stage, thread.view.state) {
            (
                ThreadStage::Retiring | ThreadStage::Failed | ThreadStage::Replaced | ThreadStage::WrittenOff,
                _,
            ) => &mut counts.leaving,
            (ThreadStage::Ordered, ThreadState::Idle) => &mut counts.idle,
            (ThreadStage::Ordered, ThreadState::Busy) if thread.is_stuck => &mut counts.stuck,
            (ThreadStage::Ordered, ThreadState::Busy) => &mut counts.busy,
            (ThreadStage::Ordered, ThreadState::Backoff) => &mut counts.backoff,
            (ThreadStage::Ordered, ThreadState::Absent | ThreadState::Booting) => &mut counts.starting,
        };
        *count += 1;
    }
    counts
}

/// Busiest first; what nobody asked for lately is left out.
fn routes(views: &[Seen<'_>], report: &Report) -> Vec<RouteStatistics> {
    let plan = |label: &str| each_pool(views).map(|(plan, _)| plan).find(|plan| plan.label() == label);
    let lanes = lanes_by_pool(views);
    let mut routes: Vec<RouteStatistics> = report
        .pools
        .iter()
        .filter_map(|pool| Some((plan(&pool.name)?, pool)))
        .flat_map(|(plan, pool)| pool.routes.iter().map(move |route| (plan, route)))
        .map(|(plan, route)| route_statistics(plan, route, &lanes))
        .filter(|route| load(route) > 0)
        .collect();
    routes.sort_by_key(|route| std::cmp::Reverse(load(route)));
    routes
}

/// By the name of the pool.
fn lanes_by_pool<'a>(views: &'a [Seen<'_>]) -> Vec<(&'a str, LaneFigures)> {
    let pools = views.iter().flat_map(|(engine, _)| engine.plans.iter().zip(engine.pools.iter()));
    let of_pool = |(plan, pool): (&'a PoolPlan, &regent_engines::Pool)| {
        pool.lanes.figures().into_iter().map(|lane| (plan.name.as_str(), lane))
    };
    pools.flat_map(of_pool).collect()
}

/// Requests that ended lately, and those of a slow route that have not: it may hang.
fn load(route: &RouteStatistics) -> u64 {
    let held = route.lane.map_or(0, |lane| u64::from(lane.inside) + u64::from(lane.waiting));
    route.traffic.requests + route.traffic.shed.total() + held
}

fn route_statistics(plan: &PoolPlan, route: &RouteReport, lanes: &[(&str, LaneFigures)]) -> RouteStatistics {
    let latencies = &route.recent.latencies;
    let lane = lanes.iter().find(|(pool, lane)| *pool == plan.name && lane.route.name() == route.name);
    RouteStatistics {
        route: route.name.clone(),
        pool: plan.name.clone(),
        deadline: route.deadline_seconds.map(Duration::from_secs_f64),
        lane: lane.map(|(_, lane)| Lane { limit: lane.limit, inside: lane.inside, waiting: lane.waiting }),
        traffic: Traffic {
            queue: percentiles(&latencies.queue_wait),
            execution: percentiles(&latencies.execution),
            cpu: percentiles(&latencies.cpu),
            total: percentiles(&latencies.total),
            ..counts_of(&route.recent)
        },
    }
}

fn pool_traffic(pool: &regent_metrics::PoolReport) -> Traffic {
    let latencies = &pool.recent.latencies;
    Traffic {
        queue: percentiles(&latencies.queue_wait),
        execution: percentiles(&latencies.execution),
        cpu: percentiles(&latencies.cpu),
        total: percentiles(&latencies.total),
        ..counts_of(&pool.recent)
    }
}

fn counts_of<L>(period: &Period<L>) -> Traffic {
    Traffic {
        requests: period.requests,
        errors: period.answers.server_error + period.lost,
        deadline_misses: period.deadlines.missed,
        shed: period.shed,
        ..Traffic::default()
    }
}

fn percentiles(latency: &Latency) -> Option<Percentiles> {
    let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    (latency.count > 0).then(|| Percentiles {
        p50: time(latency.p50),
        p90: time(latency.p90),
        p99: time(latency.p99),
        max: time(latency.max),
    })
}

fn circuits(engine: &EngineControl) -> impl Iterator<Item = Circuit> {
    engine.pools.circuits.figures().into_iter().map(|figures| Circuit {
        pool: engine.plans[usize::from(figures.circuit.pool)].name.clone(),
        script: figures.circuit.script_name(),
        route: figures.circuit.route.map(String::from),
        state: match figures.phase {
            Phase::Open => CircuitState::Open,
            Phase::Probing => CircuitState::Probing,
        },
        pause: figures.pause,
        left: figures.left,
    })
}

fn generations(views: &[Seen<'_>]) -> Vec<Generation> {
    let of_engine = |(control, view): &Seen<'_>| {
        let engine = seen::engine(control.clients.kind);
        let generations = view.generations.iter().map(move |generation| Generation {
            engine,
            number: generation.number,
            started_at: generation.started_at,
            reason: generation.reason.clone(),
            confinement: generation
                .confined
                .clone()
                .map(|confined| Confinement { enforced: confined.enforced, missing: confined.missing }),
        });
        generations.collect::<Vec<_>>()
    };
    views.iter().flat_map(of_engine).collect()
}

/// Newest first.
fn scale_events(views: &[Seen<'_>]) -> Vec<ScaleEvent> {
    let size = |threads: u32| u16::try_from(threads).unwrap_or(u16::MAX);
    let of_all =
        views.iter().flat_map(|(engine, view)| view.events.iter().map(|event| (&engine.plans, event)));
    let mut events: Vec<ScaleEvent> = of_all
        .map(|(plans, event)| ScaleEvent {
            at: event.at,
            pool: plans[event.pool].name.clone(),
            from: size(event.from),
            to: size(event.to),
            reason: event.reason.clone(),
        })
        .collect();
    events.reverse();
    events.sort_by_key(|event| std::cmp::Reverse(event.at));
    events.truncate(EVENTS);
    events
}
