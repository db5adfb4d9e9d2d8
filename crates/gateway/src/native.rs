//! Requests to native services: an engine runs their handlers, or the server itself those that never block.

use crate::gateway::{Answered, Arrived, Gateway};
use crate::inline::{CallHere, Inlined, InlinedCaller};
use crate::keys;
use crate::response_head::Collected;
use crate::target::Target;
use bytes::Bytes;
use regent_engines::{EngineClient, Subject};
use regent_exchange::RequestBody;
use regent_handlers::{Delivery, Exchange, NativeTarget};
use regent_wire::{Head, HeadBuilder};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// What requests to native services need on an I/O thread.
pub struct NativeGateway {
    gateway: Gateway,
    /// Names of the services, by their ids.
    services: Vec<String>,
    inlined: RefCell<InlinedCaller>,
}

/// A request to a service.
struct Call<'a> {
    target: &'a NativeTarget,
    service: &'a str,
    inlined: &'a RefCell<InlinedCaller>,
}

impl NativeGateway {
    pub fn new(gateway: Gateway, services: Vec<String>, inlined: Arc<Inlined>) -> Self {
        Self { gateway, services, inlined: RefCell::new(InlinedCaller::new(inlined)) }
    }

    pub fn engine_client(&self) -> &Rc<EngineClient> {
        self.gateway.engine_client()
    }

    /// The modules of handlers that run in the server.
    pub fn inlined(&self) -> Arc<Inlined> {
        Arc::clone(self.inlined.borrow().modules())
    }

    /// Handlers that run in the server come from these modules from now on. Returns those before.
    pub fn replace_inlined(&self, inlined: Arc<Inlined>) -> Arc<Inlined> {
        self.inlined.replace(InlinedCaller::new(inlined)).into_modules()
    }

    /// As [`Gateway::run`].
    pub async fn run(
        &self,
        arrived: Arrived<'_>,
        target: &NativeTarget,
        body: RequestBody,
        received: &Rc<Cell<u64>>,
    ) -> Answered {
        let service = &self.services[usize::from(target.service.0)];
        let call = Call { target, service, inlined: &self.inlined };
        self.gateway.run(arrived, &call, body, received).await
    }
}

impl Target for Call<'_> {
    fn pool(&self) -> usize {
        usize::from(self.target.service.0)
    }

    fn delivery(&self) -> &Delivery {
        &self.target.delivery
    }

    /// Each service has a pool of its own.
    fn code(&self) -> &[u8] {
        b""
    }

    /// The path belongs to the module's routes as a whole: no part of it is the name of a script.
    fn write(&self, head: &mut HeadBuilder, exchange: &Exchange) {
        head.known(keys::SCRIPT_NAME, b"");
        head.known(keys::PATH_INFO, exchange.path());
    }

    fn subject(&self) -> Subject {
        Subject::Service(self.service.to_owned())
    }

    fn is_answered_here(&self, exchange: &Exchange) -> bool {
        self.inlined.borrow().answers(self.target.service, exchange)
    }

    fn answer_here(&self, exchange: &Exchange, head: Head<'_>, body: Bytes) -> Collected {
        let call = CallHere { service: self.target.service, name: self.service, exchange, head, body };
        self.inlined.borrow_mut().answer(call)
    }
}
