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
/// Servers of a zone that are asked, and addresses of each. RFC 1912 §2.8 advises against more than seven.
const MOST_SERVERS: usize = 16;

/// Who is asked: servers of the configuration, or those of the system.
#[derive(Debug, Clone)]
pub(super) struct Lookup {
    resolver: TokioResolver,
    /// Of the servers of a zone.
    port: u16,
}

/// What a server says of a record.
enum Answer {
    There,
    Missing(String),
    None(String),
}

impl Lookup {
    pub async fn new(servers: &[SocketAddr]) -> Result<Self, String> {
        let servers = servers.to_vec();
        // It reads files.
        let made = tokio::task::spawn_blocking(move || resolver_of(&servers)).await;
        let made = made.map_err(|error| error.to_string())?;
        Ok(Self { resolver: made.map_err(|error| error.to_string())?, port: PORT })
    }

    /// The zone that a name is in, with a dot at its end: the closest above it with a SOA record (RFC 1034 §4.2). Nobody is asked
    /// for the name itself, which is not there yet: servers that keep answers would keep that one (RFC 2308), and not see it
    /// later.
    pub async fn zone_of(&self, fqdn: &str) -> Result<String, String> {
        let name = Name::from_ascii(fqdn).map_err(|error| error.to_string())?;
        for candidate in zones_above(&name) {
            match self.resolver.lookup(candidate.clone(), RecordType::SOA).await {
                // What a CNAME leads to has a SOA of another name.
                Ok(answer) if answer.answers().iter().any(|record| is_soa_of(record, &candidate)) => {
                    return Ok(candidate.to_ascii());
                }
                // A zone further up would be the wrong one, if this is one.
                Err(error) if !error.is_no_records_found() => {
                    return Err(format!("DNS does not say whether {candidate} is a zone: {error}"));
                }
                _ => {}
            }
        }
        Err(format!("DNS knows no zone that {fqdn} is in"))
    }

    /// Ends when all servers of the zone that answer have the record. Where none can be reached, those have their say that were
    /// asked for them.
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
                match self.look(zone, fqdn, value).await {
                    Answer::There => return,
                    Answer::Missing(reason) | Answer::None(reason) => last = reason,
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        };
        let seen = tokio::time::timeout(patience, looks).await;
        seen.map_err(|_| format!("{last} after {} s", patience.as_secs()))
    }

    async fn look(&self, zone: &str, fqdn: &str, value: &str) -> Answer {
        let mut is_seen = false;
        for name in self.servers_of(zone).await.unwrap_or_default() {
            match self.look_at(&name, fqdn, value).await {
                Answer::There => is_seen = true,
                missing @ Answer::Missing(_) => return missing,
                Answer::None(_) => {}
            }
        }
        match is_seen {
            true => Answer::There,
            false => look_by(&self.resolver, "DNS", fqdn, value).await,
        }
    }

    /// At a server of the zone.
    async fn look_at(&self, name: &Name, fqdn: &str, value: &str) -> Answer {
        let unknown = |error: NetError| Answer::None(error.to_string());
        let addresses: Vec<_> = match self.resolver.lookup_ip(name.clone()).await {
            Ok(addresses) => addresses.iter().take(MOST_SERVERS).collect(),
            Err(error) => return unknown(error),
        };
        match authoritative(&addresses, self.port) {
            Ok(resolver) => look_by(&resolver, &name.to_ascii(), fqdn, value).await,
            Err(error) => unknown(error),
        }
    }

    async fn servers_of(&self, zone: &str) -> Result<Vec<Name>, NetError> {
        let answer = self.resolver.lookup(zone, RecordType::NS).await?;
        let servers = answer.answers().iter().filter_map(|record| match &record.data {
            RData::NS(server) => Some(server.0.clone()),
            _ => None,
        });
        Ok(servers.take(MOST_SERVERS).collect())
    }
}

/// From the closest one to that with two labels: no service has a zone such as `com`.
fn zones_above(name: &Name) -> impl Iterator<Item = Name> {
    (2..usize::from(name.num_labels())).rev().map(|labels| name.trim_to(labels))
}

fn is_soa_of(record: &hickory_resolver::proto::rr::Record, name: &Name) -> bool {
    matches!(record.data, RData::SOA(_)) && record.name == *name
}

async fn look_by(resolver: &TokioResolver, server: &str, fqdn: &str, value: &str) -> Answer {
    let missing = || Answer::Missing(format!("{server} does not have it"));
    match resolver.lookup(fqdn, RecordType::TXT).await {
        Ok(answer) if answer.answers().iter().any(|record| is_text(&record.data, value)) => Answer::There,
        Ok(_) => missing(),
        Err(error) if error.is_no_records_found() => missing(),
        Err(error) => Answer::None(format!("{server} does not answer ({error})")),
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
