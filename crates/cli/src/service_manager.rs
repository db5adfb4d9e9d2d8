//! How systemd, or whoever else started the server, learns how it is: the protocol of sd_notify(3). Without the variable
//! `NOTIFY_SOCKET` nothing is said.

use regent_server::Pulse;
use sd_notify::NotifyState;
use std::future::Future;

/// Where it is told; of sd_notify(3).
const SOCKET: &str = "NOTIFY_SOCKET";

/// It serves.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// It drains and ends.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Another process is the service from now on. Only whoever is the service may say so.
pub fn follow(process: u32) {
    notify(&[NotifyState::MainPid(process)]);
}

/// Why the service cannot go on in another process; `None`: it can.
pub fn obstacle() -> Option<&'static str> {
    let own = std::process::id().to_string();
    let is_main = std::env::var("SYSTEMD_EXEC_PID").is_ok_and(|process| process == own);
    (is_main && std::env::var_os(SOCKET).is_none()).then_some(
        "systemd would end the service with this process: write `Type=notify-reload` or `Type=notify` in its unit, and start it \
         anew",
    )
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
    if has_gone() {
        return;
    }
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be told how the server is (NOTIFY_SOCKET)");
    }
}

/// Whether whoever wanted to be told has ended, as `regent start` has.
fn has_gone() -> bool {
    std::env::var_os(SOCKET).is_some_and(|socket| {
        let path = std::path::Path::new(&socket);
        path.is_absolute() && !path.exists()
    })
}
