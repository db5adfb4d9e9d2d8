//! `X-Forwarded-*`: what an upstream is told of the client (Caddy's reverseproxy.go, `addForwardedHeaders`).

use http::{HeaderMap, HeaderName, HeaderValue};
use regent_handlers::Exchange;
use std::net::IpAddr;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Whether what a client says of those before it is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    TrustedProxy,
    Anybody,
}

/// Sets the fields. What a client that nobody trusts has sent of them is replaced: an upstream would believe it.
///
/// `trusted`: the ranges of the directive's `trusted_proxies`.
pub(crate) fn set(fields: &mut HeaderMap, exchange: &Exchange, trusted: &[(IpAddr, u8)]) {
    let client = exchange.connection.remote.map(|remote| remote.ip().to_canonical());
    match sender(exchange, client, trusted) {
        Sender::TrustedProxy => add_to(fields, exchange, client),
        Sender::Anybody => replace(fields, exchange, client),
    }
}

fn sender(exchange: &Exchange, client: Option<IpAddr>, trusted: &[(IpAddr, u8)]) -> Sender {
    match client {
        // The whole server trusts it.
        _ if exchange.forwarded().is_some() => Sender::TrustedProxy,
        Some(client) if trusted.iter().any(|range| is_in(client, range)) => Sender::TrustedProxy,
        _ => Sender::Anybody,
    }
}

fn replace(fields: &mut HeaderMap, exchange: &Exchange, client: Option<IpAddr>) {
    let Some(client) = client else {
        // Of a Unix socket nothing is known.
        return [FOR, PROTO, HOST].iter().for_each(|name| drop(fields.remove(name)));
    };
    insert(fields, FOR, client.to_string().as_bytes());
    insert(fields, PROTO, exchange.connection.scheme().as_bytes());
    insert(fields, HOST, exchange.host_port());
}

fn add_to(fields: &mut HeaderMap, exchange: &Exchange, client: Option<IpAddr>) {
    let mut chain: Vec<Vec<u8>> = fields.get_all(FOR).iter().map(|value| value.as_bytes().to_vec()).collect();
    chain.retain(|value| !value.is_empty());
    chain.extend(client.map(|client| client.to_string().into_bytes()));
    insert(fields, FOR, &chain.join(&b", "[..]));
    for (name, own) in [(PROTO, exchange.connection.scheme().as_bytes()), (HOST, exchange.host_port())] {
        let last = fields.get_all(&name).iter().next_back().filter(|value| !value.is_empty()).cloned();
        match last {
            Some(last) => drop(fields.insert(name, last)),
            None => insert(fields, name, own),
        }
    }
}

/// All of it was part of a head before.
fn insert(fields: &mut HeaderMap, name: HeaderName, value: &[u8]) {
    match HeaderValue::from_bytes(value) {
        Ok(value) => drop(fields.insert(name, value)),
        Err(_) => drop(fields.remove(name)),
    }
}

fn is_in(address: IpAddr, (network, length): &(IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    let rest = 128 - u32::from(*length);
    address.is_ipv4() == network.is_ipv4()
        && bits(address).checked_shr(rest).unwrap_or(0) == bits(*network).checked_shr(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use regent_exchange::Connection;

    /// The three fields of a request from 192.0.2.7 with these, in order.
    fn forwarded(sent: &[(&'static str, &'static str)], trusted: &str) -> Vec<String> {
        let mut request = Request::builder().uri("/").header("host", "a.example:81");
        for (name, value) in sent {
            request = request.header(*name, *value);
        }
        let remote = "192.0.2.7:5000".parse().ok();
        let connection = Connection { remote, ..Connection::default() };
        let exchange = Exchange::new(request.body(()).unwrap().into_parts().0, connection);
        let mut fields = exchange.headers.clone();
        set(&mut fields, &exchange, &[(trusted.parse().unwrap(), 24)]);
        let values = [FOR, PROTO, HOST].map(|name| {
            let values = fields.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned());
            values.collect::<Vec<_>>().join("|")
        });
        values.to_vec()
    }

    const LIES: [(&str, &str); 4] = [
        ("x-forwarded-for", "10.0.0.1"),
        ("x-forwarded-for", "10.0.0.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil.example"),
    ];

    #[test]
    fn what_anybody_says_is_replaced() {
        let own = ["192.0.2.7", "http", "a.example:81"];
        assert_eq!(forwarded(&[], "10.0.0.0"), own);
        assert_eq!(forwarded(&LIES, "10.0.0.0"), own);
    }

    #[test]
    fn what_a_trusted_proxy_says_is_added_to() {
        let own = ["192.0.2.7", "http", "a.example:81"];
        assert_eq!(forwarded(&[], "192.0.2.200"), own);
        assert_eq!(
            forwarded(&LIES, "192.0.2.200"),
            ["10.0.0.1, 10.0.0.2, 192.0.2.7", "https", "evil.example"]
        );
    }

    #[test]
    fn ranges_are_of_one_kind_of_address() {
        let is_in = |address: &str, network: &str, length| {
            is_in(address.parse().unwrap(), &(network.parse().unwrap(), length))
        };
        assert!(is_in("10.1.2.3", "10.0.0.0", 8) && !is_in("11.1.2.3", "10.0.0.0", 8));
        assert!(is_in("11.1.2.3", "10.0.0.0", 0) && !is_in("::1", "10.0.0.0", 0));
        assert!(is_in("10.0.0.1", "10.0.0.1", 32) && !is_in("10.0.0.2", "10.0.0.1", 32));
        assert!(is_in("fd00::1", "fd00::", 8) && !is_in("fd00::1", "fd00::2", 128));
    }
}
