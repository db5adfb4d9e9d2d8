//! What a reload has brought.

use regent_admin::Before;
use std::time::Duration;

/// `ended`: ends with the last request that began before. `wait`: how long whoever asked wants to wait for that.
pub async fn before(ended: impl Future<Output = ()>, wait: Option<Duration>) -> Option<Before> {
    match tokio::time::timeout(wait?, ended).await {
        Ok(()) => Some(Before::Ended),
        Err(_) => Some(Before::Running),
    }
}
