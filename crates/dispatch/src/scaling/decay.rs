//! Means that forget.

use std::time::Duration;

/// The weight that is left, after `elapsed`, to what went into a mean over about `window`.
pub fn kept(elapsed: Duration, window: Duration) -> f64 {
    (-elapsed.as_secs_f64() / window.as_secs_f64()).exp()
}
