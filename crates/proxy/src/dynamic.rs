//! Upstreams that DNS knows (`dynamic`), on one I/O thread.

use crate::answers::{Answer, Answers, Terms, WhenGone};
use crate::idle::Shelf;
use crate::lookup::{self, Unanswered};
use crate::pool::{Pool, Pools};
use crate::random::Random;
use crate::resolve::Resolver;
use crate::state::UpstreamState;
use crate::transports::Transport;
use futures_util::FutureExt;
use hickory_resolver::proto::rr::rdata::SRV;
use regent_config::{AddressFamilies, DnsServers, DynamicRecords, DynamicUpstreams, UpstreamAddress};
use regent_handlers::{Exchange, ProxyTarget};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long the last answer is used while DNS gives none, unless the directive says so.
const USABLE: Duration = Duration::from_secs(3600);

/// The sources of one directive.
pub(crate) struct Dynamic {
    sources: Vec<Source>,
    pools: Pools,
    shelf: Rc<Shelf>,
    /// What was made of the last answers, which the next request most likely has too.
    last: RefCell<Option<Joined>>,
}

/// Of each source that has answered its answer, and what they are together.
type Joined = (Vec<Rc<[UpstreamAddress]>>, Rc<Upstreams>);

struct Source {
    config: DynamicUpstreams,
    answers: Rc<Answers<UpstreamAddress>>,
    /// Knows the addresses of the servers that are found.
    resolver: Rc<Resolver>,
}

/// What there is to choose from: of each upstream what all know of it, and this thread's connections.
#[derive(Default)]
pub(crate) struct Upstreams {
    pub states: Vec<Arc<UpstreamState>>,
    pub pools: Vec<Rc<Pool>>,
}

impl Dynamic {
    /// `None`: the directive has no such sources.
    pub fn new(transport: &Transport, shelf: &Rc<Shelf>) -> Option<Self> {
        let sources = &transport.config.dynamic;
        (!sources.is_empty()).then(|| Self {
            sources: sources.iter().map(Source::new).collect(),
            pools: Pools::default(),
            shelf: Rc::clone(shelf),
            last: RefCell::default(),
        })
    }

    /// The upstreams for a request, of all sources that know some: perhaps none.
    pub async fn upstreams(
        &self,
        transport: &Arc<Transport>,
        target: &ProxyTarget,
        exchange: &Exchange,
    ) -> Rc<Upstreams> {
        let mut answers = Vec::with_capacity(self.sources.len());
        for (index, source) in self.sources.iter().enumerate() {
            let (name, port) = target.rules.dynamic_name(index, exchange);
            match source.find(&name, port.as_deref()).await {
                Ok(found) => answers.push((index, found)),
                Err(why) => tracing::debug!(name = &*name, reason = %why, "no upstreams were found in DNS"),
            }
        }
        self.joined(transport, answers)
    }

    fn joined(
        &self,
        transport: &Arc<Transport>,
        answers: Vec<(usize, Rc<[UpstreamAddress]>)>,
    ) -> Rc<Upstreams> {
        let mut last = self.last.borrow_mut();
        if let Some((before, upstreams)) = &*last
            && before.len() == answers.len()
            && before.iter().zip(&answers).all(|(before, (_, now))| Rc::ptr_eq(before, now))
        {
            return Rc::clone(upstreams);
        }
        let mut upstreams = Upstreams::default();
        for (index, answer) in &answers {
            for address in &**answer {
                let resolver = &self.sources[*index].resolver;
                let pool = || Pool::new(address.clone(), transport, resolver, &self.shelf);
                let state = transport.registry.state(address, &transport.config.passive_health);
                // Two sources may know the same one.
                if !upstreams.states.iter().any(|other| Arc::ptr_eq(other, &state)) {
                    upstreams.states.push(state);
                    upstreams.pools.push(self.pools.get(address, pool));
                }
            }
        }
        let upstreams = Rc::new(upstreams);
        let answers = answers.into_iter().map(|(_, answer)| answer).collect();
        *last = Some((answers, Rc::clone(&upstreams)));
        upstreams
    }
}

impl Source {
    fn new(config: &DynamicUpstreams) -> Self {
        let grace_period = match &config.records {
            DynamicRecords::Addresses { .. } => None,
            DynamicRecords::Services { grace_period, .. } => *grace_period,
        };
        let terms = Terms {
            fresh: config.refresh,
            overlap: config.refresh,
            usable: grace_period.map_or(USABLE.max(config.refresh), |grace| config.refresh + grace),
            when_gone: if grace_period.is_some() { WhenGone::Keep } else { WhenGone::Forget },
        };
        Self { config: config.clone(), answers: Answers::new(terms), resolver: Resolver::of(&config.dns) }
    }

    /// `port`: of all addresses of a name.
    async fn find(&self, name: &str, port: Option<&str>) -> Answer<UpstreamAddress> {
        let dns = &self.config.dns;
        match (&self.config.records, port) {
            (DynamicRecords::Addresses { families, .. }, Some(port)) => {
                let number = port.parse().ok().filter(|port| *port != 0);
                let number = number.ok_or_else(|| Unanswered::failed(format!("`{port}` is no port")))?;
                let ask = || addresses(name.to_owned(), number, *families, dns.clone()).boxed_local();
                self.answers.get(&format!("{name}:{port}"), ask).await
            }
            _ => self.answers.get(name, || services(name.to_owned(), dns.clone()).boxed_local()).await,
        }
    }
}

async fn addresses(
    name: String,
    port: u16,
    families: AddressFamilies,
    dns: DnsServers,
) -> Answer<UpstreamAddress> {
    let found = lookup::addresses(&name, families, &dns).await?;
    Ok(found.into_iter().map(|ip| UpstreamAddress::Tcp { host: ip.to_string(), port }).collect())
}

async fn services(name: String, dns: DnsServers) -> Answer<UpstreamAddress> {
    let servers = in_order(lookup::services(&name, &dns).await?, &Random::default());
    let address = |server: SRV| {
        let host = server.target.to_ascii();
        UpstreamAddress::parse(&format!("{}:{}", host.trim_end_matches('.'), server.port))
    };
    let found: Rc<[_]> = servers.into_iter().filter_map(address).collect();
    if found.is_empty() { Err(Unanswered::failed("what DNS names are no hosts")) } else { Ok(found) }
}

/// The order in which they are to be tried (RFC 2782): by priority, and among equals by chance, as their weights have it.
fn in_order(mut servers: Vec<SRV>, random: &Random) -> Vec<SRV> {
    servers.sort_by_key(|server| (server.priority, server.weight));
    let mut ordered = Vec::with_capacity(servers.len());
    while let Some(priority) = servers.first().map(|server| server.priority) {
        let equals = servers.iter().take_while(|server| server.priority == priority);
        let total: usize = equals.map(|server| usize::from(server.weight)).sum();
        let mut chance = random.below(total + 1);
        let chosen = servers.iter().position(|server| {
            let is_it = chance <= usize::from(server.weight);
            chance = chance.saturating_sub(usize::from(server.weight));
            is_it
        });
        ordered.push(servers.remove(chosen.unwrap_or(0)));
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_resolver::proto::rr::Name;

    fn order(servers: &[(u16, u16)], random: &Random) -> Vec<(u16, u16)> {
        let server = |(priority, weight): &(u16, u16)| SRV::new(*priority, *weight, 1, Name::root());
        let ordered = in_order(servers.iter().map(server).collect(), random);
        ordered.into_iter().map(|server| (server.priority, server.weight)).collect()
    }

    #[test]
    fn servers_come_by_priority_and_then_by_weight() {
        let random = Random::default();
        let servers = [(20, 0), (10, 1), (10, 9), (5, 0)];
        let mut heavy_first = 0;
        for _ in 0..1000 {
            let ordered = order(&servers, &random);
            assert!(ordered[0] == (5, 0) && ordered[3] == (20, 0), "{ordered:?}");
            heavy_first += u32::from(ordered[1] == (10, 9));
        }
        assert!((750..1000).contains(&heavy_first), "{heavy_first}");
        assert_eq!(order(&[], &random), []);
    }
}
