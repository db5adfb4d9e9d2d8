//! Pools, statistics and gauges, in the words of the admin API and of the metrics.

use crate::plan::PoolPlan;
use crate::pools::Pools;
use crate::roster::MemberStage;
use crate::supervisor::{PoolView, View};
use regent_admin::{
    Percentiles, Pool, PoolStatistics, Readiness, RouteStatistics, ScaleEvent, Shed, Statistics,
    ThreadCounts, Traffic,
};
use regent_metrics::{Gauges, LaneGauges, Latency, PoolGauges, Report, RouteReport};
use regent_wire::ThreadState;
use std::time::Duration;

/// Scale events that are shown.
const EVENTS: usize = 100;

pub(super) fn pools(plans: &[PoolPlan], view: &View) -> Vec<Pool> {
    plans.iter().zip(&view.pools).map(|(plan, pool)| self::pool(plan, pool)).collect()
}

/// A request of each pool is served at once, or at least by a thread that is there.
pub(super) fn readiness(plans: &[PoolPlan], view: &View) -> Readiness {
    let without = plans.iter().zip(&view.pools).find(|(_, pool)| {
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

/// `None`: there is no engine at this moment.
pub(super) fn gauges(pools: &Pools, view: Option<&View>) -> Gauges {
    let Some(view) = view else { return Gauges::default() };
    let gauges = pools.iter().zip(&view.pools).map(|(pool, view)| {
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
            stuck: view.threads.iter().filter(|thread| thread.is_stuck).count() as u32,
            queue_length: view.waiting,
            oldest_wait: view.oldest_wait,
        }
    });
    Gauges { pools: gauges.collect(), lanes: pools.iter().flat_map(lanes).collect() }
}

fn lanes(pool: &crate::pools::Pool) -> impl Iterator<Item = LaneGauges> {
    pool.lanes.figures().into_iter().map(|lane| LaneGauges {
        pool: pool.id,
        route: lane.route.name().to_owned(),
        limit: lane.limit,
        inside: lane.inside,
        waiting: lane.waiting,
    })
}

pub(super) fn statistics(plans: &[PoolPlan], view: &View, report: &Report) -> Statistics {
    let traffic = |label: &str| report.pools.iter().find(|pool| pool.name == label);
    let pools = plans.iter().zip(&view.pools).map(|(plan, of)| PoolStatistics {
        pool: pool(plan, of),
        traffic: traffic(&plan.label()).map_or_else(Traffic::default, pool_traffic),
    });
    Statistics {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime: Duration::from_secs(report.uptime_seconds),
        window: Duration::from_secs(report.window_seconds),
        pools: pools.collect(),
        routes: routes(plans, report),
        scale_events: scale_events(plans, view),
        generations: view.generations.clone(),
    }
}

fn is_there(thread: &crate::supervisor::ThreadListing) -> bool {
    thread.stage == MemberStage::Ordered
}

fn pool(plan: &PoolPlan, view: &PoolView) -> Pool {
    Pool {
        name: plan.name.clone(),
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
            (MemberStage::Retiring | MemberStage::Failed, _) => &mut counts.leaving,
            (MemberStage::Ordered, ThreadState::Idle) => &mut counts.idle,
            (MemberStage::Ordered, ThreadState::Busy) if thread.is_stuck => &mut counts.stuck,
            (MemberStage::Ordered, ThreadState::Busy) => &mut counts.busy,
            (MemberStage::Ordered, ThreadState::Backoff) => &mut counts.backoff,
            (MemberStage::Ordered, ThreadState::Absent | ThreadState::Booting) => &mut counts.starting,
        };
        *count += 1;
    }
    counts
}

/// Busiest first; what nobody asked for lately is left out.
fn routes(plans: &[PoolPlan], report: &Report) -> Vec<RouteStatistics> {
    let name = |label: &str| plans.iter().find(|plan| plan.label() == label).map(|plan| plan.name.clone());
    let mut routes: Vec<RouteStatistics> = report
        .pools
        .iter()
        .filter_map(|pool| Some((name(&pool.name)?, pool)))
        .flat_map(|(name, pool)| pool.routes.iter().map(move |route| route_statistics(&name, route)))
        .filter(|route| route.traffic.requests + route.traffic.shed.total() > 0)
        .collect();
    routes.sort_by_key(|route| std::cmp::Reverse(route.traffic.requests + route.traffic.shed.total()));
    routes
}

fn route_statistics(pool: &str, route: &RouteReport) -> RouteStatistics {
    let recent = &route.recent;
    RouteStatistics {
        route: route.name.clone(),
        pool: pool.to_owned(),
        deadline: route.deadline_seconds.map(Duration::from_secs_f64),
        traffic: Traffic {
            requests: recent.requests,
            errors: recent.answers.server_error + recent.lost,
            deadline_misses: recent.deadlines.missed,
            shed: shed(&recent.shed),
            queue: percentiles(&recent.latencies.queue_wait),
            execution: None,
            total: percentiles(&recent.latencies.total),
        },
    }
}

fn pool_traffic(pool: &regent_metrics::PoolReport) -> Traffic {
    let recent = &pool.recent;
    Traffic {
        requests: recent.requests,
        errors: recent.answers.server_error + recent.lost,
        deadline_misses: recent.deadlines.missed,
        shed: shed(&recent.shed),
        queue: percentiles(&recent.latencies.queue_wait),
        execution: percentiles(&recent.latencies.execution),
        total: percentiles(&recent.latencies.total),
    }
}

fn shed(shed: &regent_metrics::Shed) -> Shed {
    Shed {
        queue_full: shed.queue_full,
        wait_time: shed.wait_time,
        deadline: shed.deadline,
        draining: shed.draining,
        client_gone: shed.client_gone,
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

/// Newest first.
fn scale_events(plans: &[PoolPlan], view: &View) -> Vec<ScaleEvent> {
    let size = |threads: u32| u16::try_from(threads).unwrap_or(u16::MAX);
    let events = view.events.iter().rev().take(EVENTS).map(|event| ScaleEvent {
        at: event.at,
        pool: plans[event.pool].name.clone(),
        from: size(event.from),
        to: size(event.to),
        reason: event.reason.clone(),
    });
    events.collect()
}
