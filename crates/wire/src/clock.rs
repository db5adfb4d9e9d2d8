//! The clock that both sides read: CLOCK_MONOTONIC, which is the same for all processes of a machine.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Time since some moment in the past that is the same for all processes.
pub fn now() -> Duration {
    read(ClockId::CLOCK_MONOTONIC)
}

/// CPU time that the calling thread has used. A system call, unlike [`now`].
pub(crate) fn cpu_time_of_this_thread() -> Duration {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// As it lies in shared memory. 584 years are enough.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).expect("invariant: every Linux has these clocks").into()
}
