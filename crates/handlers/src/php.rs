//! `php`: what reaches it goes to PHP.

use crate::delivery::DeliveryRules;
use crate::error::BuildError;
use crate::exchange::{Action, Exchange, PhpTarget};
use crate::file_stat;
use crate::known_scripts::KnownScripts;
use crate::path_pattern::PathPattern;
use crate::root::{self, Root, RootSource};
use crate::route::Flow;
use crate::script::Split;
use http::StatusCode;
use regent_config::{self as config, WorkerId};
use rustc_hash::FxHashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// A compiled `php` directive, and the part that `php_server` shares with it.
pub(crate) struct Php {
    root: RootSource,
    resolve_root_symlink: bool,
    split: Split,
    workers: Workers,
    delivery: DeliveryRules,
    known: KnownScripts,
}

/// The workers that a directive may use.
struct Workers {
    /// By the path of their script, as written and with links resolved.
    by_file: FxHashMap<Vec<u8>, WorkerId>,
    /// With a `match`, in the order of the configuration.
    matching: Vec<(Vec<PathPattern>, WorkerId)>,
    files: WorkerFiles,
}

/// The script of each worker, by its id.
#[derive(Clone)]
pub(crate) struct WorkerFiles(Arc<[Vec<u8>]>);

/// What became of a script's path.
pub(crate) enum Script {
    Worker(WorkerId),
    File,
    Missing,
}

impl WorkerFiles {
    pub(crate) fn new(workers: &[config::Worker]) -> Self {
        Self(workers.iter().map(|worker| worker.file.as_os_str().as_bytes().to_vec()).collect())
    }

    fn get(&self, id: WorkerId) -> Result<&[u8], BuildError> {
        self.0.get(usize::from(id.0)).map(Vec::as_slice).ok_or(BuildError::UnknownWorker(id.0))
    }
}

impl Php {
    pub(crate) fn compile(php: &config::Php, workers: &WorkerFiles) -> Result<Self, BuildError> {
        Ok(Self {
            root: RootSource::compile(php.root.as_ref())?,
            resolve_root_symlink: php.resolve_root_symlink,
            split: Split::new(&php.split_path),
            workers: Workers::compile(&php.workers, workers)?,
            delivery: DeliveryRules::compile(&php.delivery),
            known: KnownScripts::default(),
        })
    }

    /// Runs the worker or the script that the path names. A script that is not there is 404, as php-fpm answers; so is
    /// a path without a script's name: what is executed has to look like PHP.
    pub(crate) fn handle(&self, exchange: &Exchange) -> Flow {
        let Some(root) = self.root(exchange) else { return Flow::error(StatusCode::BAD_REQUEST) };
        let prefix = self.prefix(&root);
        if let Some(worker) = self.matching_worker(exchange) {
            return self.run_worker(exchange, worker, prefix);
        }
        let path = exchange.path();
        let Some(end) = self.split.position(path) else { return Flow::error(StatusCode::NOT_FOUND) };
        let file = root::join(prefix, &path[..end]);
        match self.find(&file) {
            Script::Missing => Flow::error(StatusCode::NOT_FOUND),
            Script::Worker(worker) => self.run(exchange, Some(worker), prefix, file, &path[end..]),
            Script::File => self.run(exchange, None, prefix, file, &path[end..]),
        }
    }

    pub(crate) fn split(&self) -> &Split {
        &self.split
    }

    pub(crate) fn root(&self, exchange: &Exchange) -> Option<Arc<Root>> {
        self.root.resolve(exchange)
    }

    /// What URL paths are appended to.
    pub(crate) fn prefix<'a>(&self, root: &'a Root) -> &'a [u8] {
        if self.resolve_root_symlink { root.resolved_prefix() } else { root.prefix() }
    }

    pub(crate) fn matching_worker(&self, exchange: &Exchange) -> Option<WorkerId> {
        let fits = |(patterns, _): &&(Vec<PathPattern>, WorkerId)| {
            patterns.iter().any(|pattern| pattern.matches(exchange))
        };
        self.workers.matching.iter().find(fits).map(|(_, worker)| *worker)
    }

    /// What there is at a path: a worker's script is known to be there, for the rest it takes one `stat` a second.
    pub(crate) fn find(&self, file: &[u8]) -> Script {
        match self.worker_of(file) {
            Some(worker) => Script::Worker(worker),
            None if self.is_file(file) => Script::File,
            None => Script::Missing,
        }
    }

    fn is_file(&self, file: &[u8]) -> bool {
        if self.split.is_script(file) {
            self.known.has(file, || file_stat::is_file(file))
        } else {
            file_stat::is_file(file)
        }
    }

    pub(crate) fn worker_of(&self, file: &[u8]) -> Option<WorkerId> {
        if self.workers.by_file.is_empty() { None } else { self.workers.by_file.get(file).copied() }
    }

    /// A request for a worker that was chosen by its `match`.
    pub(crate) fn run_worker(&self, exchange: &Exchange, worker: WorkerId, prefix: &[u8]) -> Flow {
        let Ok(file) = self.workers.files.get(worker) else { return Flow::error(StatusCode::NOT_FOUND) };
        let name = file.strip_prefix(prefix).filter(|rest| rest.starts_with(b"/")).unwrap_or_default();
        let target = PhpTarget::new(Some(worker), root::join(prefix, name), prefix.len(), &[]);
        self.complete(exchange, target.with_file(file))
    }

    /// A request for the script `file`, which is `prefix` and the script's URL path.
    pub(crate) fn run(
        &self,
        exchange: &Exchange,
        worker: Option<WorkerId>,
        prefix: &[u8],
        file: Vec<u8>,
        path_info: &[u8],
    ) -> Flow {
        let target = PhpTarget::new(worker, file, prefix.len(), path_info);
        let known = worker.and_then(|worker| self.workers.files.get(worker).ok());
        self.complete(
            exchange,
            match known {
                Some(known) => target.with_file(known),
                None => target,
            },
        )
    }

    fn complete(&self, exchange: &Exchange, mut target: PhpTarget) -> Flow {
        target.delivery = self.delivery.of(exchange);
        Flow::Answer(Action::Php(target))
    }
}

impl Workers {
    fn compile(refs: &[config::WorkerRef], files: &WorkerFiles) -> Result<Self, BuildError> {
        let (mut by_file, mut matching) = (FxHashMap::default(), Vec::new());
        for worker in refs {
            let file = files.get(worker.id)?;
            if !worker.matches.is_empty() {
                matching.push((PathPattern::compile_all(&worker.matches)?, worker.id));
                continue;
            }
            // The document root may have its links resolved or not.
            if let Ok(real) = std::fs::canonicalize(std::ffi::OsStr::from_bytes(file)) {
                by_file.entry(real.as_os_str().as_bytes().to_vec()).or_insert(worker.id);
            }
            by_file.entry(file.to_vec()).or_insert(worker.id);
        }
        Ok(Self { by_file, matching, files: files.clone() })
    }
}
