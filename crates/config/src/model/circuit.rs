//! When requests that kill their engine are refused.

use serde::Serialize;
use std::time::Duration;

/// The `circuit { … }` block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Circuit {
    /// Deaths of an engine by requests of one route, ...
    pub failures: u32,
    /// ... within so long, after which its requests get 503.
    pub within: Duration,
    /// How long at first, until one is let through; then twice as long each time.
    pub pause: Duration,
    /// At most.
    pub max_pause: Duration,
}

impl Circuit {
    /// Whether nothing was configured.
    pub(crate) fn is_usual(configured: &Option<Self>) -> bool {
        *configured == Some(Self::default())
    }
}

impl Default for Circuit {
    fn default() -> Self {
        Self {
            failures: 3,
            within: Duration::from_secs(60),
            pause: Duration::from_secs(10),
            max_pause: Duration::from_secs(300),
        }
    }
}
