//! Time-outs that can be switched off.

use std::time::Duration;

/// Stands for a time-out that the configuration switches off with 0: long, and far from any overflow of a clock.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A time-out of the configuration.
pub fn timeout(configured: Duration) -> Duration {
    if configured.is_zero() { NEVER } else { configured }
}
