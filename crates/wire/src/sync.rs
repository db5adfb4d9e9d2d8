//! Atomics and the futex, from the standard library and the kernel, or from loom when a model is checked.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A word that one side sleeps on.
#[cfg(not(loom))]
pub(crate) type FutexWord = AtomicU32;
#[cfg(loom)]
pub(crate) use crate::models::futex::FutexWord;

/// Sleeps while `word` is `expected`. May return early: callers check again.
///
/// The futex is not private: the two sides are different processes.
#[cfg(not(loom))]
pub(crate) fn futex_wait(word: &FutexWord, expected: u32) {
    // Every outcome (woken, value changed, interrupted) means the same to a caller that checks again.
    let _ = rustix::thread::futex::wait(word, rustix::thread::futex::Flags::empty(), expected, None);
}

/// The same, for so long at most.
#[cfg(not(loom))]
pub(crate) fn futex_wait_for(word: &FutexWord, expected: u32, patience: std::time::Duration) {
    let patience = rustix::thread::futex::Timespec::try_from(patience).ok();
    let _ =
        rustix::thread::futex::wait(word, rustix::thread::futex::Flags::empty(), expected, patience.as_ref());
}

#[cfg(loom)]
pub(crate) fn futex_wait_for(word: &FutexWord, expected: u32, _: std::time::Duration) {
    word.wait(expected);
}

/// Wakes one sleeper of `word`.
#[cfg(not(loom))]
pub(crate) fn futex_wake(word: &FutexWord) {
    let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::empty(), 1);
}

#[cfg(loom)]
pub(crate) fn futex_wait(word: &FutexWord, expected: u32) {
    word.wait(expected);
}

#[cfg(loom)]
pub(crate) fn futex_wake(word: &FutexWord) {
    word.wake();
}

/// One round of looking at something that another thread may change.
pub(crate) fn spin_loop() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
