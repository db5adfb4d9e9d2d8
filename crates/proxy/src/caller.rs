//! For whom a connection to an upstream is made, and how the upstream is told (`proxy_protocol`).

use ppp::{v1, v2};
use regent_config::ProxyProtocolVersion;
use regent_handlers::Exchange;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// This server itself, or a client without an address, as on a Unix socket.
    Unknown,
    Client {
        source: SocketAddr,
        /// Of the same family. 0: not known.
        destination: SocketAddr,
    },
}

impl Caller {
    /// The client, as a trusted proxy may tell it. A port that nobody has told is 0, as in Caddy.
    pub fn of(exchange: &Exchange) -> Self {
        let Some(ip) = exchange.client_ip() else { return Self::Unknown };
        let connection = &exchange.connection;
        let port = match exchange.forwarded() {
            Some(forwarded) => forwarded.port,
            None => connection.remote.map(|remote| remote.port()),
        };
        Self::client(SocketAddr::new(ip, port.unwrap_or(0)), connection.local)
    }

    fn client(source: SocketAddr, local: Option<SocketAddr>) -> Self {
        let source = SocketAddr::new(source.ip().to_canonical(), source.port());
        let local = local.map(|local| SocketAddr::new(local.ip().to_canonical(), local.port()));
        let nowhere = match source {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let destination = local.filter(|local| local.is_ipv4() == source.is_ipv4());
        Self::Client { source, destination: destination.unwrap_or(SocketAddr::new(nowhere, 0)) }
    }

    /// What comes before anything else on the connection.
    pub fn header(self, version: ProxyProtocolVersion) -> io::Result<Vec<u8>> {
        match version {
            ProxyProtocolVersion::V1 => Ok(self.line().to_string().into_bytes()),
            ProxyProtocolVersion::V2 => self.binary(),
        }
    }

    fn line(self) -> v1::Addresses {
        match self {
            Self::Unknown => v1::Addresses::Unknown,
            Self::Client { source, destination } => (source, destination).into(),
        }
    }

    fn binary(self) -> io::Result<Vec<u8>> {
        let (command, protocol, addresses) = match self {
            Self::Unknown => (v2::Command::Local, v2::Protocol::Unspecified, v2::Addresses::Unspecified),
            Self::Client { source, destination } => {
                (v2::Command::Proxy, v2::Protocol::Stream, (source, destination).into())
            }
        };
        v2::Builder::with_addresses(v2::Version::Two | command, protocol, addresses).build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(source: &str, local: Option<&str>) -> Caller {
        Caller::client(source.parse().unwrap(), local.map(|local| local.parse().unwrap()))
    }

    fn line(caller: Caller) -> String {
        String::from_utf8(caller.header(ProxyProtocolVersion::V1).unwrap()).unwrap()
    }

    #[test]
    fn lines_name_both_ends() {
        let mapped = client("[::ffff:10.0.0.1]:5", Some("[::ffff:10.0.0.2]:80"));
        assert_eq!(line(mapped), "PROXY TCP4 10.0.0.1 10.0.0.2 5 80\r\n");
        assert_eq!(line(client("[::1]:5", None)), "PROXY TCP6 ::1 :: 5 0\r\n");
        assert_eq!(line(client("10.0.0.1:5", Some("[::1]:80"))), "PROXY TCP4 10.0.0.1 0.0.0.0 5 0\r\n");
        assert_eq!(line(Caller::Unknown), "PROXY UNKNOWN\r\n");
    }

    #[test]
    fn binary_headers_are_as_the_protocol_has_them() {
        let of = |caller: Caller| caller.header(ProxyProtocolVersion::V2).unwrap();
        let signature = b"\r\n\r\n\0\r\nQUIT\n";
        let header = of(client("10.0.0.1:5", Some("10.0.0.2:80")));
        let expected = [0x21, 0x11, 0, 12, 10, 0, 0, 1, 10, 0, 0, 2, 0, 5, 0, 80];
        assert_eq!(header, [&signature[..], &expected].concat());
        assert_eq!(of(Caller::Unknown), [&signature[..], &[0x20, 0, 0, 0]].concat());
        assert_eq!(of(client("[::1]:5", None)).len(), 16 + 36);
    }
}
