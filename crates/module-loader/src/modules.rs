//! Modules, loaded and initialised, and the services that they answer for.

use crate::abi::{self, Api};
use crate::answer::{Answer, Body, Buffers, Outcome};
use crate::error::LoadError;
use crate::exchange::{Exchange, Head, LogSink};
use crate::instance::Instance;
use crate::library::Library;
use crate::module_call::contained;
use crate::order::{self, Dependencies};
use crate::request::Request;
use crate::router::{Execution, Found, Route, Router};
use crate::setup::{Offer, Setup};
use crate::statistics::{Ended, ShardIndex};
use crate::{instance_api, request_api};
use bumpalo::Bump;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of texts made for one request that are kept for the next.
const MOST_KEPT: usize = 1024 * 1024;

/// What is to be loaded, in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub modules: Vec<ModulePlan>,
}

/// One module. One that several services use is named once for each: it is one library with an instance for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModulePlan {
    pub file: PathBuf,
    /// Names and values; a name may occur several times.
    pub config: Vec<(String, String)>,
    /// `None`: it is loaded only because others depend on it.
    pub service: Option<String>,
}

/// A service of loaded modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceId(usize);

/// Modules that are ready. Dropped, they are cleaned up, in the reverse order of their dependencies.
pub struct Modules {
    services: Vec<Service>,
    /// Kept for what happens when it is dropped.
    instances: Instances,
    description: String,
    /// Threads that answer.
    threads: AtomicUsize,
}

/// What a thread needs to answer requests, one after the other.
pub struct Scratch {
    shard: ShardIndex,
    buffers: Buffers,
    arena: Bump,
}

struct Service {
    name: String,
    instance: Arc<Instance>,
    router: Router,
}

/// In the order in which they were initialised.
#[derive(Default)]
struct Instances(Vec<Ready>);

/// An instance whose init has succeeded.
struct Ready {
    instance: Arc<Instance>,
    cleanup: Option<abi::Cleanup>,
    state: *mut c_void,
}

// SAFETY: `state` is only passed back to the module's cleanup, once, after all handlers have returned.
unsafe impl Send for Ready {}
// SAFETY: as above; it is not used through a shared reference.
unsafe impl Sync for Ready {}

static API: Api = Api {
    size: size_of::<Api>(),
    abi: abi::ABI,
    reserved: 0,
    configuration: instance_api::configuration,
    next_configuration: instance_api::next_configuration,
    route: instance_api::route,
    fail: instance_api::fail,
    offer: instance_api::offer,
    find: instance_api::find,
    log: instance_api::log,
    statistics: instance_api::statistics,
    method: request_api::method,
    path: request_api::path,
    target: request_api::target,
    query: request_api::query,
    parameter: request_api::parameter,
    query_value: request_api::query_value,
    header: request_api::header,
    next_header: request_api::next_header,
    variable: request_api::any_variable,
    body_length: request_api::body_length,
    read_body: request_api::read_body,
    json: request_api::json,
    reason: request_api::reason,
    is_gone: request_api::is_gone,
    set_status: request_api::set_status,
    set_header: request_api::set_header,
    add_header: request_api::add_header,
    write: request_api::write,
    flush: request_api::flush,
    add_trailer: request_api::add_trailer,
    refuse: request_api::refuse,
};

impl Modules {
    /// Loads all modules of the plan, or none: what was initialised before an error is cleaned up.
    pub fn load(plan: Plan, log: LogSink) -> Result<Self, LoadError> {
        check_services(&plan)?;
        let (libraries, users) = open_all(plan, &log)?;
        let (order, dependencies) = order::order(&libraries)?;
        let mut loading = Loading::new(&libraries, &dependencies, log);
        let mut users: Vec<_> = users.into_iter().map(Some).collect();
        for index in order {
            for user in users[index].take().into_iter().flatten() {
                loading.start(index, user)?;
            }
        }
        Ok(loading.finish())
    }

    /// Whether none was loaded.
    pub fn is_empty(&self) -> bool {
        self.instances.0.is_empty()
    }

    /// The service of that name.
    pub fn service(&self, name: &str) -> Option<ServiceId> {
        self.services.iter().position(|service| service.name == name).map(ServiceId)
    }

    /// Whether the request can be answered on a thread that must never block.
    pub fn inline_route(&self, service: ServiceId, method: &[u8], path: &[u8]) -> bool {
        match self.services[service.0].router.find(method, path) {
            Found::Route(route, _) => route.execution == Execution::Inline,
            Found::Options(_) | Found::OtherMethods(_) | Found::Nothing => true,
        }
    }

    /// For one thread that answers.
    pub fn scratch(&self) -> Scratch {
        let number = self.threads.fetch_add(1, Ordering::Relaxed);
        Scratch { shard: ShardIndex::of_thread(number), buffers: Buffers::default(), arena: Bump::new() }
    }

    /// Answers a request, whatever it takes: by its route's handler, or with what is said of a path that has none.
    pub fn answer(
        &self,
        service: ServiceId,
        head: &dyn Head,
        exchange: &mut dyn Exchange,
        scratch: &mut Scratch,
    ) {
        let service = &self.services[service.0];
        let statistics = &service.instance.statistics;
        statistics.start(scratch.shard);
        let ended = service.answer(head, exchange, &mut scratch.buffers, &scratch.arena);
        statistics.end(scratch.shard, ended);
        scratch.reset();
    }

    /// Names and versions of the modules: "hello 1.0, db 2.1".
    pub fn description(&self) -> &str {
        &self.description
    }
}

impl Scratch {
    fn reset(&mut self) {
        if self.arena.allocated_bytes() > MOST_KEPT {
            self.arena = Bump::new();
        } else {
            self.arena.reset();
        }
    }
}

impl Service {
    fn answer(
        &self,
        head: &dyn Head,
        exchange: &mut dyn Exchange,
        buffers: &mut Buffers,
        arena: &Bump,
    ) -> Ended {
        let method = head.variable(b"REQUEST_METHOD").unwrap_or_default();
        let path = head.variable(b"PATH_INFO").unwrap_or_default();
        let body = if method == b"HEAD" { Body::Withheld } else { Body::Sent };
        let mut answer = Answer::new(exchange, buffers, body);
        match self.router.find(method, path) {
            Found::Route(route, captures) => {
                self.handle(Request::new(head, answer, path, (route, captures), arena), route)
            }
            Found::Options(methods) => {
                let _ = answer.set_status(204);
                let _ = answer.set_header(b"Allow", methods.as_bytes());
                answer.finish(Outcome::Done)
            }
            Found::OtherMethods(methods) => {
                let _ = answer.refuse(405, "");
                let _ = answer.set_header(b"Allow", methods.as_bytes());
                answer.finish(Outcome::Done)
            }
            Found::Nothing => {
                let _ = answer.refuse(404, "");
                answer.finish(Outcome::Done)
            }
        }
    }

    fn handle(&self, mut request: Request<'_>, route: &Route) -> Ended {
        let raw = (&raw mut request).cast();
        let status = contained(self.instance.sink(), self.instance.module(), "handler", || {
            // SAFETY: regent.h says that the handler has this type, and uses the request until it returns only.
            unsafe { (route.handler)(&API, raw, route.data) }
        });
        let outcome = request.outcome(status);
        request.answer.finish(outcome)
    }
}

impl Drop for Instances {
    fn drop(&mut self) {
        while let Some(ready) = self.0.pop() {
            let Some(cleanup) = ready.cleanup else { continue };
            let instance = &ready.instance;
            contained(instance.sink(), instance.module(), "cleanup", || {
                // SAFETY: regent.h says that it has this type; nobody else uses the instance any more.
                unsafe { cleanup(&API, instance.raw(), ready.state) }
            });
        }
    }
}

fn check_services(plan: &Plan) -> Result<(), LoadError> {
    let names: Vec<&String> = plan.modules.iter().filter_map(|module| module.service.as_ref()).collect();
    match names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
        Some((_, name)) => Err(LoadError::SameService { name: (*name).clone() }),
        None => Ok(()),
    }
}

/// The libraries, each once, and who uses each: first the instance that is there for other modules.
fn open_all(plan: Plan, log: &LogSink) -> Result<(Vec<Library>, Vec<Vec<ModulePlan>>), LoadError> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut libraries: Vec<Library> = Vec::new();
    let mut users: Vec<Vec<ModulePlan>> = Vec::new();
    for module in plan.modules {
        let path = find(&module.file)?;
        let index = match paths.iter().position(|other| *other == path) {
            Some(index) => index,
            None => {
                let library = Library::open(&module.file, &path, &API, log)?;
                check_name(&library, &libraries)?;
                libraries.push(library);
                paths.push(path);
                users.push(Vec::new());
                paths.len() - 1
            }
        };
        users[index].push(module);
    }
    users.iter_mut().for_each(|users| users.sort_by_key(|user| user.service.is_some()));
    Ok((libraries, users))
}

/// The file behind all links, so that one is known by whatever name.
fn find(file: &Path) -> Result<PathBuf, LoadError> {
    let not_found = |reason: String| LoadError::NotFound { file: file.to_owned(), reason };
    file.canonicalize().map_err(|error| not_found(error.to_string()))
}

fn check_name(library: &Library, others: &[Library]) -> Result<(), LoadError> {
    match others.iter().find(|other| other.name == library.name) {
        Some(other) => Err(LoadError::SameName {
            name: library.name.clone(),
            first: other.file.clone(),
            second: library.file.clone(),
        }),
        None => Ok(()),
    }
}

/// Instances, being initialised.
struct Loading<'a> {
    libraries: &'a [Library],
    dependencies: &'a [Dependencies],
    log: LogSink,
    /// By library.
    offers: Vec<Vec<Offer>>,
    services: Vec<Service>,
    instances: Instances,
}

impl<'a> Loading<'a> {
    fn new(libraries: &'a [Library], dependencies: &'a [Dependencies], log: LogSink) -> Self {
        let offers = libraries.iter().map(|_| Vec::new()).collect();
        Self { libraries, dependencies, log, offers, services: Vec::new(), instances: Instances::default() }
    }

    fn start(&mut self, index: usize, plan: ModulePlan) -> Result<(), LoadError> {
        let library = &self.libraries[index];
        let setup = Setup::seeing(self.visible(index));
        let instance = Instance::new(&library.name, plan.config, Arc::clone(&self.log), setup);
        let mut state = std::ptr::null_mut();
        let status = contained(&self.log, &library.name, "init", || {
            // SAFETY: regent.h says that it has this type.
            unsafe { (library.init)(&API, instance.raw(), &raw mut state) }
        });
        let setup = instance.take_setup().expect("invariant: taken once, here");
        setup.verdict(status, &plan.file, &instance)?;
        self.instances.0.push(Ready { instance: Arc::clone(&instance), cleanup: library.cleanup, state });
        self.offers[index].extend(setup.offers);
        let Some(name) = plan.service else { return Ok(()) };
        if setup.router.is_empty() {
            return Err(LoadError::NoRoutes { file: plan.file, module: library.name.clone() });
        }
        self.services.push(Service { name, instance, router: setup.router });
        Ok(())
    }

    /// What is offered by the modules that one depends on.
    fn visible(&self, index: usize) -> Vec<Offer> {
        let dependencies = order::reachable(index, self.dependencies);
        dependencies.into_iter().flat_map(|dependency| self.offers[dependency].clone()).collect()
    }

    fn finish(self) -> Modules {
        let names: Vec<String> =
            self.libraries.iter().map(|library| format!("{} {}", library.name, library.version)).collect();
        Modules {
            services: self.services,
            instances: self.instances,
            description: names.join(", "),
            threads: AtomicUsize::new(0),
        }
    }
}
