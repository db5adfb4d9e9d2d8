//! Workers start anew when files change (`worker … watch`), as developers want it.

use regent_config::Config;
use regent_watch::{Pattern, Watch, named};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A change that comes sooner after a restart may be the restart's own doing: an application that writes a cache when it
/// boots.
const SUSPICIOUS: Duration = Duration::from_secs(2);
/// So many suspicious restarts in a row are believed to cause each other.
const MOST_SUSPICIOUS: u32 = 5;
/// And then it is waited so long, that the machine is not busy with nothing else.
const PAUSE: Duration = Duration::from_secs(30);

/// Ends when it is dropped.
pub(crate) struct Watching {
    patterns: BTreeSet<String>,
    task: JoinHandle<()>,
    _watch: Watch,
}

impl Watching {
    /// The patterns of all workers.
    pub fn wanted(config: &Config) -> BTreeSet<String> {
        config.global.php.workers.iter().flat_map(|worker| &worker.watch).cloned().collect()
    }

    pub fn patterns(watching: Option<&Self>) -> BTreeSet<String> {
        watching.map(|watching| watching.patterns.clone()).unwrap_or_default()
    }

    /// Calls `restart` for each burst of changes. `None` if nothing is to be watched, or cannot be: the site is served all
    /// the same.
    pub fn start<R, F>(config: &Config, restart: R) -> Option<Self>
    where
        R: Fn() -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let patterns = Self::wanted(config);
        if patterns.is_empty() {
            return None;
        }
        let directory = std::env::current_dir().unwrap_or_default();
        // The configuration has refused those that are none.
        let parsed = patterns.iter().filter_map(|text| Pattern::new(text, &directory).ok()).collect();
        let (tell, told) = mpsc::unbounded_channel();
        let watch = Watch::start(parsed, move |files: &[&Path]| {
            // Who listens ends with the watch.
            let _ = tell.send(named(files));
        });
        let watch = watch
            .inspect_err(|error| tracing::error!(%error, "changed files do not restart the workers"))
            .ok()?;
        let task = tokio::spawn(follow(told, restart));
        Some(Self { patterns, task, _watch: watch })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow<F: Future<Output = ()>>(mut told: mpsc::UnboundedReceiver<String>, restart: impl Fn() -> F) {
    let mut suspicious = 0;
    let mut last: Option<Instant> = None;
    while let Some(mut files) = told.recv().await {
        let is_suspicious = last.is_some_and(|last| last.elapsed() < SUSPICIOUS);
        suspicious = if is_suspicious { suspicious + 1 } else { 0 };
        if suspicious >= MOST_SUSPICIOUS {
            tracing::warn!(
                "files change each time that the workers start, now {files}: the next start waits {} s; leave files that \
                 the application writes out of `watch`",
                PAUSE.as_secs()
            );
            tokio::time::sleep(PAUSE).await;
        }
        // One restart does for all that has changed until now.
        while let Ok(more) = told.try_recv() {
            files = more;
        }
        tracing::info!("files have changed: {files}: the workers start anew");
        restart().await;
        last = Some(Instant::now());
    }
}
