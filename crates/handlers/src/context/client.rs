//! Who the client of a request is, where a trusted proxy passes it on.

use crate::error::BuildError;
use http::{HeaderMap, HeaderName};
use regent_config::{self as config, ClientIpReading, Networks};
use regent_exchange::Connection;
use std::net::{IpAddr, SocketAddr};

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");

/// What a trusted proxy says of its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    /// `None`: it says none, and has none itself.
    pub address: Option<IpAddr>,
    /// The client's port, where it stands with the address.
    pub port: Option<u16>,
    /// `None`: nothing is said of it.
    pub scheme: Option<Scheme>,
    /// The port that the client has connected to.
    pub server_port: Option<u16>,
}

/// What a client speaks with its proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

/// Compiled `trusted_proxies`.
#[derive(Debug)]
pub(crate) struct TrustedProxies {
    networks: Networks,
    unix: bool,
    reading: ClientIpReading,
    headers: Vec<HeaderName>,
}

impl TrustedProxies {
    pub(crate) fn compile(proxies: &config::TrustedProxies) -> Result<Self, BuildError> {
        let name = |name: &String| {
            HeaderName::try_from(name.as_str()).map_err(|_| BuildError::HeaderName(name.clone()))
        };
        Ok(Self {
            networks: Networks::new(&proxies.ranges),
            unix: proxies.unix,
            reading: proxies.reading,
            headers: proxies.headers.iter().map(name).collect::<Result<_, _>>()?,
        })
    }

    /// `None`: the connection is not one of a trusted proxy.
    pub(crate) fn forwarded(&self, connection: &Connection, headers: &HeaderMap) -> Option<Forwarded> {
        let peer = connection.remote.map(|remote| remote.ip());
        if !peer.map_or(self.unix, |peer| self.networks.contain(peer)) {
            return None;
        }
        let named = match self.reading {
            ClientIpReading::LeftMost => self.left_most(headers),
            ClientIpReading::RightMostUntrusted => self.right_most_untrusted(headers),
        };
        let (address, port) = match named {
            Some((address, port)) => (Some(address), port),
            None => (peer, connection.remote.map(|remote| remote.port())),
        };
        Some(Forwarded {
            address,
            port,
            scheme: self.listed(headers, &FORWARDED_PROTO).and_then(|value| Scheme::parse(&value)),
            server_port: self.listed(headers, &FORWARDED_PORT).and_then(|value| value.parse().ok()),
        })
    }

    fn left_most(&self, headers: &HeaderMap) -> Option<(IpAddr, Option<u16>)> {
        self.headers.iter().find_map(|name| elements(headers, name).find_map(address))
    }

    fn right_most_untrusted(&self, headers: &HeaderMap) -> Option<(IpAddr, Option<u16>)> {
        let is_client = |found: &(IpAddr, Option<u16>)| !self.networks.contain(found.0);
        self.headers.iter().find_map(|name| {
            let all: Vec<_> = elements(headers, name).collect();
            all.into_iter().rev().filter_map(address).find(is_client)
        })
    }

    /// The value of a field to which proxies may have appended, as to that with the addresses.
    fn listed(&self, headers: &HeaderMap, name: &HeaderName) -> Option<String> {
        let mut all = elements(headers, name).map(str::trim).filter(|value| !value.is_empty());
        let value = match self.reading {
            ClientIpReading::LeftMost => all.next(),
            ClientIpReading::RightMostUntrusted => all.last(),
        };
        value.map(str::to_ascii_lowercase)
    }
}

impl Forwarded {
    /// Whether the client speaks TLS; of a proxy that does not say, it is as the proxy does itself.
    pub fn is_https(&self, connection: &Connection) -> bool {
        self.scheme.map_or(connection.tls.is_some(), |scheme| scheme == Scheme::Https)
    }
}

impl Scheme {
    fn parse(value: &str) -> Option<Self> {
        match value {
            "http" | "ws" => Some(Self::Http),
            "https" | "wss" => Some(Self::Https),
            _ => None,
        }
    }
}

/// All values of a field, taken apart at their commas. A member that is no text is left out, and no other with it: the client may
/// have sent that, and a proxy the others.
fn elements<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let members = headers.get_all(name).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    members.filter_map(|member| str::from_utf8(member).ok())
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:80`, with a zone or without.
fn address(text: &str) -> Option<(IpAddr, Option<u16>)> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let bare = bare.split_once('%').map_or(bare, |(address, _)| address);
    match bare.parse::<IpAddr>() {
        Ok(address) => Some((address.to_canonical(), None)),
        Err(_) => {
            let socket: SocketAddr = text.parse().ok()?;
            Some((socket.ip().to_canonical(), Some(socket.port())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClientIpReading::{LeftMost, RightMostUntrusted};

    fn proxies(reading: ClientIpReading, headers: &[&str]) -> TrustedProxies {
        let ranges = vec![([10, 0, 0, 0].into(), 8)];
        let headers = headers.iter().map(|&name| name.into()).collect();
        TrustedProxies::compile(&config::TrustedProxies { ranges, unix: false, reading, headers }).unwrap()
    }

    fn fields(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn from(remote: &str) -> Connection {
        Connection { remote: Some(remote.parse().unwrap()), ..Connection::default() }
    }

    fn client(reading: ClientIpReading, field: &str) -> String {
        let headers = fields(&[("x-forwarded-for", field)]);
        let proxies = proxies(reading, &["x-forwarded-for"]);
        let found = proxies.forwarded(&from("10.0.0.1:1"), &headers).unwrap();
        found.address.map(|address| address.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_client_cannot_hide_what_the_proxy_has_appended() {
        for hostile in [&b"\xff, 192.0.2.9"[..], b"192.0.2.1\xe9, 192.0.2.9", b"\xc3\x28,192.0.2.9 "] {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", http::HeaderValue::from_bytes(hostile).unwrap());
            let proxies = proxies(RightMostUntrusted, &["x-forwarded-for"]);
            let found = proxies.forwarded(&from("10.0.0.1:1"), &headers).unwrap();
            assert_eq!(found.address, Some([192, 0, 2, 9].into()), "{hostile:?}");
        }
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let headers = fields(&[("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "https")]);
        let proxies = proxies(LeftMost, &["x-forwarded-for"]);
        assert_eq!(proxies.forwarded(&from("11.0.0.1:1"), &headers), None);
        assert_eq!(proxies.forwarded(&Connection::default(), &headers), None, "a Unix socket");
        let found = proxies.forwarded(&from("[::ffff:10.0.0.1]:1"), &headers).unwrap();
        assert_eq!(found.address, Some([192, 0, 2, 1].into()));
        assert_eq!(found.scheme, Some(Scheme::Https));
        let unix = TrustedProxies { unix: true, ..proxies };
        assert!(unix.forwarded(&Connection::default(), &headers).is_some());
    }

    #[test]
    fn the_first_address_of_a_list_or_the_last_that_is_no_proxy() {
        let list = "unknown, 192.0.2.1, 198.51.100.2:4711 , 10.0.0.9";
        assert_eq!(client(LeftMost, list), "192.0.2.1");
        assert_eq!(client(RightMostUntrusted, list), "198.51.100.2");
        assert_eq!(client(LeftMost, "[2001:db8::1]:80"), "2001:db8::1");
        assert_eq!(client(LeftMost, "fe80::1%eth0"), "fe80::1");
        assert_eq!(client(LeftMost, "[2001:db8::1]"), "2001:db8::1");
        for (reading, field) in [(LeftMost, "nobody,,"), (RightMostUntrusted, "10.0.0.2, 10.0.0.3")] {
            assert_eq!(client(reading, field), "10.0.0.1", "the proxy itself");
        }
    }

    #[test]
    fn the_first_field_that_has_an_address_counts() {
        let headers =
            fields(&[("x-real-ip", "-"), ("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", "192.0.2.2")]);
        let proxies = proxies(RightMostUntrusted, &["x-real-ip", "x-forwarded-for"]);
        let found = proxies.forwarded(&from("10.0.0.1:1"), &headers).unwrap();
        assert_eq!((found.address, found.port), (Some([192, 0, 2, 2].into()), None));
    }

    #[test]
    fn schemes_and_ports() {
        let headers = fields(&[("x-forwarded-proto", "HTTPS, http"), ("x-forwarded-port", "8443")]);
        let of = |reading| proxies(reading, &[]).forwarded(&from("10.0.0.1:1"), &headers).unwrap();
        assert_eq!(of(LeftMost).scheme, Some(Scheme::Https));
        assert_eq!(of(RightMostUntrusted).scheme, Some(Scheme::Http));
        assert_eq!(of(LeftMost).server_port, Some(8443));
        let strange = fields(&[("x-forwarded-proto", "gopher"), ("x-forwarded-port", "99999")]);
        let found = proxies(LeftMost, &[]).forwarded(&from("10.0.0.1:1"), &strange).unwrap();
        assert_eq!((found.scheme, found.server_port), (None, None));
        assert!(!found.is_https(&from("10.0.0.1:1")));
    }
}
