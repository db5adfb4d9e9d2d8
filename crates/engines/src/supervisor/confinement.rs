//! What an engine says that it has given up.

use super::State;
use regent_wire::confine::{Confined, Confinement};

impl State {
    /// For the log, and for who asks later. An engine says it once; whatever comes after is a script's.
    pub fn confined(&mut self, id: u64, confined: Confined) {
        let (engine, asked) = (self.setup.plan.kind, &self.setup.plan.start.confinement);
        let Some(generation) = self.generations.get_mut(id).filter(|found| found.confined.is_none()) else {
            return;
        };
        let enforced = confined.enforced.join(", ");
        match asked {
            Confinement::Asked(_) => tracing::info!(%engine, enforced, "the engine is confined"),
            // Nothing, where set-user-ID programs would have to be given up for it.
            Confinement::Unasked | Confinement::Off => {
                tracing::debug!(%engine, enforced, "the engine is confined")
            }
        }
        if !confined.missing.is_empty() && matches!(asked, Confinement::Asked(_)) {
            let missing = confined.missing.join(", ");
            tracing::warn!(%engine, missing, "the kernel does not keep the engine from all that it was to be kept from");
        }
        generation.confined = Some(confined);
    }
}
