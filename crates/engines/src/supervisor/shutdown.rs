//! The end of all engines, when the server stops.

use super::generation::Generation;
use super::process_handle::{EngineEvent, EventKind};
use super::reports::log_event;
use crate::kind::EngineKind;
use std::time::Instant;
use tokio::sync::mpsc;

/// Ends the engines, and logs what they have to say until then.
pub(super) async fn drain_all(
    kind: EngineKind,
    generations: Vec<Generation>,
    deadline: Instant,
    mut inbox: mpsc::Receiver<EngineEvent>,
) {
    for generation in &generations {
        generation.region().drain();
    }
    let ended = async {
        for mut generation in generations {
            for process in &mut generation.processes {
                if tokio::time::timeout_at(deadline.into(), &mut process.watcher).await.is_err() {
                    tracing::warn!("an engine was killed: it had not ended by the deadline");
                }
            }
        }
    };
    let listening = async {
        while let Some(event) = inbox.recv().await {
            log_last(kind, event);
        }
    };
    tokio::select! {
        () = ended => {}
        () = listening => {}
    }
    while let Ok(event) = inbox.try_recv() {
        log_last(kind, event);
    }
}

fn log_last(kind: EngineKind, event: EngineEvent) {
    if let EventKind::Message(message) = event.kind {
        log_event(kind, &message);
    }
}
