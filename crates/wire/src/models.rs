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

/// Runs the model in every execution within the bound; with `--nocapture` it says how many there were.
#[cfg(test)]
fn explore(bound: Bound, model: impl Fn() + Send + Sync + 'static) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    let mut builder = loom::model::Builder::new();
    if let (Bound::Preemptions(bound), None) = (bound, builder.preemption_bound) {
        builder.preemption_bound = Some(bound);
    }
    let executions = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&executions);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{} executions", executions.load(Ordering::Relaxed));
}
