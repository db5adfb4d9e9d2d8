//! `php`: what reaches it goes to PHP.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::target::{Action, PhpTarget, Target};
use crate::directives::delivery::DeliveryRules;
use crate::error::BuildError;
use crate::files::file_stat;
use crate::files::known_scripts::KnownScripts;
use crate::matchers::path_pattern::PathPattern;
use crate::paths::root::{self, CodeGeneration, Links, Root};
use crate::paths::script::Split;
use crate::templates::root_source::RootSource;
use http::StatusCode;
use regent_config::{self as config, Delivery, Template, WorkerId, WorkerScope};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, PoisonError, RwLock};

/// A compiled `php` directive, and the part that `php_server` shares with it.
pub(crate) struct Php {
    root: RootSource,
    links: Links,
    split: Split,
    workers: Workers,
    delivery: DeliveryRules,
    /// Of the workers that have variables of their own.
    of_workers: FxHashMap<WorkerId, DeliveryRules>,
    known: KnownScripts,
}

/// The workers that a directive may use.
struct Workers {
    /// Without a `match`, by the path of their script as it is written.
    named: Vec<(Vec<u8>, WorkerId)>,
    /// The same as written and with links resolved, for a generation of code.
    by_file: RwLock<(CodeGeneration, FxHashMap<Vec<u8>, WorkerId>)>,
    /// With a `match`, in the order of the configuration.
    matching: Vec<(Vec<PathPattern>, WorkerId)>,
    scripts: WorkerScripts,
}

/// All workers, by their ids.
#[derive(Clone)]
pub(crate) struct WorkerScripts(Arc<[WorkerScript]>);

struct WorkerScript {
    file: Vec<u8>,
    env: Vec<(String, Template)>,
}

/// What became of a script's path.
pub(crate) enum Script {
    Worker(WorkerId),
    File,
    Missing,
}

impl WorkerScripts {
    pub(crate) fn new(workers: &[config::Worker]) -> Self {
        Self(workers.iter().map(WorkerScript::new).collect())
    }

    fn get(&self, id: WorkerId) -> Result<&WorkerScript, BuildError> {
        self.0.get(usize::from(id.0)).ok_or(BuildError::UnknownWorker(id.0))
    }

    fn file(&self, id: WorkerId) -> Option<&[u8]> {
        self.get(id).ok().map(|script| script.file.as_slice())
    }
}

impl WorkerScript {
    fn new(worker: &config::Worker) -> Self {
        let variable = |(name, value): &(String, String)| (name.clone(), Template::text(value));
        Self {
            file: worker.file.as_os_str().as_bytes().to_vec(),
            env: worker.env.iter().map(variable).collect(),
        }
    }
}

impl Php {
    pub(crate) fn compile(php: &config::Php, workers: &WorkerScripts) -> Result<Self, BuildError> {
        Ok(Self {
            root: RootSource::compile(php.root.as_ref())?,
            links: Links::of_option(php.resolve_root_symlink),
            split: Split::new(&php.split_path),
            workers: Workers::compile(&php.workers, workers)?,
            delivery: DeliveryRules::compile(&php.delivery),
            of_workers: of_workers(php, workers)?,
            known: KnownScripts::default(),
        })
    }

    /// Runs the worker or the script that the path names. A script that is not there is 404, as php-fpm answers; so is
    /// a path without a script's name: what is executed has to look like PHP.
    pub(crate) fn handle(&self, exchange: &Exchange) -> Flow {
        let Some(root) = self.root(exchange) else { return Flow::error(StatusCode::BAD_REQUEST) };
        let prefix = &*self.prefix(exchange, &root);
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
    pub(crate) fn prefix(&self, exchange: &Exchange, root: &Root) -> Arc<[u8]> {
        self.workers.follow_links(exchange.code);
        self.links.prefix(root, exchange.code)
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
        if self.workers.named.is_empty() { None } else { self.workers.of(file) }
    }

    /// A request for a worker that was chosen by its `match`.
    pub(crate) fn run_worker(&self, exchange: &Exchange, worker: WorkerId, prefix: &[u8]) -> Flow {
        let Some(file) = self.workers.scripts.file(worker) else { return Flow::error(StatusCode::NOT_FOUND) };
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
        let known = worker.and_then(|worker| self.workers.scripts.file(worker));
        self.complete(
            exchange,
            match known {
                Some(known) => target.with_file(known),
                None => target,
            },
        )
    }

    fn complete(&self, exchange: &Exchange, mut target: PhpTarget) -> Flow {
        let of_worker = target.worker.and_then(|worker| self.of_workers.get(&worker));
        target.delivery = of_worker.unwrap_or(&self.delivery).of(exchange);
        Flow::Answer(Action::Forward(Target::Php(target)))
    }
}

impl Workers {
    fn compile(refs: &[config::WorkerRef], scripts: &WorkerScripts) -> Result<Self, BuildError> {
        let (mut named, mut matching) = (Vec::new(), Vec::new());
        for worker in refs {
            let file = &scripts.get(worker.id)?.file;
            match worker.matches.is_empty() {
                true => named.push((file.clone(), worker.id)),
                false => matching.push((PathPattern::compile_all(&worker.matches)?, worker.id)),
            }
        }
        let by_file = RwLock::new((CodeGeneration::default(), by_file(&named)));
        Ok(Self { named, by_file, matching, scripts: scripts.clone() })
    }

    fn of(&self, file: &[u8]) -> Option<WorkerId> {
        self.by_file.read().unwrap_or_else(PoisonError::into_inner).1.get(file).copied()
    }

    /// To be called before the first look at a request's files.
    fn follow_links(&self, generation: CodeGeneration) {
        if self.named.is_empty() {
            return;
        }
        let is_known = self.by_file.read().unwrap_or_else(PoisonError::into_inner).0 == generation;
        if !is_known {
            let found = by_file(&self.named);
            *self.by_file.write().unwrap_or_else(PoisonError::into_inner) = (generation, found);
        }
    }
}

/// The document root may have its links resolved or not.
fn by_file(named: &[(Vec<u8>, WorkerId)]) -> FxHashMap<Vec<u8>, WorkerId> {
    let mut found = FxHashMap::default();
    for (file, worker) in named {
        if let Ok(real) = std::fs::canonicalize(OsStr::from_bytes(file)) {
            found.entry(real.as_os_str().as_bytes().to_vec()).or_insert(*worker);
        }
        found.entry(file.clone()).or_insert(*worker);
    }
    found
}

/// A worker's requests have the variables that its script has booted with, and those of the block: before them, if the worker is
/// one of all sites, each of which may say otherwise.
fn of_workers(
    php: &config::Php,
    scripts: &WorkerScripts,
) -> Result<FxHashMap<WorkerId, DeliveryRules>, BuildError> {
    let mut rules = FxHashMap::default();
    for worker in &php.workers {
        let own = &scripts.get(worker.id)?.env;
        if !own.is_empty() {
            let site = &php.delivery.env;
            let env = match worker.scope {
                WorkerScope::Block => merged(own, site),
                WorkerScope::Global => merged(site, own),
            };
            rules.insert(worker.id, DeliveryRules::compile(&Delivery { env, ..php.delivery.clone() }));
        }
    }
    Ok(rules)
}

type Environment = Vec<(String, Template)>;

/// All of the first, and of the other what that does not have.
fn merged(first: &Environment, other: &Environment) -> Environment {
    let is_free = |(name, _): &&(String, Template)| !first.iter().any(|(taken, _)| taken == name);
    other.iter().filter(is_free).chain(first).cloned().collect()
}
