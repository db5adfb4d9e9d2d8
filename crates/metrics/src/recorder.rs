//! Where an I/O thread writes what became of its requests.

use crate::Reason;
use crate::bounds::Sample;
use crate::figures::{PoolPhase, RouteFigures, RoutePhase};
use crate::names::RouteId;
use crate::threads::ThreadFigures;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// One for each I/O thread, from [`Registry::recorder`](crate::Registry::recorder). It can go to a thread but not be
/// shared by several, so that its counters need no locked instructions. Every request to an engine ends
/// in exactly one call of [`request`](Self::request), [`shed`](Self::shed) or [`lost`](Self::lost).
///
/// The first call for a pool or a route allocates its counters; the others allocate nothing, and lock nothing.
///
/// ```compile_fail,E0277
/// fn shared_by_threads<T: Sync>() {}
/// shared_by_threads::<regent_metrics::Recorder>();
/// ```
pub struct Recorder {
    figures: Arc<ThreadFigures>,
    one_thread: PhantomData<Cell<()>>,
}

/// A request that an engine answered.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub route: RouteId,
    /// From its entry into the queue until a thread took it.
    pub queue_wait: Duration,
    /// From then until the engine had done with it.
    pub execution: Duration,
    /// CPU time of the thread; `None` if it was not measured, as of most.
    pub cpu: Option<Duration>,
    /// From the first byte of its head to the first byte of the answer.
    pub first_byte: Duration,
    /// From the first byte of its head to the last byte of the answer.
    pub total: Duration,
    pub status: u16,
    /// `None`: nothing was promised.
    pub deadline: Option<Duration>,
}

impl Recorder {
    pub(crate) fn new(figures: Arc<ThreadFigures>) -> Self {
        Self { figures, one_thread: PhantomData }
    }

    pub fn request(&self, request: &Request) {
        let route = self.figures.route(request.route);
        let total = self.measure(request, route);
        route.answers.count(request.status);
        route.worst.raise(total.nanos);
        if let Some(deadline) = request.deadline {
            route.promised.add(1);
            route.deadline.set(Sample::new(deadline).nanos);
            route.missed.add(u64::from(request.total > deadline));
        }
    }

    /// A request that was refused, or given up while it waited.
    pub fn shed(&self, route: RouteId, reason: Reason) {
        self.figures.route(route).shed.count(reason);
    }

    /// A request whose engine died while it ran.
    pub fn lost(&self, route: RouteId) {
        self.figures.route(route).lost.add(1);
    }

    /// A request that ran for longer than it may. It counts as what its client got, besides.
    pub fn overdue(&self, route: RouteId) {
        self.figures.route(route).overdue.add(1);
    }

    /// A request whose engine died while it ran, and which is run once more. It counts as what its client gets, besides.
    pub fn retried(&self, route: RouteId) {
        self.figures.route(route).retried.add(1);
    }

    /// Returns the total.
    fn measure(&self, request: &Request, route: &RouteFigures) -> Sample {
        let pool = self.figures.pool(request.route.pool());
        let first_byte = Sample::new(request.first_byte);
        pool.add(PoolPhase::FirstByte, first_byte);
        route.add_coarsely(PoolPhase::FirstByte, first_byte);
        route.add(RoutePhase::Execution, Sample::new(request.execution));
        if let Some(cpu) = request.cpu {
            route.add(RoutePhase::Cpu, Sample::new(cpu));
        }
        let total = Sample::new(request.total);
        route.add(RoutePhase::QueueWait, Sample::new(request.queue_wait));
        route.add(RoutePhase::Total, total);
        total
    }
}
