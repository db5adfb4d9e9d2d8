//! What the log says of engines and their events.

use crate::engine_log;
use crate::kind::EngineKind;
use regent_wire::control::{Event, Opcache, Started};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

pub(super) fn report_start(kind: EngineKind, started: &Started) {
    let version = started.version.as_str();
    match kind {
        EngineKind::Php => tracing::info!(version, "PHP is running"),
        EngineKind::Native => tracing::info!("running {version}"),
    }
    if started.opcache == Some(Opcache::Disabled) {
        tracing::warn!("opcache is off: every request compiles its scripts; set opcache.enable=1 in php.ini");
    }
}

pub(super) fn log_event(kind: EngineKind, event: &Event) {
    match event {
        Event::Started(started) => report_start(kind, started),
        Event::Ready => tracing::debug!(engine = %kind, "all threads are ready"),
        Event::Log { level, message, context } => engine_log::log_line(kind, *level, message, context),
        // These are acted upon.
        Event::RestartWanted { .. }
        | Event::ThreadEnded { .. }
        | Event::Confined(_)
        | Event::Died { .. }
        | Event::Overdue(_)
        | Event::Straggles { .. }
        | Event::Update(_)
        | Event::Purge(_)
        | Event::Slow(_)
        | Event::Traced { .. }
        | Event::Profiled(_)
        | Event::ProfileRefused { .. }
        | Event::WorkerEnded { .. } => {}
        Event::WorkerFailed { worker, failures } => {
            tracing::error!(
                worker,
                failures,
                "the worker script failed too often; its thread is not started again"
            );
        }
        Event::Failed { message } => tracing::error!(reason = message, "{kind} could not be started"),
    }
}

pub(super) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}
