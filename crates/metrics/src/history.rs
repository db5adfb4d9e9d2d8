//! The last seconds: a ring of what each second brought.

use crate::bounds::BUCKETS;
use crate::figures::{Counts, POOL_PHASES, ROUTE_PHASES, RouteTotals};
use crate::names::{Pool, PoolId, RouteId};
use crate::snapshot::Snapshot;
use crate::threads::AllThreads;
use std::array;
use std::collections::{HashMap, VecDeque};

/// Seconds over which latencies are reported as recent.
pub(crate) const WINDOW: u64 = 10;
/// Seconds over which the worst case and the deadlines are reported.
const MINUTE: u64 = 60;

/// What came lately, by pool and route.
#[derive(Default)]
pub(crate) struct History {
    /// From the start to the last tick.
    seconds: u64,
    pools: HashMap<PoolId, Latencies<POOL_PHASES>>,
    routes: HashMap<RouteId, RouteHistory>,
}

/// The last seconds of a route.
#[derive(Default)]
struct RouteHistory {
    last: Counts,
    seconds: Ring<RouteSecond, MINUTE>,
    latencies: Latencies<ROUTE_PHASES>,
}

struct RouteSecond {
    counts: Counts,
    worst: u64,
}

/// What is recent of a route.
#[derive(Default)]
pub(crate) struct RecentRoute {
    /// Of the last [`WINDOW`], as `latencies`.
    pub counts: Counts,
    pub latencies: [Snapshot; ROUTE_PHASES],
    pub last_minute: Counts,
    /// The longest of the last minute, in ns.
    pub worst: u64,
}

impl History {
    pub fn seconds(&self) -> u64 {
        self.seconds
    }

    /// Takes in what came since the last tick, unless that was in the same second.
    pub fn tick(&mut self, seconds: u64, pools: &[Pool], threads: &AllThreads) {
        let passed = seconds.saturating_sub(self.seconds);
        if passed == 0 {
            return;
        }
        self.seconds = seconds;
        for pool in pools {
            self.pools.entry(pool.id).or_default().advance(passed, &threads.pool(pool.id));
            for (route, _) in &pool.routes {
                let (totals, worst) = (threads.route(*route), threads.take_worst(*route));
                self.routes.entry(*route).or_default().advance(passed, &totals, worst);
            }
        }
    }

    pub fn pool(&self, pool: PoolId) -> [Snapshot; POOL_PHASES] {
        self.pools.get(&pool).map(Latencies::recent).unwrap_or_default()
    }

    pub fn route(&self, route: RouteId) -> RecentRoute {
        self.routes.get(&route).map(RouteHistory::recent).unwrap_or_default()
    }
}

impl RouteHistory {
    fn advance(&mut self, seconds: u64, totals: &RouteTotals, worst: u64) {
        let counts = totals.counts.since(&self.last);
        self.last = totals.counts;
        self.seconds.advance(seconds, RouteSecond { counts, worst });
        self.latencies.advance(seconds, &totals.fine);
    }

    fn recent(&self) -> RecentRoute {
        RecentRoute {
            counts: self.sum(WINDOW),
            latencies: self.latencies.recent(),
            last_minute: self.sum(MINUTE),
            worst: self.seconds.latest(MINUTE).map(|second| second.worst).max().unwrap_or(0),
        }
    }

    fn sum(&self, seconds: u64) -> Counts {
        let mut sum = Counts::default();
        self.seconds.latest(seconds).for_each(|second| sum += second.counts);
        sum
    }
}

/// The last [`WINDOW`] of several histograms.
struct Latencies<const N: usize> {
    last: [Snapshot; N],
    seconds: Ring<[Sparse; N], WINDOW>,
}

impl<const N: usize> Latencies<N> {
    fn advance(&mut self, seconds: u64, totals: &[Snapshot; N]) {
        let new = array::from_fn(|phase| Sparse::from(&totals[phase].since(&self.last[phase])));
        self.last.clone_from(totals);
        self.seconds.advance(seconds, new);
    }

    fn recent(&self) -> [Snapshot; N] {
        array::from_fn(|phase| merged(self.seconds.latest(WINDOW).map(|second| &second[phase])))
    }
}

impl<const N: usize> Default for Latencies<N> {
    fn default() -> Self {
        Self { last: array::from_fn(|_| Snapshot::default()), seconds: Ring::default() }
    }
}

/// A second's part of a histogram: most of its buckets are empty, and all of an idle route's.
struct Sparse {
    filled: Box<[(u16, u64)]>,
    /// In ns, as `max`.
    sum: u64,
    max: u64,
}

impl From<&Snapshot> for Sparse {
    fn from(snapshot: &Snapshot) -> Self {
        let filled = snapshot.filled().map(|(bucket, count)| (bucket as u16, count)).collect();
        Self { filled, sum: snapshot.sum_nanos(), max: snapshot.max_nanos() }
    }
}

fn merged<'a>(parts: impl Iterator<Item = &'a Sparse>) -> Snapshot {
    let (mut buckets, mut sum, mut max) = (Box::new([0; BUCKETS]), 0u64, 0);
    for part in parts {
        part.filled.iter().for_each(|(bucket, count)| buckets[usize::from(*bucket)] += count);
        sum = part.sum.wrapping_add(sum);
        max = max.max(part.max);
    }
    Snapshot::new(buckets, sum, max)
}

/// One entry for each of the last `N` seconds; `None` where a tick did not come.
struct Ring<T, const N: u64>(VecDeque<Option<T>>);

impl<T, const N: u64> Ring<T, N> {
    /// What came in several seconds, since a tick was late, counts for the last of them.
    fn advance(&mut self, seconds: u64, new: T) {
        for _ in 1..seconds.min(N) {
            self.push(None);
        }
        self.push(Some(new));
    }

    fn latest(&self, seconds: u64) -> impl Iterator<Item = &T> {
        self.0.iter().rev().take(seconds as usize).flatten()
    }

    fn push(&mut self, entry: Option<T>) {
        if self.0.len() as u64 == N {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }
}

impl<T, const N: u64> Default for Ring<T, N> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}
