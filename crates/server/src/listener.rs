//! What is served at a listening address.

use crate::StartError;
use crate::lasting::Lasting;
use http::HeaderValue;
use regent_config::{Config, Server, SniHost};
use regent_connections::{Https, ListenedOn, ProxyHeaders, Settings, Terms, alt_svc, plain_http, settings};
use regent_exchange::BodyLimits;
use regent_handlers::{Caches, Sites};
use regent_metrics::{HttpLabels, Registry};
use regent_service::{ExpectedFields, body_limits, counted};
use regent_tls::{PlainHttp, SiteTable, Tls};
use std::sync::Arc;

/// What each I/O thread is told of a listening address.
#[derive(Clone)]
pub(crate) struct Listener {
    /// Of its address.
    pub number: usize,
    pub sites: Arc<Sites>,
    /// `None`: plain HTTP.
    pub tls: Option<Arc<SiteTable>>,
    /// Has the challenges of public CAs that may be looked for here; `None`: there are never any.
    pub challenges: Option<Tls>,
    pub sni_host: SniHost,
    /// Tells clients where it speaks HTTP/3; `None`: nowhere.
    pub alt_svc: Option<HeaderValue>,
    pub settings: Settings,
    pub expected_fields: Arc<ExpectedFields>,
    pub limits: BodyLimits,
    /// `None`: requests are not counted under Caddy's names.
    pub http: Option<Arc<HttpLabels>>,
    /// `None`: connections begin with TLS or HTTP.
    pub proxy_protocol: Option<Arc<ProxyHeaders>>,
    /// For clients without TLS where there is TLS.
    pub plain_http: PlainHttp,
    pub terms: Arc<Terms>,
}

impl Listener {
    /// `addresses`: those of the configuration.
    pub fn all(
        config: &Config,
        https: Https,
        addresses: &[ListenedOn],
        lasting: &Lasting,
        registry: &Registry,
    ) -> Result<Vec<Self>, StartError> {
        let store = lasting.caches.open(&config.global.cache);
        let tracer = lasting.traces.open(config.global.traces.as_ref())?;
        let Https { tls, tables } = https;
        let mut labels = counted::labels(config, registry).into_iter();
        let asked = tls.filter(Tls::has_acme);
        let listener = |((server, tls), address): ((&Server, Option<Arc<SiteTable>>), &ListenedOn)| {
            let sites = Sites::build(
                server,
                &config.global.php.workers,
                &config.proxies,
                &lasting.logs,
                &store,
                &lasting.rates,
                tracer.as_ref(),
            )?;
            let sites = sites.with_purges(&lasting.caches.scopes).with_notice(&lasting.shutdown);
            let sites = Arc::new(sites);
            let sni_host = server.tls.as_ref().map_or(SniHost::Free, |tls| tls.sni_host);
            // CAs look for their HTTP challenge at plain HTTP (RFC 8555 section 8.3).
            let challenges = if tls.is_none() { asked.clone() } else { None };
            Ok(Self {
                number: address.number,
                alt_svc: address.udp_port.map(alt_svc),
                sites,
                tls,
                challenges,
                sni_host,
                settings: settings(&server.options),
                expected_fields: Arc::new(ExpectedFields::new(&server.options.expected_fields)),
                limits: body_limits(&server.options),
                http: labels.next().flatten(),
                proxy_protocol: server
                    .options
                    .proxy_protocol
                    .as_ref()
                    .map(|proxies| Arc::new(ProxyHeaders::new(proxies))),
                plain_http: plain_http(&server.options),
                terms: Arc::new(Terms::of(server)),
            })
        };
        let listeners = config.servers.iter().zip(tables).zip(addresses).map(listener).collect();
        Caches::begin_disk(&store, &config.global.cache).map_err(StartError::Thread)?;
        listeners
    }
}
