//! Questions to DNS about the record of a challenge: which zone it is in, and whether the world sees it.

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Of DNS.
const PORT: u16 = 53;
/// Of one question to one server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// Servers of a zone that are asked. RFC 1912 §2.8 advises against more than seven.
const MOST_SERVERS: usize = 16;

/// Who is asked: servers of the configuration, or those of the system.
#[derive(Debug, Clone)]
pub(super) struct Lookup {
    resolver: TokioResolver,
    asks_own_servers: bool,
    /// Of the servers of a zone.
    port: u16,
}

impl Lookup {
    pub async fn new(servers: &[SocketAddr]) -> Result<Self, String> {
        let servers = servers.to_vec();
        let asks_own_servers = !servers.is_empty();
        // It reads files.
        let made = tokio::task::spawn_blocking(move || resolver_of(&servers)).await;
        let made = made.map_err(|error| error.to_string())?;
        Ok(Self { resolver: made.map_err(|error| error.to_string())?, asks_own_servers, port: PORT })
    }

    /// The zone that a name is in, with a dot at its end: the closest name above with a SOA record (RFC 1034 §4.2).
    pub async fn zone_of(&self, fqdn: &str) -> Result<String, String> {
        let name = Name::from_ascii(fqdn).map_err(|error| error.to_string())?;
        let mut last = None;
        for candidate in ancestors(&name) {
            match self.resolver.lookup(candidate.clone(), RecordType::SOA).await {
                // What a CNAME leads to has a SOA of another name.
                Ok(answer) if answer.answers().iter().any(|record| is_soa_of(record, &candidate)) => {
                    return Ok(candidate.to_ascii());
                }
                Err(error) if !error.is_no_records_found() => last = Some(error),
                _ => {}
            }
        }
        Err(match last {
            Some(error) => format!("DNS does not say which zone {fqdn} is in: {error}"),
            None => format!("DNS knows no zone that {fqdn} is in"),
        })
    }

    /// Ends when all servers have the record: those of the configuration, otherwise those of the zone.
    pub async fn until_seen(
        &self,
        zone: &str,
        fqdn: &str,
        value: &str,
        patience: Duration,
    ) -> Result<(), String> {
        let mut last = "no server was asked".to_owned();
        let looks = async {
            let mut pause = PAUSES.0;
            loop {
                match self.missing_at(zone, fqdn, value).await {
                    None => return,
                    Some(missing) => last = missing,
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        };
        let seen = tokio::time::timeout(patience, looks).await;
        seen.map_err(|_| format!("{last} after {} s", patience.as_secs()))
    }

    /// Where the record is not seen, and why; `None`: all have it.
    async fn missing_at(&self, zone: &str, fqdn: &str, value: &str) -> Option<String> {
        if self.asks_own_servers {
            return missing(&self.resolver, "one of `resolvers`", fqdn, value).await;
        }
        let servers = match self.servers_of(zone).await {
            Ok(servers) => servers,
            Err(error) => return Some(format!("the name servers of {zone} are not known: {error}")),
        };
        for (name, addresses) in servers {
            let missing = match authoritative(&addresses, self.port) {
                Ok(resolver) => missing(&resolver, &name, fqdn, value).await,
                Err(error) => Some(error.to_string()),
            };
            if missing.is_some() {
                return missing;
            }
        }
        None
    }

    async fn servers_of(&self, zone: &str) -> Result<Vec<(String, Vec<IpAddr>)>, NetError> {
        let answer = self.resolver.lookup(zone, RecordType::NS).await?;
        let mut servers = Vec::new();
        for record in answer.answers().iter().take(MOST_SERVERS) {
            if let RData::NS(server) = &record.data {
                let addresses = self.resolver.lookup_ip(server.0.clone()).await?.iter().collect();
                servers.push((server.0.to_ascii(), addresses));
            }
        }
        if servers.is_empty() { Err("DNS names none".into()) } else { Ok(servers) }
    }
}

/// From the name itself to that below the root.
fn ancestors(name: &Name) -> impl Iterator<Item = Name> {
    (1..=name.num_labels()).rev().map(|labels| name.trim_to(usize::from(labels)))
}

fn is_soa_of(record: &hickory_resolver::proto::rr::Record, name: &Name) -> bool {
    matches!(record.data, RData::SOA(_)) && record.name == *name
}

async fn missing(resolver: &TokioResolver, server: &str, fqdn: &str, value: &str) -> Option<String> {
    let lacks = || Some(format!("{server} does not have it"));
    match resolver.lookup(fqdn, RecordType::TXT).await {
        Ok(answer) if answer.answers().iter().any(|record| is_text(&record.data, value)) => None,
        Ok(_) => lacks(),
        Err(error) if error.is_no_records_found() => lacks(),
        Err(error) => Some(format!("{server} does not answer ({error})")),
    }
}

fn is_text(data: &RData, value: &str) -> bool {
    matches!(data, RData::TXT(text) if text.txt_data.concat() == value.as_bytes())
}

fn resolver_of(servers: &[SocketAddr]) -> Result<TokioResolver, NetError> {
    match servers {
        [] => {
            let mut builder = TokioResolver::builder_tokio()?;
            let options = builder.options_mut();
            options.cache_size = 0;
            options.timeout = ANSWER_TIMEOUT;
            builder.build()
        }
        servers => of_servers(servers.iter().copied(), true),
    }
}

/// Servers of a zone know it themselves.
fn authoritative(addresses: &[IpAddr], port: u16) -> Result<TokioResolver, NetError> {
    of_servers(addresses.iter().map(|address| SocketAddr::new(*address, port)), false)
}

fn of_servers(servers: impl Iterator<Item = SocketAddr>, recursion: bool) -> Result<TokioResolver, NetError> {
    let config = ResolverConfig::from_parts(None, Vec::new(), servers.map(server).collect());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options = builder.options_mut();
    options.use_hosts_file = ResolveHosts::Never;
    options.recursion_desired = recursion;
    options.cache_size = 0;
    options.timeout = ANSWER_TIMEOUT;
    builder.build()
}

/// Over UDP, and over TCP what is too long for that.
fn server(address: SocketAddr) -> NameServerConfig {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    connections.iter_mut().for_each(|connection| connection.port = address.port());
    NameServerConfig::new(address.ip(), true, connections)
}

#[cfg(test)]
mod tests;
