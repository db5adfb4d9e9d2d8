//! How systemd, or whoever else started the server, learns how it is: the protocol of sd_notify(3). Without the variable
//! `NOTIFY_SOCKET` nothing is said.

use regent_server::Pulse;
use sd_notify::NotifyState;
use std::future::Future;

/// It serves.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// It drains and ends.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Says that it reloads for as long as this takes, as `Type=notify-reload` wants it.
pub async fn reloading<T>(reload: impl Future<Output = T>) -> T {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the service manager was not told of the reload"),
    }
    let result = reload.await;
    ready();
    result
}

/// Tells the watchdog (`WatchdogSec=`) twice in each period that the server works: as long as all of its I/O threads
/// answer. Ends at once if there is no watchdog.
pub async fn keep_watchdog(pulse: Pulse) {
    let Some(period) = sd_notify::watchdog_enabled() else { return };
    let mut beats = tokio::time::interval(period / 2);
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        pulse.beat().await;
        notify(&[NotifyState::Watchdog]);
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be told how the server is (NOTIFY_SOCKET)");
    }
}
