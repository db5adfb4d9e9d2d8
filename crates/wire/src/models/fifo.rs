//! One producer, two consumers: each token once and in order, also when the cells wrap around and when they are full.

use super::{Bound, explore};
use crate::fifo::{Fifo, PushError};
use crate::sync::AtomicU64;
use loom::sync::Arc;
use loom::thread;

/// A FIFO with so few cells that it wraps around at once.
struct Queue {
    head: AtomicU64,
    tail: AtomicU64,
    cells: Vec<AtomicU64>,
}

impl Queue {
    /// Empty, after `before` tokens have gone through.
    fn new(capacity: usize, before: u64) -> Arc<Self> {
        Arc::new(Self {
            head: AtomicU64::new(before),
            tail: AtomicU64::new(before),
            cells: (0..capacity).map(|_| AtomicU64::new(u64::MAX)).collect(),
        })
    }

    fn view(&self) -> Fifo<'_> {
        Fifo { head: &self.head, tail: &self.tail, cells: &self.cells }
    }

    /// Pushes tokens 0, 1, 2 … until one is refused; returns how many were not.
    fn push_all(&self, before: u64, tokens: u64) -> u64 {
        let mut tail = before;
        for token in 0..tokens {
            match self.view().push(&mut tail, token) {
                Ok(ticket) => assert_eq!(ticket, before.wrapping_add(token)),
                Err(error) => {
                    assert_eq!(error, PushError::Full);
                    return token;
                }
            }
        }
        tokens
    }
}

/// Each consumer sees rising tokens, and all of them with what is left are exactly those that were pushed.
fn check(queue: &Queue, pushed: u64, taken: &[Vec<u64>]) {
    for one in taken {
        assert!(one.is_sorted(), "out of order: {one:?}");
    }
    let mut all = taken.concat();
    all.sort_unstable();
    all.extend(std::iter::from_fn(|| queue.view().pop()));
    assert_eq!(all, (0..pushed).collect::<Vec<_>>());
}

/// Each consumer looks as often as `tries` says.
fn run(bound: Bound, capacity: usize, before: u64, tokens: u64, tries: [usize; 2]) {
    explore(bound, move || {
        let queue = Queue::new(capacity, before);
        let consumers = tries.map(|tries| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..tries).filter_map(|_| queue.view().pop()).collect())
        });
        let pushed = queue.push_all(before, tokens);
        check(&queue, pushed, &consumers.map(|consumer| consumer.join().unwrap()));
    });
}

#[test]
fn every_token_comes_once_and_in_order() {
    run(Bound::Preemptions(3), 4, 0, 3, [2, 1]);
}

#[test]
fn two_consumers_never_take_the_same() {
    run(Bound::Everything, 2, 0, 2, [1, 1]);
}

/// Two cells: the third token overwrites the first one's cell while consumers may still be looking at it.
#[test]
fn a_cell_is_used_again_under_the_eyes_of_a_consumer() {
    run(Bound::Preemptions(3), 2, 0, 3, [1, 1]);
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    run(Bound::Everything, 1, 0, 2, [1, 1]);
}

#[test]
fn positions_wrap_around() {
    run(Bound::Everything, 2, u64::MAX, 2, [1, 1]);
}
