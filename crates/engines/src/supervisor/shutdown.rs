//! The end of all engines, when the server stops.

use super::generation::Generation;
use super::process_handle::{EngineEvent, EventKind};
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
    generations.retain(is_running);
    while !generations.is_empty() {
        let Ok(event) = tokio::time::timeout_at(deadline.into(), inbox.recv()).await else {
            let engines = generations.len();
            tracing::warn!(engines, "engines were killed: they had not ended by the deadline");
            return;
        };
        let Some(EngineEvent { id, process, kind: event }) = event else { return };
        let generation = generations.iter_mut().find(|generation| generation.id == id);
        match event {
            EventKind::Message(message) => {
                log_event(kind, &message);
                generation.into_iter().for_each(|generation| note(generation, &message));
            }
            EventKind::Ended(_) | EventKind::NotStarted(_) | EventKind::Unneeded => {
                if let Some(generation) = generation {
                    // This is the last that its watcher does; one that panicked has said so itself.
                    let _ = (&mut generation.processes[usize::from(process)].watcher).await;
                }
                generations.retain(is_running);
            }
            EventKind::Undrained => generation.into_iter().for_each(Generation::cut_off),
            EventKind::Spawned(_) | EventKind::Offended | EventKind::Late => {}
        }
    }
}

fn is_running(generation: &Generation) -> bool {
    generation.processes.iter().any(|process| !process.watcher.is_finished())
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
