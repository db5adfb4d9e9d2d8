//! Scripts that run beside the pools.

use crate::reload::Force;
use crate::state::{Server, State};
use regent_engines::Unchanged;

impl Server {
    /// Those of the configuration of the start.
    pub(crate) async fn start_tasks(&self) {
        if let Ok(mut state) = self.lock().await {
            self.change_tasks(&mut state, Force::No);
        }
    }

    /// Those of the configuration that is current now.
    pub(crate) fn change_tasks(&self, state: &mut State, force: Force) {
        let unchanged = if force == Force::Yes { Unchanged::StartAnew } else { Unchanged::Stay };
        state.tasks.change_to(&state.config, &self.options.php.file, unchanged);
    }
}
