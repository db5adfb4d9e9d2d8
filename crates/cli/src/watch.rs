//! `run --watch`: the configuration is loaded whenever what it says changes.

use crate::configuration::Origin;
use crate::service_manager;
use regent_config::Config;
use regent_server::{Force, Reloader};
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Between two looks, as Caddy's.
const LOOK: Duration = Duration::from_secs(1);

/// Reads the Caddyfile, with what it imports, again and again: which files belong to it is known only then, and no file
/// system has to tell of changes, which those of containers and networks do not.
///
/// `loaded` is what the server was started with.
pub async fn follow(origin: Origin, loaded: Config, reloader: Reloader) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Ok(loaded);
    loop {
        looks.tick().await;
        let seen = read(&origin).await;
        if seen == last {
            continue;
        }
        // One that is wrong too: the server refuses it, and its metrics tell of that.
        load(&reloader).await;
        last = seen;
    }
}

async fn load(reloader: &Reloader) {
    tracing::info!("the configuration has changed");
    if let Err(error) = service_manager::reloading(reloader.reload(Force::No)).await {
        tracing::error!("the configuration was not loaded, and the one before goes on: {error}");
    }
}

async fn read(origin: &Origin) -> Result<Config, String> {
    let origin = origin.clone();
    let read = tokio::task::spawn_blocking(move || origin.read_quietly());
    read.await.unwrap_or_else(|error| Err(error.to_string()))
}
