//! Changes: more threads, fewer threads, workers or modules anew.

use crate::answer::{Answer, ok};
use crate::control::Control;
use crate::failure::Failure;
use crate::pool::{Engine, Pool};
use crate::query::{self, Selection};
use crate::task::{TaskOrder, TasksTold};
use serde_json::json;
use std::future::Future;
use std::sync::Arc;

pub(crate) async fn add(control: &Arc<dyn Control>, query: Option<&str>) -> Result<Answer, Failure> {
    let Selection { worker, count } = Selection::parse(query)?;
    let pool = choose(control.pools().await?, worker)?;
    let (control, name) = (Arc::clone(control), pool.name.clone());
    let change = to_the_end(async move { control.add(&name, count).await }).await??;
    tracing::info!(
        pool = pool.name,
        count,
        total = change.total,
        "threads added, as asked for by the admin API"
    );
    Ok(ok(
        &json!({ "pool": pool.name, "worker": pool.worker, "added": change.changed, "total": change.total }),
    ))
}

pub(crate) async fn remove(control: &Arc<dyn Control>, query: Option<&str>) -> Result<Answer, Failure> {
    let Selection { worker, count } = Selection::parse(query)?;
    let pool = choose(control.pools().await?, worker)?;
    let (control, name) = (Arc::clone(control), pool.name.clone());
    let change = to_the_end(async move { control.remove(&name, count).await }).await??;
    tracing::info!(
        pool = pool.name,
        count,
        total = change.total,
        "threads removed, as asked for by the admin API"
    );
    Ok(ok(
        &json!({ "pool": pool.name, "worker": pool.worker, "removed": change.changed, "total": change.total }),
    ))
}

pub(crate) async fn restart_workers(control: &Arc<dyn Control>) -> Result<Answer, Failure> {
    let control = Arc::clone(control);
    let restarted = to_the_end(async move { control.restart_workers().await }).await??;
    tracing::info!(threads = restarted.restarted, "workers restarted, as asked for by the admin API");
    Ok(ok(&restarted))
}

pub(crate) async fn restart_native(control: &Arc<dyn Control>) -> Result<Answer, Failure> {
    let control = Arc::clone(control);
    let restarted = to_the_end(async move { control.restart_native().await }).await??;
    tracing::info!(
        threads = restarted.restarted,
        "native modules loaded anew, as asked for by the admin API"
    );
    Ok(ok(&restarted))
}

pub(crate) async fn upgrade(control: &Arc<dyn Control>, query: Option<&str>) -> Result<Answer, Failure> {
    let patience = query::upgrade(query)?;
    let control = Arc::clone(control);
    Ok(ok(&to_the_end(async move { control.upgrade(patience).await }).await??))
}

pub(crate) async fn purge(control: &Arc<dyn Control>, query: Option<&str>) -> Result<Answer, Failure> {
    let purge = query::purge(query)?;
    tracing::info!(?purge, "the cache is purged, as asked for by the admin API");
    let control = Arc::clone(control);
    Ok(ok(&to_the_end(async move { control.purge(purge).await }).await??))
}

/// What is wanted of a background script. It is told at once, and does it at its own pace.
pub(crate) fn order(
    control: &Arc<dyn Control>,
    query: Option<&str>,
    order: TaskOrder,
) -> Result<Answer, Failure> {
    let task = query::task(query)?;
    let told = control.order(&task, order)?;
    tracing::info!(task, ?order, processes = told, "a task was told, as asked for by the admin API");
    Ok(ok(&TasksTold { task, told }))
}

/// Finishes a change even when the client that asked for it hangs up, which drops the future of its request.
pub(super) async fn to_the_end<T: Send + 'static>(
    change: impl Future<Output = T> + Send + 'static,
) -> Result<T, Failure> {
    tokio::spawn(change).await.map_err(|error| {
        tracing::error!(%error, "a change that the admin API was asked for broke off");
        Failure::Broken
    })
}

/// The worker's pool by its file or name, or a service's by its name; without one, that of classic requests.
pub(super) fn choose(pools: Vec<Pool>, worker: Option<String>) -> Result<Pool, Failure> {
    let known: Vec<String> = pools.iter().filter_map(special).collect();
    let chosen = match &worker {
        None => pools.into_iter().find(|pool| special(pool).is_none()),
        Some(name) => {
            let is_meant =
                |pool: &Pool| special(pool).is_some_and(|known| known == *name || pool.name == *name);
            pools.into_iter().find(is_meant)
        }
    };
    chosen.ok_or_else(|| match worker {
        None => Failure::NoClassicPool,
        Some(name) => Failure::UnknownWorker { name, known: listed(&known) },
    })
}

/// What selects the pool, if it is not that of classic requests: the worker's file, or the service's name.
fn special(pool: &Pool) -> Option<String> {
    match pool.engine {
        Engine::Php => pool.worker.clone(),
        Engine::Native => Some(pool.name.clone()),
    }
}

fn listed(files: &[String]) -> String {
    if files.is_empty() {
        return "none is configured: leave `worker` out to change the classic threads".to_owned();
    }
    let quoted: Vec<String> = files.iter().map(|file| format!("`{file}`")).collect();
    format!("there are {}", quoted.join(", "))
}
