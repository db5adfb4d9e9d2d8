//! Models that loom checks: all interleavings of their threads, and all values that a relaxed load may return.
//!
//! Run them with `RUSTFLAGS="--cfg loom" cargo test -p regent-wire --lib --release models`, in a target directory of
//! their own; `LOOM_MAX_PREEMPTIONS=4` goes further than the bounds that are set here. The code under test is that of
//! the crate: only the futex ([`futex`]) and the bytes of a ring ([`area`](crate::area)) stand for something else.
//! A sleeper that nobody wakes is a deadlock, which loom reports.
//!
//! | invariant | models |
//! |---|---|
//! | no token is lost, doubled or out of order | `fifo` |
//! | no token waits while an idle thread sleeps; wakes in flight never run out | `pool` |
//! | a drained pool runs what it has and ends; a retired thread leaves nothing behind | `pool::a_drained_…`, `a_retired_…` |
//! | a request runs once or was withdrawn, and once more if its process died; a token of an earlier generation does nothing | `slot` |
//! | a slot that was given up comes back, and its last script never writes to the next request | `slot::a_slot_…` |
//! | no mark is lost; an I/O thread that sleeps is rung | `doorbell` |
//! | no byte is lost or read too early; nobody waits for ever for bytes, room, the body's end or a client that left | `pipe` |
//!
//! # What the models catch
//! Each of these changes to the code makes at least one of them fail:
//! * `pool`: pop before the announcement, or none after it; no fence in `park`, `wake_one`, `return_wake` or `wake`; no
//!   chaining, after a pop or after a sleep; a wake that is not given back; a thread that sleeps right after it spun; a
//!   `wake_one` that does not try again; a parker that is not set, or emptied after the announcement; `must_stop` not
//!   asked before the sleep, or asked only after the pop; a burial that leaves the wakes or the idle bit, or wakes
//!   nobody.
//! * `fifo`: a tail that is published or read relaxed, or before its cell; a head that is stored instead of exchanged;
//!   a token read again after the exchange; a queue that takes one too many.
//! * `slot`: a claim that ignores the generation; a withdrawal that looks and stores; any of the words relaxed.
//! * `doorbell`: no fence in `mark` or `park`; the summary set before the bit, or cleared after it; bits set relaxed, or
//!   cleared by a store; a second sleep that is not announced.
//! * `signal`: no fence, on any of the four sides; the count read after the look, not counted, or counted before the
//!   word is cleared; no look after the announcement.
//! * `pipe`, `ring`: no second look at the room, or before the wish; no signal after sending, reading or giving up; no
//!   mark for room; a sleep before the publication; the body's end looked at after the ring, or not at all; positions
//!   published or read relaxed; room for one byte too many.
//!
//! Two orderings are out of loom's reach, since it runs each thread in program order and lets an exchange read only the
//! latest value: that the producer reads the FIFO's head with *acquire*, and that a mark sets the summary with
//! *release*.

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
