//! The end of all engines, when the server stops.

use super::generation::{EngineEvent, EventKind, Generation};
use super::reports::log_event;
use crate::kind::EngineKind;
use regent_wire::control::{Event, OverdueEnd};
use std::time::Instant;
use tokio::sync::mpsc;

/// Ends the engines, and logs what they have to say until then. Those that have not ended by the deadline are killed.
pub(super) async fn drain_all(
    kind: EngineKind,
    mut generations: Vec<Generation>,
    deadline: Instant,
    mut inbox: mpsc::Receiver<EngineEvent>,
) {
    for generation in &mut generations {
        generation.region().drain();
        generation.end_if_spent();
    }
    while !generations.is_empty() {
        let Ok(event) = tokio::time::timeout_at(deadline.into(), inbox.recv()).await else {
            let engines = generations.len();
            tracing::warn!(engines, "engines were killed: they had not ended by the deadline");
            return;
        };
        let Some(EngineEvent { id, kind: event }) = event else { return };
        match event {
            EventKind::Message(message) => {
                log_event(kind, &message);
                let generation = generations.iter_mut().find(|generation| generation.id == id);
                generation.into_iter().for_each(|generation| note(generation, &message));
            }
            EventKind::Ended(_) | EventKind::NotStarted(_) => {
                generations.retain(|generation| generation.id != id);
            }
            EventKind::Spawned(_) | EventKind::Offended | EventKind::Late => {}
        }
    }
}

/// Threads that do not come back are not waited for when all others have ended.
fn note(generation: &mut Generation, message: &Event) {
    match message {
        Event::ThreadEnded { index, .. } => {
            generation.threads.ended(*index, generation.backend.region());
        }
        Event::Overdue(request) if request.end == OverdueEnd::WrittenOff => {
            generation.threads.write_off(request.index);
        }
        _ => return,
    }
    generation.end_if_spent();
}
