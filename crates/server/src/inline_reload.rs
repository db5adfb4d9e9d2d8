//! Loading the modules that run in the server. (Dropped, they end on a thread of their own.)

use regent_config::NativeGlobal;
use regent_gateway::Inlined;
use regent_module_loader::LoadError;
use std::sync::Arc;

/// Modules may do anything while they are initialised: not on a thread that others wait for.
pub(crate) async fn load(native: NativeGlobal) -> Result<Arc<Inlined>, LoadError> {
    let loading = tokio::task::spawn_blocking(move || Inlined::load(&native).map(Arc::new));
    loading.await.expect("invariant: loading does not panic")
}
