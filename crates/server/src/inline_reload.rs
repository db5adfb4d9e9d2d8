//! Loading the modules that run in the server, and giving them back.

use regent_config::NativeGlobal;
use regent_gateway::Inlined;
use regent_module_loader::LoadError;
use std::sync::Arc;

/// Modules may do anything while they are initialised: not on a thread that others wait for.
pub(crate) async fn load(native: NativeGlobal) -> Result<Arc<Inlined>, LoadError> {
    let loading = tokio::task::spawn_blocking(move || Inlined::load(&native).map(Arc::new));
    loading.await.expect("invariant: loading does not panic")
}

/// The same goes for their cleanup.
pub(crate) fn drop_elsewhere(inlined: Arc<Inlined>) {
    tokio::task::spawn_blocking(move || drop(inlined));
}
