//! Everything that one configuration means, on one I/O thread.
//!
//! A request takes what it needs of the [`App`] that is current when it comes, and keeps that to its end. The engines of an App
//! end with their last request, and nothing here counts across configurations: listeners go by the number of their address, pools
//! and services by the App's own gateways.

use crate::answers::Answers;
use crate::engine_clients::ThreadClients;
use crate::hooks;
use crate::listener::Listener;
use regent_config::HealthCheck;
use regent_connections::{Binding, Conditions};
use regent_engines::{ClientStart, Entrance};
use regent_gateway::{Gateway, Inlined, NativeGateway};
use regent_metrics::{HttpMeter, Recorder};
use regent_proxy::{HealthChecks, Proxy, Transports};
use regent_service::counted::HttpFigures;
use regent_service::scrapes::Scrapes;
use regent_service::{HubGateway, InUse, OpenHubs, Service, Turns, probe};
use regent_spool::Spools;
use regent_tls::{Acceptor, Handshakes};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// What an I/O thread makes its [`App`] of.
pub(crate) struct AppStart {
    pub listeners: Vec<Listener>,
    pub spools: Arc<Spools>,
    /// By their ids.
    pub hubs: Arc<OpenHubs>,
    pub proxies: Arc<Transports>,
    pub in_use: InUse,
    pub health_checks: HealthChecks,
    pub php: EngineSource,
    /// `None`: there are no native services.
    pub native: Option<NativeStart>,
}

/// Where the way to an engine comes from.
pub(crate) enum EngineSource {
    New(ClientStart),
    /// The App before has it, and the engine goes on.
    Kept,
}

/// What the way to native services takes.
pub(crate) struct NativeStart {
    pub engine: EngineSource,
    /// Names of the services, by their ids.
    pub services: Vec<String>,
    /// `None`: those of the App before.
    pub inlined: Option<Arc<Inlined>>,
}

/// What all Apps of a thread have in common.
pub(crate) struct ThreadParts {
    pub clients: Rc<ThreadClients>,
    pub recorder: Rc<Recorder>,
    pub meter: Rc<HttpMeter>,
    pub scrapes: Scrapes,
    pub handshakes: Handshakes,
}

pub(crate) struct App {
    /// By the number of the listening address.
    pub bindings: Vec<(usize, Rc<Binding<Answers>>)>,
    php: Entrance,
    native: Option<(Entrance, Rc<NativeGateway>)>,
}

impl App {
    /// `before`: the App that is current now.
    pub fn build(start: AppStart, parts: &ThreadParts, before: Option<&Self>) -> io::Result<Rc<Self>> {
        let gateway = |entrance: &Entrance| {
            let spools = Arc::clone(&start.spools);
            Gateway::new(
                Rc::clone(&entrance.client),
                Rc::clone(&entrance.admission),
                spools,
                &start.hubs.numbers,
            )
        };
        let php = match start.php {
            EngineSource::New(client) => entrance(client, parts)?,
            EngineSource::Kept => before.expect("invariant: only a running App's engine is kept").php.clone(),
        };
        let native = match start.native {
            Some(NativeStart { engine, services, inlined }) => {
                let kept = before.and_then(|before| before.native.as_ref());
                let entrance = match engine {
                    EngineSource::New(client) => entrance(client, parts)?,
                    EngineSource::Kept => kept.expect("invariant: it is kept").0.clone(),
                };
                let inlined = inlined.unwrap_or_else(|| kept.expect("invariant: it is kept").1.inlined());
                let gateway = Rc::new(NativeGateway::new(gateway(&entrance), services, inlined));
                Some((entrance, gateway))
            }
            None => None,
        };
        let to_php = Rc::new(gateway(&php));
        let proxy = Rc::new(Proxy::new(&start.proxies, start.health_checks, Arc::clone(&start.spools)));
        let binding = |listener: Listener| {
            let service = Service {
                max_header_size: listener.settings.max_header_size,
                expected_fields: listener.expected_fields,
                limits: listener.limits,
                passwords: Turns::default(),
                listings: Turns::default(),
                templates: Turns::default(),
                sites: listener.sites,
                sni_host: listener.sni_host,
                alt_svc: listener.alt_svc,
                tls: listener.tls.clone(),
                challenges: listener.challenges,
                php: Rc::clone(&to_php),
                native: native.as_ref().map(|(_, gateway)| Rc::clone(gateway)),
                hubs: HubGateway { hubs: Arc::clone(&start.hubs) },
                proxy: Rc::clone(&proxy),
                scrapes: parts.scrapes.clone(),
                in_use: start.in_use.clone(),
                fetches: Cell::new(0),
                figures: listener.http.map(|labels| HttpFigures { meter: Rc::clone(&parts.meter), labels }),
            };
            let acceptor = |sites| Acceptor::new(sites, parts.handshakes.clone());
            let tls = listener.tls.map(|sites| acceptor(sites).with_plain_http(listener.plain_http));
            let conditions = Conditions {
                terms: listener.terms,
                settings: listener.settings,
                proxy_protocol: listener.proxy_protocol,
                tls,
            };
            let service = Answers(Rc::new(service));
            (listener.number, Rc::new(Binding { service, conditions: Rc::new(conditions) }))
        };
        let bindings = start.listeners.into_iter().map(binding).collect();
        Ok(Rc::new(Self { bindings, php, native }))
    }

    /// Asks PHP; an error says why it is not ready.
    pub async fn probe(&self, check: &HealthCheck) -> Result<(), String> {
        probe(self.bindings.iter().map(|(_, binding)| &*binding.service.0), check).await
    }

    /// Handlers that run in the server come from these modules from now on. Returns those before, if there are services.
    pub fn replace_inlined(&self, inlined: Arc<Inlined>) -> Option<Arc<Inlined>> {
        self.native.as_ref().map(|(_, gateway)| gateway.replace_inlined(inlined))
    }
}

fn entrance(start: ClientStart, parts: &ThreadParts) -> io::Result<Entrance> {
    let entrance = Entrance::open(start, &parts.recorder, hooks::drain_clients)?;
    parts.clients.add(&entrance.client);
    Ok(entrance)
}
