//! What happens when files change, as developers want it: workers start anew (`worker … watch`), and pages in browsers are told
//! (`hot_reload`).

use regent_config::{Config, HotReload};
use regent_watch::{Pattern, Watch, named};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// What changes so soon after the workers have booted may be their own doing: an application that writes a cache when it boots.
const SOON: Duration = Duration::from_secs(1);
/// The same file, changed by so many boots in a row, is believed to be.
const MOST_OF_A_FILE: u32 = 5;
/// So are so many changes in a row of whatever files: somebody who saves one file after the other is slower, in the end.
const MOST_AT_ALL: u32 = 50;
/// And then it is waited so long, that the machine is not busy with nothing else.
const PAUSE: Duration = Duration::from_secs(30);
/// Endings of files that no script has in memory. All else that pages are made of may be code or a template.
const NO_CODE: [&str; 16] = [
    "avif", "css", "gif", "ico", "jpeg", "jpg", "js", "map", "mjs", "png", "scss", "svg", "ts", "webp",
    "woff", "woff2",
];

/// Ends when it is dropped.
pub struct Watching {
    wanted: Wanted,
    task: JoinHandle<()>,
    _watch: Watch,
}

/// What a configuration wants to be watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The patterns of all workers.
    workers: BTreeSet<String>,
    pages: Vec<HotReload>,
}

/// What is to be done about changes.
pub trait React: Send + Sync + 'static {
    /// Ready when the new workers serve.
    fn restart(&self) -> impl Future<Output = ()> + Send;

    /// `changes`: for the pages that subscribe.
    fn tell(&self, pages: &HotReload, changes: String);
}

/// The same, ready to be compared with files.
struct Rules {
    workers: Vec<Pattern>,
    pages: Vec<(HotReload, Vec<Pattern>)>,
    /// Paths below it are told without it.
    directory: PathBuf,
}

impl Wanted {
    pub fn of(config: &Config) -> Self {
        Self {
            workers: config.global.php.workers.iter().flat_map(|worker| &worker.watch).cloned().collect(),
            pages: config.global.hot_reloads.clone(),
        }
    }

    pub fn by(watching: Option<&Watching>) -> Self {
        watching.map(|watching| watching.wanted.clone()).unwrap_or_default()
    }
}

/// Files are watched, and nobody reacts to changes yet.
pub struct Begun {
    wanted: Wanted,
    rules: Rules,
    told: mpsc::UnboundedReceiver<Vec<PathBuf>>,
    watch: Watch,
}

impl Begun {
    /// Ready when it is known what is there now. `None` if nothing is to be watched, or cannot be: the site is served all the
    /// same.
    pub async fn new(config: &Config) -> Option<Self> {
        let wanted = Wanted::of(config);
        if wanted == Wanted::default() {
            return None;
        }
        let rules = Rules::new(&wanted, std::env::current_dir().unwrap_or_default());
        let (tell, told) = mpsc::unbounded_channel();
        let patterns = rules.patterns();
        // It looks at all files.
        let starting = tokio::task::spawn_blocking(move || {
            Watch::start(patterns, move |files: &[&Path]| {
                // Who listens ends with the watch.
                let _ = tell.send(files.iter().map(|file| file.to_path_buf()).collect());
            })
        });
        let watch = starting.await.expect("invariant: looking at files does not panic");
        let watch = watch
            .inspect_err(|error| tracing::error!(%error, "changed files are not noticed: neither workers nor pages follow them"))
            .ok()?;
        Some(Self { wanted, rules, told, watch })
    }

    /// Reacts to each burst of changes from now on, and to what has changed in between.
    pub fn follow(self, react: impl React) -> Watching {
        let Self { wanted, rules, told, watch } = self;
        Watching { wanted, task: tokio::spawn(follow(told, rules, react)), _watch: watch }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Rules {
    fn new(wanted: &Wanted, directory: PathBuf) -> Self {
        // The configuration has refused those that are none.
        let pattern = |text: &String| Pattern::new(text, &directory).ok();
        let workers = wanted.workers.iter().filter_map(pattern).collect();
        let of_page = |page: &HotReload| (page.clone(), page.watch.iter().filter_map(pattern).collect());
        let pages = wanted.pages.iter().map(of_page).collect();
        Self { workers, pages, directory }
    }

    fn patterns(&self) -> Vec<Pattern> {
        self.workers.iter().chain(self.pages.iter().flat_map(|(_, patterns)| patterns)).cloned().collect()
    }

    /// Those that make the workers start anew: a page that loads at once is to have what was saved.
    fn code<'a>(&self, files: &'a [PathBuf]) -> Vec<&'a Path> {
        let is_code = |file: &Path| {
            let ending = file.extension().unwrap_or_default();
            matches(&self.workers, file)
                || !NO_CODE.iter().any(|known| ending.eq_ignore_ascii_case(known))
                    && self.pages.iter().any(|(_, patterns)| matches(patterns, file))
        };
        files.iter().map(PathBuf::as_path).filter(|file| is_code(file)).collect()
    }

    fn tell(&self, files: &[PathBuf], react: &impl React) {
        for (page, patterns) in &self.pages {
            let mut changed: Vec<_> = files.iter().filter(|file| matches(patterns, file)).collect();
            changed.dedup();
            let name = |file: &PathBuf| {
                file.strip_prefix(&self.directory).unwrap_or(file).to_string_lossy().into_owned()
            };
            // As the library `frankenphp-hot-reload` reads them.
            let changes: Vec<_> =
                changed.into_iter().map(|file| json!({ "path_name": name(file) })).collect();
            if !changes.is_empty() {
                react.tell(page, json!(changes).to_string());
            }
        }
    }
}

fn matches(patterns: &[Pattern], file: &Path) -> bool {
    patterns.iter().any(|pattern| pattern.matches(file))
}

/// Whether restarts cause each other.
#[derive(Default)]
struct Loop {
    /// When the workers have booted last.
    booted: Option<Instant>,
    /// Boots in a row that something has changed soon after.
    boots: u32,
    /// Of them, those that each of these files has changed soon after, up to the last.
    files: BTreeMap<PathBuf, u32>,
}

impl Loop {
    /// To be told of each change of code, before the restart.
    fn is_closed_by(&mut self, files: &[&Path], now: Instant) -> bool {
        let is_soon = self.booted.is_some_and(|booted| now < booted + SOON);
        self.boots = if is_soon { self.boots + 1 } else { 0 };
        let before = std::mem::take(&mut self.files);
        let count = |file: &Path| if is_soon { before.get(file).map_or(1, |count| count + 1) } else { 0 };
        self.files = files.iter().map(|file| (file.to_path_buf(), count(file))).collect();
        let of_a_file = self.files.values().copied().max().unwrap_or_default();
        of_a_file >= MOST_OF_A_FILE || self.boots >= MOST_AT_ALL
    }
}

async fn follow(mut told: mpsc::UnboundedReceiver<Vec<PathBuf>>, rules: Rules, react: impl React) {
    let mut circle = Loop::default();
    while let Some(mut files) = told.recv().await {
        if !rules.code(&files).is_empty() {
            if circle.is_closed_by(&rules.code(&files), Instant::now()) {
                tracing::warn!(
                    "files change each time that the workers start, now {}: the next start waits {} s; leave files that \
                     the application writes out of `watch`",
                    named(&rules.code(&files)),
                    PAUSE.as_secs()
                );
                tokio::time::sleep(PAUSE).await;
            }
            // One restart does for all that has changed until now.
            while let Ok(more) = told.try_recv() {
                files.extend(more);
            }
            tracing::info!("files have changed: {}: the workers start anew", named(&rules.code(&files)));
            react.restart().await;
            circle.booted = Some(Instant::now());
        }
        rules.tell(&files, &react);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::HubId;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Noted(Mutex<Vec<String>>);

    impl React for &'static Noted {
        async fn restart(&self) {
            self.0.lock().unwrap().push("restart".to_owned());
        }

        fn tell(&self, pages: &HotReload, changes: String) {
            self.0.lock().unwrap().push(format!("{} {changes}", pages.topic));
        }
    }

    async fn followed(wanted: Wanted, files: &[&str]) -> Vec<String> {
        let noted: &'static Noted = Box::leak(Box::default());
        let (tell, told) = mpsc::unbounded_channel();
        for file in files {
            tell.send(vec![PathBuf::from(file)]).unwrap();
        }
        drop(tell);
        follow(told, Rules::new(&wanted, "/app".into()), noted).await;
        noted.0.lock().unwrap().clone()
    }

    /// Whether restarts are taken for a loop when these files change, each so long after the boot before.
    fn is_loop(files: &[&str], after: Duration) -> bool {
        let (mut circle, mut now) = (Loop::default(), Instant::now());
        files.iter().any(|file| {
            let is_closed = circle.is_closed_by(&[Path::new(file)], now);
            circle.booted = Some(now);
            now += after;
            is_closed
        })
    }

    #[test]
    fn quick_saves_of_several_files_were_taken_for_a_loop() {
        let saves = ["a.php", "b.php", "c.php", "d.php", "e.php", "f.php"];
        let quick = Duration::from_millis(100);
        assert!(!is_loop(&[saves, saves].concat(), quick), "of one file after the other");
        assert!(!is_loop(&["a.php"; 9], SOON), "of one file now and then");
    }

    #[test]
    fn files_that_change_with_each_boot_are_waited_for() {
        let quick = Duration::from_millis(100);
        assert!(is_loop(&["cache.php"; 6], quick));
        let names: Vec<_> = (0..60).map(|number| format!("{number}.php")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert!(is_loop(&names, quick), "under another name each time");
    }

    fn page(topic: &str, pattern: &str) -> HotReload {
        HotReload { hub: HubId(0), topic: topic.into(), watch: vec![pattern.into()] }
    }

    #[tokio::test]
    async fn pages_are_told_when_the_workers_have_started_anew() {
        let wanted = Wanted { workers: BTreeSet::new(), pages: vec![page("all", "**"), page("css", "css")] };
        assert_eq!(
            followed(wanted, &["/app/src/a.twig"]).await,
            ["restart", "all [{\"path_name\":\"src/a.twig\"}]"]
        );
    }

    #[tokio::test]
    async fn a_picture_restarts_nothing_unless_a_worker_watches_it() {
        let pages = || vec![page("all", "**"), page("css", "css")];
        let told = ["all [{\"path_name\":\"css/a.CSS\"}]", "css [{\"path_name\":\"css/a.CSS\"}]"];
        let found = followed(Wanted { workers: BTreeSet::new(), pages: pages() }, &["/app/css/a.CSS"]).await;
        assert_eq!(found, told);
        let workers = BTreeSet::from(["css".to_owned()]);
        let found = followed(Wanted { workers, pages: pages() }, &["/app/css/a.CSS"]).await;
        assert_eq!(found, [&["restart"], &told[..]].concat());
    }

    #[tokio::test]
    async fn workers_alone_tell_nobody() {
        let wanted = Wanted { workers: BTreeSet::from(["**/*.php".to_owned()]), pages: Vec::new() };
        assert_eq!(followed(wanted, &["/app/a.php", "/app/a.txt"]).await, ["restart"]);
    }
}
