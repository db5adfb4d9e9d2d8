//! Questions to DNS, without a thread that waits for the answer.

use futures_util::future::join;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{RData, RecordType};
use regent_config::{AddressFamilies, DnsServers};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

/// For an answer, with all that is tried for one.
const LONGEST: Duration = Duration::from_secs(10);
/// Records of an answer that are looked at.
const MOST_RECORDS: usize = 1024;

/// Why there is no answer to go by.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Unanswered {
    /// DNS says so, as of something that is gone.
    #[error("DNS knows no such name, or nothing of the kind about it")]
    Gone,
    /// It says nothing, or nothing of use.
    #[error("{0}")]
    Failed(Rc<str>),
}

impl Unanswered {
    pub fn failed(reason: impl ToString) -> Self {
        Self::Failed(reason.to_string().into())
    }
}

/// The addresses of a name: at least one.
pub(crate) async fn addresses(
    name: &str,
    families: AddressFamilies,
    dns: &DnsServers,
) -> Result<Vec<IpAddr>, Unanswered> {
    let resolver = resolver(dns).await?;
    let ask = |kind| {
        records(&resolver, name, kind, |data| match data {
            RData::A(address) => Some(IpAddr::V4(address.0)),
            RData::AAAA(address) => Some(IpAddr::V6(address.0)),
            _ => None,
        })
    };
    match families {
        AddressFamilies::Ipv4 => ask(RecordType::A).await,
        AddressFamilies::Ipv6 => ask(RecordType::AAAA).await,
        AddressFamilies::Both => match join(ask(RecordType::A), ask(RecordType::AAAA)).await {
            (Ok(v4), Ok(v6)) => Ok([v4, v6].concat()),
            (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
            // A name is gone only if both answers say so.
            (Err(Unanswered::Gone), Err(other)) | (Err(other), Err(_)) => Err(other),
        },
    }
}

/// The servers of a service (RFC 2782): at least one.
pub(crate) async fn services(name: &str, dns: &DnsServers) -> Result<Vec<SRV>, Unanswered> {
    let resolver = resolver(dns).await?;
    let found = records(&resolver, name, RecordType::SRV, |data| match data {
        // Of a service that is decidedly not there, the root is the server.
        RData::SRV(server) if !server.target.is_root() && server.port != 0 => Some(server.clone()),
        _ => None,
    });
    found.await
}

async fn records<T>(
    resolver: &TokioResolver,
    name: &str,
    kind: RecordType,
    read: impl Fn(&RData) -> Option<T>,
) -> Result<Vec<T>, Unanswered> {
    let looked_up = tokio::time::timeout(LONGEST, resolver.lookup(name, kind)).await;
    let answer = looked_up.map_err(|_| Unanswered::failed("DNS does not answer"))?.map_err(unanswered)?;
    let found = answer.answers().iter().filter_map(|record| read(&record.data));
    let found: Vec<T> = found.take(MOST_RECORDS).collect();
    if found.is_empty() { Err(Unanswered::Gone) } else { Ok(found) }
}

fn unanswered(error: NetError) -> Unanswered {
    match error.is_no_records_found() {
        true => Unanswered::Gone,
        false => Unanswered::failed(error),
    }
}

/// Made anew for each question, of which there are few: what the system says may have changed, and nothing is kept open.
async fn resolver(dns: &DnsServers) -> Result<TokioResolver, Unanswered> {
    let dns = dns.clone();
    // It reads files.
    let made = tokio::task::spawn_blocking(move || make(&dns)).await.map_err(Unanswered::failed)?;
    made.map_err(Unanswered::failed)
}

fn make(dns: &DnsServers) -> Result<TokioResolver, NetError> {
    let mut builder = match dns.servers.as_slice() {
        [] => TokioResolver::builder_tokio()?,
        servers => {
            let servers = servers.iter().map(server).collect();
            let config = ResolverConfig::from_parts(None, Vec::new(), servers);
            let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
            builder.options_mut().use_hosts_file = ResolveHosts::Never;
            builder
        }
    };
    let options = builder.options_mut();
    // Whoever asks keeps what is answered, for as long as is configured.
    options.cache_size = 0;
    if let Some(timeout) = dns.timeout {
        options.timeout = timeout;
    }
    builder.build()
}

/// Over UDP, and over TCP what is too long for that.
fn server(address: &SocketAddr) -> NameServerConfig {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    connections.iter_mut().for_each(|connection| connection.port = address.port());
    NameServerConfig::new(address.ip(), true, connections)
}
