//! What all I/O threads share of the proxies of a configuration.

use crate::limit::Limits;
use crate::registry::Registry;
use crate::state::UpstreamState;
use regent_config::{
    self as config, Config, DynamicRecords, ProxyTransport, UpstreamVerification, UpstreamVersions,
};
use regent_tls::{Alpn, Client, ClientOptions, Curve, KeyPairFiles, Verification};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio::sync::watch;

/// Why requests cannot be handed on as configured.
#[derive(Debug, thiserror::Error)]
#[error("TLS to the upstream {upstream} (`reverse_proxy`): {cause}")]
pub struct OpenError {
    upstream: String,
    cause: regent_tls::Error,
}

/// All proxies of a configuration, as [`config::ProxyId`] counts them.
pub struct Transports(Vec<Arc<Transport>>);

/// How an upstream stands, in all directives that name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// As it is written, with its port.
    pub address: String,
    /// Not if one of the directives gives it no requests.
    pub is_healthy: bool,
    /// Requests that it has now.
    pub requests: u64,
    /// Failures that are remembered.
    pub fails: u64,
    pub requests_total: u64,
    pub failures_total: u64,
}

/// How the upstreams of one proxy are talked to.
pub(crate) struct Transport {
    pub config: config::ReverseProxy,
    /// By upstream, of those that are written.
    pub states: Vec<Arc<UpstreamState>>,
    /// Of those that are looked up.
    pub registry: Arc<Registry>,
    /// Lives as long as the directive stays as it is.
    pub life: Arc<watch::Sender<()>>,
    /// Of connections, where there are some.
    pub limits: Arc<Limits>,
    /// Whose turn it is.
    pub turn: AtomicUsize,
    /// `None`: without TLS.
    tls: Option<Clients>,
}

struct Clients {
    requests: Client,
    /// Offers HTTP/1.1 alone.
    upgrades: Client,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Requests,
    /// One that is to leave HTTP, which only HTTP/1.1 can.
    Upgrade,
}

impl Transports {
    /// Blocks: it reads certificates. `before`: those of the running configuration. What is known of the upstreams of a
    /// directive that stays as it is, stays.
    ///
    /// # Errors
    /// When a file of certificates cannot be read, or is none.
    pub fn open(config: &Config, before: Option<&Self>) -> Result<Arc<Self>, OpenError> {
        let open = |proxy: &config::ReverseProxy| {
            let kept = before.and_then(|before| before.0.iter().find(|before| before.config == *proxy));
            let cause = |cause| OpenError { upstream: first_name(proxy), cause };
            let tls = client_options(&proxy.transport).map(Clients::new).transpose().map_err(cause)?;
            let state = |upstream| UpstreamState::new(name(upstream), &proxy.passive_health);
            Ok(Arc::new(Transport {
                config: proxy.clone(),
                states: match kept {
                    Some(kept) => kept.states.clone(),
                    None => proxy.upstreams.iter().map(state).collect(),
                },
                life: kept.map_or_else(|| Arc::new(watch::Sender::new(())), |kept| Arc::clone(&kept.life)),
                registry: kept.map(|kept| Arc::clone(&kept.registry)).unwrap_or_default(),
                limits: kept.map(|kept| Arc::clone(&kept.limits)).unwrap_or_default(),
                turn: AtomicUsize::new(0),
                tls,
            }))
        };
        config.proxies.iter().map(open).collect::<Result<_, _>>().map(Self).map(Arc::new)
    }

    /// All upstreams, each once, in the order of their names.
    pub fn upstreams(&self) -> Vec<UpstreamStatus> {
        let mut found: BTreeMap<String, UpstreamStatus> = BTreeMap::new();
        for state in self.0.iter().flat_map(|transport| transport.known()) {
            let address = state.name.clone();
            let new = || UpstreamStatus { address, is_healthy: true, ..UpstreamStatus::default() };
            let status = found.entry(state.name.clone()).or_insert_with(new);
            let (requests, failures) = state.totals();
            status.requests += u64::from(state.requests());
            status.fails += state.fails() as u64;
            status.is_healthy &= state.is_healthy();
            status.requests_total += requests;
            status.failures_total += failures;
        }
        found.into_values().collect()
    }

    pub(crate) fn all(&self) -> &[Arc<Transport>] {
        &self.0
    }
}

impl Transport {
    /// Upstreams that are written, and those that DNS names now.
    fn known(&self) -> Vec<Arc<UpstreamState>> {
        self.states.iter().cloned().chain(self.registry.used()).collect()
    }

    /// `None`: without TLS.
    pub fn client(&self, purpose: Purpose) -> Option<&Client> {
        let clients = self.tls.as_ref()?;
        Some(match purpose {
            Purpose::Requests => &clients.requests,
            Purpose::Upgrade => &clients.upgrades,
        })
    }

    /// Whether a connection can leave HTTP.
    pub fn can_upgrade(&self) -> bool {
        self.config.transport.fastcgi.is_none()
            && matches!(self.config.transport.versions, UpstreamVersions::Http1 | UpstreamVersions::Either)
    }
}

impl Clients {
    fn new(options: ClientOptions) -> Result<Self, regent_tls::Error> {
        let requests = Client::new(&options)?;
        let upgrades = match options.alpn {
            Alpn::Both => Client::new(&ClientOptions { alpn: Alpn::Http1, ..options })?,
            Alpn::Http1 => requests.clone(),
        };
        Ok(Self { requests, upgrades })
    }
}

fn client_options(transport: &ProxyTransport) -> Option<ClientOptions> {
    let tls = transport.tls.as_ref()?;
    let pair = |(certificate, key): &(_, _)| KeyPairFiles {
        certificate: Clone::clone(certificate),
        key: Clone::clone(key),
    };
    Some(ClientOptions {
        verification: match &tls.verification {
            UpstreamVerification::SystemRoots => Verification::SystemRoots,
            UpstreamVerification::Roots(files) => Verification::Roots(files.clone()),
            UpstreamVerification::None => Verification::None,
        },
        certificate: tls.client_certificate.as_ref().map(pair),
        alpn: match transport.versions {
            UpstreamVersions::Http1 | UpstreamVersions::H2c => Alpn::Http1,
            // A server that has no HTTP/2 is spoken to all the same, as by Caddy.
            UpstreamVersions::Http2 | UpstreamVersions::Either => Alpn::Both,
        },
        curves: tls.curves.iter().map(curve).collect(),
    })
}

fn curve(curve: &config::Curve) -> Curve {
    curve.name().parse().expect("invariant: regent-tls has all curves of the model")
}

/// What stands for all upstreams of a directive.
fn first_name(proxy: &config::ReverseProxy) -> String {
    let of_source = |source: &config::DynamicUpstreams| match &source.records {
        DynamicRecords::Addresses { name, .. } | DynamicRecords::Services { name, .. } => name.to_string(),
    };
    let written = proxy.upstreams.first().map(name);
    written.or_else(|| proxy.dynamic.first().map(of_source)).unwrap_or_default()
}

/// For people to read.
fn name(upstream: &config::Upstream) -> String {
    match upstream {
        config::Upstream::Fixed(address) => address.to_string(),
        config::Upstream::Computed(template) => template.to_string(),
    }
}
