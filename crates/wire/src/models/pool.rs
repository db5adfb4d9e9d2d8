//! Sleeping and waking. In every model a thread that has taken its share is busy for ever, so that a token which waits
//! while another thread sleeps ends in a deadlock, which loom reports.

use super::{Bound, explore};
use crate::layout::{PoolControl, ThreadControl};
use crate::pool::Pool;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread::{self, JoinHandle};

#[derive(Clone, Copy)]
struct Setup {
    threads: usize,
    wake_limit: u32,
    spin: u32,
    kept_asleep: u32,
}

const TWO: Setup = Setup { threads: 2, wake_limit: 1, spin: 0, kept_asleep: 0 };

/// A pool with what stands for the engine's header and for the producers' count.
struct Engine {
    control: PoolControl,
    cells: Vec<AtomicU64>,
    threads: Vec<ThreadControl>,
    tail: Mutex<u64>,
    draining: AtomicU32,
}

impl Engine {
    fn new(setup: Setup) -> Arc<Self> {
        let control = PoolControl::default();
        control.wake_limit.store(setup.wake_limit, Ordering::Relaxed);
        control.spin.store(setup.spin, Ordering::Relaxed);
        control.kept_asleep.store(setup.kept_asleep, Ordering::Relaxed);
        Arc::new(Self {
            control,
            cells: (0..4).map(|_| AtomicU64::new(u64::MAX)).collect(),
            threads: (0..setup.threads).map(|_| ThreadControl::default()).collect(),
            tail: Mutex::new(0),
            draining: AtomicU32::new(0),
        })
    }

    fn pool(&self) -> Pool<'_> {
        Pool { control: &self.control, cells: &self.cells, threads: &self.threads }
    }

    /// As `EngineMemory::push`.
    fn push(&self, token: u64) {
        self.pool().fifo().push(&mut self.tail.lock().unwrap(), token).unwrap();
        self.pool().wake_one();
    }

    /// As `Region::drain`.
    fn drain(&self) {
        self.draining.store(1, Ordering::SeqCst);
        for thread in 0..self.threads.len() {
            self.pool().wake(thread);
        }
    }

    /// As `Region::retire`.
    fn retire(&self, thread: usize) {
        self.threads[thread].retire.store(1, Ordering::SeqCst);
        self.pool().wake(thread);
    }

    /// As `EngineThread::claim`, of which every token is valid.
    fn take(&self, me: usize) -> Option<u64> {
        let is_retired = || self.threads[me].retire.load(Ordering::SeqCst) != 0;
        if is_retired() {
            return None;
        }
        self.pool().take(me, || self.draining.load(Ordering::SeqCst) != 0 || is_retired())
    }
}

/// A thread that takes so many tokens at most, or ends earlier when it is told to.
fn start(engine: &Arc<Engine>, me: usize, share: usize) -> JoinHandle<Vec<u64>> {
    let engine = Arc::clone(engine);
    thread::spawn(move || (0..share).map_while(|_| engine.take(me)).collect())
}

fn check(taken: impl Iterator<Item = Vec<u64>>, tokens: u64) {
    let mut taken = taken.collect::<Vec<_>>().concat();
    taken.sort_unstable();
    assert_eq!(taken, (0..tokens).collect::<Vec<_>>());
}

/// One producer pushes as many tokens as the threads' shares come to.
fn run(bound: Bound, setup: Setup, shares: &'static [usize]) {
    explore(bound, move || {
        let engine = Engine::new(setup);
        let threads: Vec<_> =
            shares.iter().enumerate().map(|(me, share)| start(&engine, me, *share)).collect();
        let tokens = shares.iter().sum::<usize>() as u64;
        (0..tokens).for_each(|token| engine.push(token));
        check(threads.into_iter().map(|thread| thread.join().unwrap()), tokens);
    });
}

#[test]
fn a_thread_sleeps_and_wakes_twice() {
    run(Bound::Preemptions(6), Setup { threads: 1, ..TWO }, &[2]);
}

#[test]
fn two_threads_share_two_tokens() {
    run(Bound::Preemptions(3), TWO, &[1, 1]);
}

#[test]
fn a_busy_thread_comes_back_for_more() {
    run(Bound::Preemptions(2), TWO, &[2, 1]);
}

#[test]
fn one_wake_in_flight_for_three_threads() {
    run(Bound::Preemptions(1), Setup { threads: 3, ..TWO }, &[1, 1, 1]);
}

#[test]
fn two_wakes_in_flight_for_three_threads() {
    run(Bound::Preemptions(1), Setup { threads: 3, wake_limit: 2, ..TWO }, &[1, 1, 1]);
}

#[test]
fn a_thread_that_spins_hides_no_token() {
    run(Bound::Preemptions(3), Setup { spin: 1, ..TWO }, &[1, 1]);
}

#[test]
fn threads_that_spin_come_back_for_more() {
    run(Bound::Preemptions(2), Setup { spin: 1, wake_limit: 2, ..TWO }, &[2, 1]);
}

/// Threads that come back for more after each token, of which so many are kept asleep, take all tokens.
fn run_with_some_asleep(bound: Bound, setup: Setup, tokens: u64, then_wake: Option<u32>) {
    explore(bound, move || {
        let engine = Engine::new(setup);
        let left = Arc::new((Mutex::new(tokens), Condvar::new()));
        let threads: Vec<_> = (0..setup.threads)
            .map(|me| {
                let (engine, left) = (Arc::clone(&engine), Arc::clone(&left));
                thread::spawn(move || {
                    while engine.take(me).is_some() {
                        *left.0.lock().unwrap() -= 1;
                        left.1.notify_one();
                    }
                })
            })
            .collect();
        (0..tokens).for_each(|token| engine.push(token));
        if let Some(kept) = then_wake {
            engine.pool().keep_asleep(kept);
        }
        let mut waiting = left.0.lock().unwrap();
        while *waiting > 0 {
            waiting = left.1.wait(waiting).unwrap();
        }
        drop(waiting);
        engine.drain();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn one_of_two_threads_is_kept_asleep() {
    run_with_some_asleep(Bound::Preemptions(3), Setup { kept_asleep: 1, ..TWO }, 2, None);
}

#[test]
fn two_of_three_threads_are_kept_asleep() {
    let setup = Setup { threads: 3, kept_asleep: 2, ..TWO };
    run_with_some_asleep(Bound::Preemptions(1), setup, 2, None);
}

/// The server has kept more asleep than there are, and sees it.
#[test]
fn threads_that_are_kept_asleep_no_more_take_what_waits() {
    run_with_some_asleep(Bound::Preemptions(3), Setup { kept_asleep: 2, ..TWO }, 1, Some(1));
}

#[test]
fn two_producers_wake_two_threads() {
    explore(Bound::Preemptions(2), || {
        let engine = Engine::new(TWO);
        let threads = [0, 1].map(|me| start(&engine, me, 1));
        let producers = [0, 1].map(|token| {
            let engine = Arc::clone(&engine);
            thread::spawn(move || engine.push(token))
        });
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        check(threads.into_iter().map(|thread| thread.join().unwrap()), 2);
    });
}

/// What was pushed before is taken, and then every thread ends.
#[test]
fn a_drained_pool_empties_and_ends() {
    explore(Bound::Preemptions(3), || {
        let engine = Engine::new(TWO);
        let threads = [0, 1].map(|me| start(&engine, me, usize::MAX));
        engine.push(0);
        engine.drain();
        check(threads.into_iter().map(|thread| thread.join().unwrap()), 1);
    });
}

/// The token goes to one of two threads, of which one is told to end.
#[test]
fn a_retired_thread_leaves_no_token_behind() {
    explore(Bound::Preemptions(3), || {
        let engine = Engine::new(TWO);
        let retired = start(&engine, 0, usize::MAX);
        let other = start(&engine, 1, 1);
        engine.push(0);
        engine.retire(0);
        let taken = retired.join().unwrap();
        if !taken.is_empty() {
            engine.drain();
        }
        check([taken, other.join().unwrap()].into_iter(), 1);
    });
}

/// A process died while one of its threads was idle and another had the only wake in flight. So many tokens come before
/// and after the burial.
fn run_beside_the_dead(before: u64, after: u64) {
    explore(Bound::Preemptions(4), move || {
        let engine = Engine::new(TWO);
        engine.control.idle[0].store(0b10, Ordering::Relaxed);
        engine.control.waking.store(1, Ordering::Relaxed);
        let alive = start(&engine, 0, (before + after) as usize);
        (0..before).for_each(|token| engine.push(token));
        engine.pool().bury(1);
        (before..before + after).for_each(|token| engine.push(token));
        check([alive.join().unwrap()].into_iter(), before + after);
    });
}

#[test]
fn the_dead_do_not_keep_a_wake() {
    run_beside_the_dead(1, 0);
}

#[test]
fn the_dead_are_woken_no_more() {
    run_beside_the_dead(1, 1);
}
