//! The upstreams of one directive, on one I/O thread.

use crate::balance::{Choice, Choices};
use crate::dynamic::Dynamic;
use crate::idle::Shelf;
use crate::pool::{Pool, Pools};
use crate::random::Random;
use crate::request::Asked;
use crate::resolve::Resolver;
use crate::span::{Call, UpstreamSpan};
use crate::state::{InFlight, UpstreamState};
use crate::transports::Transport;
use crate::trouble::Trouble;
use crate::tunnel::Limits;
use http::{HeaderValue, Response};
use regent_config::{Upstream, UpstreamAddress};
use regent_handlers::{Exchange, Proxied, ProxyTarget};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Backend {
    pub transport: Arc<Transport>,
    /// By upstream; `None` where the request says what it is.
    pools: Vec<Option<Rc<Pool>>>,
    computed: Pools,
    /// `None`: all upstreams are written.
    dynamic: Option<Dynamic>,
    resolver: Rc<Resolver>,
    shelf: Rc<Shelf>,
    random: Random,
}

/// The upstream that a request goes to.
pub(crate) struct Chosen {
    pub pool: Rc<Pool>,
    pub state: Arc<UpstreamState>,
    pub in_flight: InFlight,
    /// For the client, which is to come back to it.
    pub cookie: Option<HeaderValue>,
    transport: Arc<Transport>,
}

impl Backend {
    /// `resolver`: asks as everybody does.
    pub fn new(transport: &Arc<Transport>, resolver: &Rc<Resolver>) -> Self {
        let resolver = Resolver::for_transport(&transport.config.transport, resolver);
        let shelf = Shelf::new(transport.config.transport.keepalive_idle_conns);
        let pool = |upstream: &Upstream| match upstream {
            Upstream::Fixed(address) => Some(Pool::new(address.clone(), transport, &resolver, &shelf)),
            Upstream::Computed(_) => None,
        };
        Self {
            pools: transport.config.upstreams.iter().map(pool).collect(),
            transport: Arc::clone(transport),
            computed: Pools::default(),
            dynamic: Dynamic::new(transport, &shelf),
            resolver,
            shelf,
            random: Random::default(),
        }
    }

    /// `None`: none is available. `tried`: those that the request has failed at.
    pub async fn choose(
        &self,
        target: &ProxyTarget,
        exchange: &Exchange,
        tried: &[Arc<UpstreamState>],
    ) -> Result<Option<Chosen>, Trouble> {
        if let Some(dynamic) = &self.dynamic {
            let found = dynamic.upstreams(&self.transport, target, exchange).await;
            // What is written is for when DNS knows none.
            if !found.states.is_empty() {
                let choice = self.choose_of(&found.states, exchange, tried);
                return Ok(choice.map(|choice| {
                    let pool = Rc::clone(&found.pools[choice.index]);
                    self.chosen(choice, pool, &found.states)
                }));
            }
        }
        let states = &self.transport.states;
        let Some(choice) = self.choose_of(states, exchange, tried) else { return Ok(None) };
        let pool = match &self.pools[choice.index] {
            Some(pool) => Rc::clone(pool),
            None => self.computed_pool(target, choice.index, exchange)?,
        };
        Ok(Some(self.chosen(choice, pool, states)))
    }

    fn choose_of(
        &self,
        states: &[Arc<UpstreamState>],
        exchange: &Exchange,
        tried: &[Arc<UpstreamState>],
    ) -> Option<Choice> {
        let choices = Choices { states, tried, turn: &self.transport.turn, random: &self.random };
        choices.choose(&self.transport.config.balancing.policy, exchange)
    }

    fn chosen(&self, choice: Choice, pool: Rc<Pool>, states: &[Arc<UpstreamState>]) -> Chosen {
        let state = Arc::clone(&states[choice.index]);
        let (in_flight, transport) = (state.begin(), Arc::clone(&self.transport));
        Chosen { pool, state, in_flight, cookie: choice.cookie, transport }
    }

    fn computed_pool(
        &self,
        target: &ProxyTarget,
        index: usize,
        exchange: &Exchange,
    ) -> Result<Rc<Pool>, Trouble> {
        let text = target.rules.computed_address(index, exchange).unwrap_or_default();
        let Some(address) = UpstreamAddress::parse(&text) else { return Err(Trouble::Address(text)) };
        let new = || Pool::new(address.clone(), &self.transport, &self.resolver, &self.shelf);
        Ok(self.computed.get(&address, new))
    }
}

impl Chosen {
    /// What placeholders say of it. `retries`: tries that failed.
    pub fn proxied(&self, retries: u32) -> Proxied {
        let (host, port) = match &self.pool.address {
            UpstreamAddress::Tcp { host, port } => (host.clone(), port.to_string()),
            UpstreamAddress::Unix(path) => (path.display().to_string(), String::new()),
        };
        Proxied { address: self.pool.name.clone(), host, port, retries, ..Proxied::default() }
    }

    /// Begins the span of the request, if it is traced; what the upstream is told of that. `retries` as in [`Self::proxied`].
    pub fn trace(&mut self, exchange: &Exchange, asked: &Asked, retries: u32) -> Option<HeaderValue> {
        let transport = &self.transport.config.transport;
        let scheme = match (transport.tls_to(&self.pool.address), &transport.fastcgi) {
            (_, Some(_)) => "fastcgi",
            (Some(_), None) => "https",
            (None, None) => "http",
        };
        let call = Call {
            address: &self.pool.address,
            scheme,
            method: &asked.method,
            path: asked.uri.path(),
            resends: retries,
        };
        let span = UpstreamSpan::begin(exchange, &call);
        let field = span.as_ref().and_then(|span| span.field());
        self.in_flight.traced(span);
        field
    }

    /// Of a connection that leaves HTTP.
    pub fn tunnel_limits(&self) -> Limits {
        let config = &self.transport.config;
        Limits {
            time: config.stream_timeout,
            buffer: config.stream_buffer_size as usize,
            close_delay: config.stream_close_delay,
            directive: self.transport.life.subscribe(),
        }
    }

    /// Counts a response as a failure, if it is one by the rules of the directive.
    pub fn note<B>(&self, response: &Response<B>, latency: Duration) {
        let health = &self.transport.config.passive_health;
        let status = response.status().as_u16();
        let is_bad = health.unhealthy_status.iter().any(|(first, last)| (*first..=*last).contains(&status));
        let is_late = !health.unhealthy_latency.is_zero() && latency >= health.unhealthy_latency;
        for _ in 0..usize::from(is_bad) + usize::from(is_late) {
            self.state.fail();
        }
    }
}
