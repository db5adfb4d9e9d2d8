//! The addresses of names, looked up off the I/O thread and kept for a while.

use crate::answers::{Answer, Answers, Terms, WhenGone};
use crate::lookup::{self, Unanswered};
use futures_util::FutureExt;
use regent_config::{AddressFamilies, DnsServers, ProxyTransport};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

/// The system's resolver does not say how long addresses are good for, nor whether a name is gone.
const TERMS: Terms = Terms {
    fresh: Duration::from_secs(10),
    overlap: Duration::ZERO,
    usable: Duration::from_secs(300),
    when_gone: WhenGone::Keep,
};

/// Looks names up, each once at a time.
pub(crate) struct Resolver {
    dns: DnsServers,
    names: Rc<Answers<IpAddr>>,
}

impl Resolver {
    /// One that asks these servers; by default, as everybody on this machine does.
    pub fn of(dns: &DnsServers) -> Rc<Self> {
        Rc::new(Self { dns: dns.clone(), names: Answers::new(TERMS) })
    }

    /// `default`: one that asks as everybody does.
    pub fn for_transport(transport: &ProxyTransport, default: &Rc<Self>) -> Rc<Self> {
        if transport.dns.is_default() { Rc::clone(default) } else { Self::of(&transport.dns) }
    }

    /// The addresses of a host, at least one. The empty host is this machine.
    pub async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let with_port = |ip: &IpAddr| SocketAddr::new(*ip, port);
        if host.is_empty() {
            let ips = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            return Ok(ips.iter().map(with_port).collect());
        }
        if let Ok(ip) = host.parse() {
            return Ok(vec![with_port(&ip)]);
        }
        let ask = || look_up(host.to_owned(), self.dns.clone()).boxed_local();
        let found =
            self.names.get(host, ask).await.map_err(|why| io::Error::other(format!("{host}: {why}")))?;
        Ok(found.iter().map(with_port).collect())
    }
}

async fn look_up(host: String, dns: DnsServers) -> Answer<IpAddr> {
    if !dns.is_default() {
        return lookup::addresses(&host, AddressFamilies::Both, &dns).await.map(Into::into);
    }
    // The runtime does it on a thread that may wait.
    let found = tokio::net::lookup_host((host.as_str(), 0)).await.map_err(Unanswered::failed)?;
    let mut ips: Vec<IpAddr> = Vec::new();
    for address in found {
        if !ips.contains(&address.ip()) {
            ips.push(address.ip());
        }
    }
    if ips.is_empty() { Err(Unanswered::Gone) } else { Ok(ips.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_need_no_look_up() {
        // A server that nobody answers at.
        let dns = DnsServers { servers: vec!["192.0.2.1:53".parse().unwrap()], timeout: None };
        let resolver = Resolver::of(&dns);
        let addresses = |found: io::Result<Vec<SocketAddr>>| -> Vec<String> {
            found.unwrap().iter().map(ToString::to_string).collect()
        };
        assert_eq!(addresses(resolver.addresses("", 1).await), ["127.0.0.1:1", "[::1]:1"]);
        assert_eq!(addresses(resolver.addresses("::2", 3).await), ["[::2]:3"]);
    }

    #[tokio::test]
    async fn names_are_those_of_the_system() {
        let resolver = Resolver::of(&DnsServers::default());
        let (first, second) =
            tokio::join!(resolver.addresses("localhost", 1), resolver.addresses("localhost", 2));
        assert!(first.unwrap()[0].ip().is_loopback() && second.unwrap()[0].port() == 2);
    }
}
