//! Native modules in the server's own process: handlers that declare that they never block are called on the I/O thread.

use crate::fields::trailers;
use crate::response_head::{BufferedResponse, ResponseHeader};
use bytes::{Buf, Bytes};
use regent_config::{Inline, NativeGlobal, NativeId};
use regent_engines::{EngineKind, Origin, Subject, log_line};
use regent_handlers::Exchange;
use regent_module_loader::{
    Completion, Fields, Gone, Head, Level, LoadError, LogSink, ModulePlan, Modules, Plan, Scratch, ServiceId,
};
use regent_wire::{self as wire, End, LogLine};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// The modules of services that allow it. None of them when no service does. Who drops it last may be an I/O thread, or any
/// other that must not wait for what modules do at their end: that is done by a thread of its own, see [`Self::unload`].
pub struct Inlined {
    /// `None` at the end.
    modules: Option<Modules>,
    /// By [`NativeId`]; `None`: the service's handlers all run in the engine.
    services: Vec<Option<ServiceId>>,
}

/// What an I/O thread calls them with.
pub(crate) struct InlinedCaller {
    inlined: Arc<Inlined>,
    scratch: Scratch,
}

/// A request that is answered here, with all of its body.
pub(crate) struct CallHere<'a> {
    pub service: NativeId,
    /// The service's name.
    pub name: &'a str,
    pub exchange: &'a Exchange,
    /// As an engine would get it.
    pub head: wire::Head<'a>,
    pub body: Bytes,
}

impl Inlined {
    /// As [`Self::load`], not on a thread that others wait for: modules may do anything while they are initialised.
    pub async fn load_apart(native: NativeGlobal) -> Result<Arc<Self>, LoadError> {
        let loading = tokio::task::spawn_blocking(move || Self::load(&native).map(Arc::new));
        loading.await.expect("invariant: loading does not panic")
    }

    /// Loads the modules, which may take its time. (Dropped, they end on a thread of their own.)
    pub fn load(native: &NativeGlobal) -> Result<Self, LoadError> {
        let log: LogSink = Arc::new(|level, message| {
            log_line(EngineKind::Native, level as u8, message, "");
        });
        let modules = Modules::load(plan(native), log)?;
        let services = native.services.iter().map(|service| modules.service(&service.name)).collect();
        Ok(Self { modules: Some(modules), services })
    }

    /// Whether the handler for this request runs here.
    pub fn answers(&self, service: NativeId, exchange: &Exchange) -> bool {
        let id = self.services.get(usize::from(service.0)).copied().flatten();
        id.is_some_and(|id| {
            self.modules().inline_route(id, exchange.method.as_str().as_bytes(), exchange.path())
        })
    }

    /// Has the modules clean up and unloads them, unless somebody else still has them. Blocks as long as they take.
    pub fn unload(inlined: Arc<Self>) {
        if let Some(mut own) = Arc::into_inner(inlined) {
            drop(own.modules.take());
        }
    }

    fn modules(&self) -> &Modules {
        self.modules.as_ref().expect("invariant: they are there until the end")
    }
}

impl Drop for Inlined {
    fn drop(&mut self) {
        let Some(modules) = self.modules.take().filter(|modules| !modules.is_empty()) else { return };
        // Without such a thread they stay loaded: what hangs here would harm all that is served.
        let modules = ManuallyDrop::new(modules);
        let unload = move || drop(ManuallyDrop::into_inner(modules));
        if let Err(error) = std::thread::Builder::new().name("unload".into()).spawn(unload) {
            tracing::warn!(%error, "native modules that are not used any more stay loaded in the server");
        }
    }
}

/// The modules of services that allow it, and those that others depend on. Nothing at all if no service allows it.
fn plan(native: &NativeGlobal) -> Plan {
    let allowed = || native.services.iter().filter(|service| service.inline == Inline::Allowed);
    if allowed().next().is_none() {
        return Plan::default();
    }
    let others = native.modules.iter().map(|module| ModulePlan {
        file: module.file.clone(),
        config: module.config.clone(),
        service: None,
    });
    let services = allowed().map(|service| ModulePlan {
        file: service.file.clone(),
        config: service.config.clone(),
        service: Some(service.name.clone()),
    });
    Plan { modules: others.chain(services).collect() }
}

impl InlinedCaller {
    pub fn new(inlined: Arc<Inlined>) -> Self {
        Self { scratch: inlined.modules().scratch(), inlined }
    }

    pub fn modules(&self) -> &Arc<Inlined> {
        &self.inlined
    }

    pub fn into_modules(self) -> Arc<Inlined> {
        self.inlined
    }

    /// As [`Inlined::answers`].
    pub fn answers(&self, service: NativeId, exchange: &Exchange) -> bool {
        self.inlined.answers(service, exchange)
    }

    /// Calls the handler of a request that it [answers](Self::answers).
    pub fn answer(&mut self, call: CallHere<'_>) -> BufferedResponse {
        let CallHere { service, name, exchange, head, body } = call;
        let mut in_memory = InMemory { name, exchange, body, collected: BufferedResponse::default() };
        if let Some(id) = self.inlined.services[usize::from(service.0)] {
            self.inlined.modules().answer(id, &Variables(head), &mut in_memory, &mut self.scratch);
        }
        in_memory.collected
    }
}

/// The variables of a request, to be asked for by name.
struct Variables<'a>(wire::Head<'a>);

impl Head for Variables<'_> {
    fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        self.0.value(name)
    }

    fn next_variable(&self, cursor: &mut usize) -> Option<(&[u8], &[u8])> {
        self.0.next_of_request(cursor)
    }

    fn body_length(&self) -> Option<u64> {
        self.0.body_length
    }
}

/// A request whose body is there, and whose answer is collected.
struct InMemory<'a> {
    name: &'a str,
    exchange: &'a Exchange,
    body: Bytes,
    collected: BufferedResponse,
}

impl regent_module_loader::Exchange for InMemory<'_> {
    fn read_body(&mut self, buffer: &mut [u8]) -> Result<usize, Gone> {
        let count = buffer.len().min(self.body.len());
        self.body.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }

    /// Who waits is not looked at before the handler has returned.
    fn is_gone(&self) -> bool {
        false
    }

    fn head(&mut self, status: u16, fields: &Fields) -> Result<(), Gone> {
        self.collected.head = Some(ResponseHeader::new(status, b"", fields.iter().count(), fields.iter()));
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.collected.body.push_back(Bytes::copy_from_slice(bytes));
        Ok(())
    }

    fn publish(&mut self) {}

    fn trailers(&mut self, fields: &Fields) -> Result<(), Gone> {
        self.collected.trailers = Some(trailers(fields.iter()));
        Ok(())
    }

    fn end(&mut self, completion: Completion) -> Result<(), Gone> {
        let completion = match completion {
            Completion::Complete => wire::Completion::Complete,
            Completion::BrokenOff => wire::Completion::Truncated,
        };
        self.collected.end = Some(End { completion, timing: None });
        Ok(())
    }

    fn log(&mut self, level: Level, message: &str) {
        let origin = Origin::new(
            Subject::Service(self.name.to_owned()),
            &self.exchange.method,
            &self.exchange.original_uri,
        );
        let (level, message) = (level as u8, message.as_bytes().to_vec());
        origin.log(&LogLine { level, message, context: Vec::new() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::{NativeModule, NativeService};

    fn service(name: &str, inline: Inline) -> NativeService {
        NativeService {
            name: name.into(),
            file: format!("/lib{name}.so").into(),
            config: Vec::new(),
            threads: None,
            max_threads: None,
            max_connections: None,
            inline,
        }
    }

    fn names(services: Vec<NativeService>) -> Vec<Option<String>> {
        let modules = vec![NativeModule { file: "/libdb.so".into(), config: Vec::new() }];
        let plan = plan(&NativeGlobal { modules, services });
        plan.modules.into_iter().map(|module| module.service).collect()
    }

    #[test]
    fn only_services_that_allow_it_are_in_the_server_and_what_they_may_depend_on() {
        let services = vec![service("a", Inline::Never), service("b", Inline::Allowed)];
        assert_eq!(names(services), [None, Some("b".to_owned())]);
    }

    #[test]
    fn nothing_is_loaded_into_the_server_that_no_service_allows() {
        assert!(names(vec![service("a", Inline::Never)]).is_empty());
    }
}
