//! Where HTTP/3 is spoken: beside TCP, on the UDP port of the same number.

use crate::listen_error::ListenError;
use http::HeaderValue;
use regent_config::{HttpProtocol, Listen, Server, UdpPort};
use regent_net::{Inherited, Neighbours};
use std::net::{SocketAddr, UdpSocket};

/// How long a client may go by what it was told, in seconds: a month, as Caddy says.
const MAX_AGE: u32 = 2_592_000;

/// Where a server that listens here speaks HTTP/3; `None`: nowhere. Behind a balancer that says who the client is, it is spoken only
/// where it is asked for: nobody would say it there.
pub(crate) fn address(server: &Server, listen: &Listen) -> Option<SocketAddr> {
    let Listen::Tcp(address) = listen else { return None };
    let options = &server.options;
    let is_spoken = server.tls.is_some() && options.protocols.contains(&HttpProtocol::H3);
    let is_wanted = options.proxy_protocol.is_none() || options.udp_port == UdpPort::Required;
    (is_spoken && is_wanted).then_some(*address)
}

/// `None`: it cannot be had, and need not be.
pub(crate) fn bind(
    address: SocketAddr,
    neighbours: Neighbours,
    port: UdpPort,
    inherited: &Inherited,
) -> Result<Option<UdpSocket>, ListenError> {
    let bound = match inherited.udp(address) {
        Ok(None) => regent_net::bind_udp(address, neighbours),
        Ok(Some(socket)) => Ok(socket),
        Err(error) => Err(error),
    };
    match (bound, port) {
        (Ok(socket), _) => Ok(Some(socket)),
        (Err(cause), UdpPort::Required) => Err(ListenError::Udp { address, cause }),
        (Err(error), UdpPort::Optional) => {
            tracing::warn!(%error, %address, "no HTTP/3 at this address: its UDP port cannot be had");
            Ok(None)
        }
    }
}

/// The value of `Alt-Svc` (RFC 7838 §3) for responses that do not come by HTTP/3.
pub fn alt_svc(port: u16) -> HeaderValue {
    let value = format!("h3=\":{port}\"; ma={MAX_AGE}");
    HeaderValue::try_from(value).expect("invariant: it is ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::{Config, Environment};
    use std::path::Path;

    fn config(options: &str, site: &str) -> Config {
        let text = format!("{{\nservers {{\n{options}\n}}\n}}\n{site} {{\nrespond a\n}}");
        let environment = Environment::of_process().unwrap();
        regent_config::parse("Caddyfile", &text, Path::new("/"), &environment).unwrap().config
    }

    /// Whether there is HTTP/3 at the first address.
    fn is_spoken(options: &str, site: &str) -> bool {
        let server = &config(options, site).servers[0];
        address(server, &server.listen).is_some()
    }

    #[test]
    fn it_is_spoken_beside_tcp_with_tls() {
        assert!(is_spoken("", "https://localhost:8443"));
        assert!(!is_spoken("", "http://localhost:8080"));
        assert!(!is_spoken("protocols h1 h2", "https://localhost:8443"));
    }

    #[test]
    fn behind_a_balancer_it_has_to_be_asked_for() {
        let wrapper = "listener_wrappers {\nproxy_protocol {\nallow 10.0.0.0/8\n}\n}";
        assert!(!is_spoken(wrapper, "https://localhost:8443"));
        assert!(is_spoken(&format!("protocols h1 h3\n{wrapper}"), "https://localhost:8443"));
    }

    #[test]
    fn clients_are_told_of_the_port() {
        assert_eq!(alt_svc(443), "h3=\":443\"; ma=2592000");
    }
}
