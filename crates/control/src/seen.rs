//! An engine as it is seen by whoever asks.

use regent_engines::{EngineControl, EngineKind, View};

/// An engine, and how it stands.
pub(crate) type Seen<'a> = (&'a EngineControl, View);

/// As the admin API names it.
pub(crate) fn engine(kind: EngineKind) -> regent_admin::Engine {
    match kind {
        EngineKind::Php => regent_admin::Engine::Php,
        EngineKind::Native => regent_admin::Engine::Native,
    }
}
