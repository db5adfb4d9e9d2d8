//! Models that loom checks: all interleavings of their threads, and all values that a relaxed load may return.

#[cfg(test)]
mod doorbell;
#[cfg(test)]
mod fifo;
pub(crate) mod futex;
#[cfg(test)]
mod pipe;
#[cfg(test)]
mod pool;
#[cfg(test)]
mod slot;

/// How much of a model is explored.
#[cfg(test)]
#[derive(Clone, Copy)]
enum Bound {
    Everything,
    /// All executions in which threads lose the processor at most so often against their will.
    /// `LOOM_MAX_PREEMPTIONS` goes further.
    Preemptions(usize),
}

#[cfg(test)]
fn explore(bound: Bound, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    if let (Bound::Preemptions(bound), None) = (bound, builder.preemption_bound) {
        builder.preemption_bound = Some(bound);
    }
    builder.check(model);
}
