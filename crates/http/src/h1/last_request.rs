//! What a connection that is to end waits for.

use crate::h1::activity::Activity;
use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// A request that may be about to come: the connection, closed, would be reset when it does.
#[derive(Default)]
pub(crate) struct LastRequest(Option<Pin<Box<Sleep>>>);

impl LastRequest {
    /// `patience`: [`last_request`](crate::Settings::last_request).
    pub fn is_awaited(&mut self, activity: &Activity, patience: Duration, context: &mut Context<'_>) -> bool {
        let Some(left) = activity.awaits_request(patience) else { return false };
        self.0.get_or_insert_with(|| Box::pin(sleep(left))).as_mut().poll(context).is_pending()
    }
}
