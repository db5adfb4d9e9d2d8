//! The upstreams of one directive, on one I/O thread.

use crate::balance::{Choice, Choices};
use crate::pool::Pool;
use crate::random::Random;
use crate::request::Asked;
use crate::span::{Call, UpstreamSpan};
use crate::state::{InFlight, UpstreamState};
use crate::transports::Transport;
use crate::trouble::Trouble;
use crate::tunnel::Limits;
use http::{HeaderValue, Response};
use regent_config::{Upstream, UpstreamAddress};
use regent_handlers::{Exchange, Proxied, ProxyTarget};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Pools of upstreams that requests name. Who names thousands gets no connection that is kept for long.
const MOST_COMPUTED: usize = 1024;

pub(crate) struct Backend {
    pub transport: Arc<Transport>,
    /// By upstream; `None` where the request says what it is.
    pools: Vec<Option<Rc<Pool>>>,
    computed: RefCell<HashMap<UpstreamAddress, Rc<Pool>>>,
    random: Random,
}

/// The upstream that a request goes to.
pub(crate) struct Chosen {
    pub index: usize,
    pub pool: Rc<Pool>,
    pub state: Arc<UpstreamState>,
    pub in_flight: InFlight,
    /// For the client, which is to come back to it.
    pub cookie: Option<HeaderValue>,
    transport: Arc<Transport>,
}

impl Backend {
    pub fn new(transport: &Arc<Transport>) -> Self {
        let pool = |upstream: &Upstream| match upstream {
            Upstream::Fixed(address) => Some(Pool::new(address.clone(), transport)),
            Upstream::Computed(_) => None,
        };
        Self {
            pools: transport.config.upstreams.iter().map(pool).collect(),
            transport: Arc::clone(transport),
            computed: RefCell::default(),
            random: Random::default(),
        }
    }

    /// `None`: none is available. `tried`: those that the request has failed at.
    pub fn choose(
        &self,
        target: &ProxyTarget,
        exchange: &Exchange,
        tried: &[usize],
    ) -> Result<Option<Chosen>, Trouble> {
        let Transport { states, names, turn, .. } = &*self.transport;
        let choices = Choices { states, names, tried, turn, random: &self.random };
        let Some(Choice { index, cookie }) =
            choices.choose(&self.transport.config.balancing.policy, exchange)
        else {
            return Ok(None);
        };
        let pool = match &self.pools[index] {
            Some(pool) => Rc::clone(pool),
            None => self.computed_pool(target, index, exchange)?,
        };
        let state = Arc::clone(&states[index]);
        let (in_flight, transport) = (state.begin(), Arc::clone(&self.transport));
        Ok(Some(Chosen { index, pool, state, in_flight, cookie, transport }))
    }

    fn computed_pool(
        &self,
        target: &ProxyTarget,
        index: usize,
        exchange: &Exchange,
    ) -> Result<Rc<Pool>, Trouble> {
        let text = target.rules.computed_address(index, exchange).unwrap_or_default();
        let Some(address) = UpstreamAddress::parse(&text) else { return Err(Trouble::Address(text)) };
        let mut computed = self.computed.borrow_mut();
        if !computed.contains_key(&address) && computed.len() >= MOST_COMPUTED {
            computed.retain(|_, pool| !pool.is_unused());
            if computed.len() >= MOST_COMPUTED {
                computed.clear();
            }
        }
        let new = || Pool::new(address.clone(), &self.transport);
        Ok(Rc::clone(computed.entry(address.clone()).or_insert_with(new)))
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
        let scheme = match (&transport.tls, &transport.fastcgi) {
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
        Limits { time: config.stream_timeout, buffer: config.stream_buffer_size as usize }
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
