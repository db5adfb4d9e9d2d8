//! The servers of a file: where its sites listen, and which protocols are spoken there.

use super::{Way, sorted};
use crate::context::Context;
use crate::directives::bind::{Bound, Interface};
use crate::global::{GlobalOptions, ServerBlock};
use crate::model::{HttpProtocol, Listen, Purpose, Server, ServerOptions, ServerTls, Site, SniHost, UdpPort};
use crate::problems::error;
use regent_caddyfile::Line;

/// What `bind` says of protocols, by where it listens.
#[derive(Default)]
pub(super) struct BoundProtocols(Vec<(Listen, Vec<HttpProtocol>)>);

impl BoundProtocols {
    /// Of the lines of a block that have just been read, or of those for blocks that have none.
    pub fn note(&mut self, cx: &mut Context<'_>, options: &GlobalOptions, binds: &[&Line], ways: &[Way<'_>]) {
        let own = std::mem::take(&mut cx.bound);
        let said = if binds.is_empty() { options.default_bound.clone() } else { own };
        let is_http3 = |bound: &Bound| bound.protocols.contains(&HttpProtocol::H3);
        // The socket for datagrams that is passed beside the others.
        let has_datagrams = said.iter().any(|bound| bound.interface.is_none() && is_http3(bound));
        for bound in &said {
            let Some(interface) = &bound.interface else { continue };
            let mut protocols = bound.protocols.clone();
            if has_datagrams && !is_http3(bound) {
                protocols.push(HttpProtocol::H3);
            }
            for way in ways.iter().filter(|way| is_at(interface, &way.wide)) {
                match self.0.iter().find(|(listen, _)| *listen == way.wide) {
                    None => self.0.push((way.wide.clone(), protocols.clone())),
                    Some((_, known)) if *known == protocols => {}
                    Some(_) => {
                        let message = "another `bind` says other protocols for this address";
                        cx.errors.push(error(&bound.place, message));
                    }
                }
            }
        }
    }

    fn apply(&self, listen: &Listen, options: &mut ServerOptions) {
        if let Some((_, protocols)) = self.0.iter().find(|(known, _)| known == listen) {
            options.protocols.clone_from(protocols);
            let asks = protocols.contains(&HttpProtocol::H3);
            options.udp_port = if asks { UdpPort::Required } else { UdpPort::Optional };
        }
    }
}

fn is_at(interface: &Interface, listen: &Listen) -> bool {
    match (interface, listen) {
        (Interface::Ip(ip), Listen::Tcp(address)) => address.ip() == *ip,
        (Interface::Unix(socket), Listen::Unix(other)) => socket.path == other.path,
        (Interface::Descriptor(number), Listen::Descriptor(other)) => number == other,
        _ => false,
    }
}

/// One for each listening address, its sites in the order in which they are tried.
pub(super) fn servers(
    options: &GlobalOptions,
    bound: &BoundProtocols,
    sites: Vec<(Listen, Site)>,
) -> Vec<Server> {
    let mut servers: Vec<Server> = Vec::new();
    for (listen, site) in sites {
        match servers.iter_mut().find(|server| server.listen == listen) {
            Some(server) => server.sites.push(site),
            None => {
                let mut options = options.servers.of(&listen).options.clone();
                bound.apply(&listen, &mut options);
                let purpose = Purpose::default();
                servers.push(Server { listen, tls: None, options, sites: vec![site], purpose });
            }
        }
    }
    for server in &mut servers {
        server.tls = server_tls(options.servers.of(&server.listen), &server.sites);
    }
    servers.into_iter().map(sorted).collect()
}

/// `None` for plain HTTP, which all sites of a server have or none.
fn server_tls(block: &ServerBlock, sites: &[Site]) -> Option<ServerTls> {
    let mut secured = sites.iter().filter_map(|site| site.tls.as_ref()).peekable();
    secured.peek()?;
    let default = if secured.any(|tls| tls.client_auth.is_some()) { SniHost::Strict } else { SniHost::Free };
    Some(ServerTls { sni_host: block.sni_host.unwrap_or(default) })
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::HttpProtocol::{H1, H2, H3};

    fn protocols(text: &str) -> Vec<(String, Vec<crate::HttpProtocol>)> {
        let servers = config(text).servers.into_iter();
        servers.map(|server| (format!("{:?}", server.listen), server.options.protocols)).collect()
    }

    #[test]
    fn protocols_of_a_bind_are_those_of_its_address() {
        let text = "{\nservers {\nprotocols h1 h2\n}\n}\nhttp://:81 {\nbind 127.0.0.1 {\nprotocols h1\n}\nbind ::1\n}\n\
                    http://a:81 {\nbind 127.0.0.1 {\nprotocols h1\n}\n}";
        let expected =
            [("Tcp(127.0.0.1:81)".to_owned(), vec![H1]), ("Tcp([::1]:81)".to_owned(), vec![H1, H2])];
        assert_eq!(protocols(text), expected);
        let default = "{\ndefault_bind 127.0.0.1 {\nprotocols h1\n}\n}\n:81 {\n}\n:82 {\nbind ::1\n}";
        assert_eq!(protocols(default)[0].1, [H1]);
        assert_eq!(protocols(default)[1].1, [H1, H2, H3]);
    }

    #[test]
    fn a_socket_for_datagrams_brings_http3() {
        let text = "https://localhost {\ntls internal\nbind fd/3 {\nprotocols h1 h2\n}\nbind fdgram/4 {\nprotocols h3\n}\n}";
        assert_eq!(protocols(text)[0], ("Descriptor(3)".to_owned(), vec![H1, H2, H3]));
    }

    #[test]
    fn mistakes() {
        for (text, message) in [
            (":81 {\nbind ::1 {\nprotocols h2\n}\n}", "add `h1`"),
            (":81 {\nbind ::1 {\nprotocol h1\n}\n}", "did you mean `protocols`?"),
            (
                "http://a:81 {\nbind ::1 {\nprotocols h1\n}\n}\nhttp://b:81 {\nbind ::1 {\nprotocols h1 h2c\n}\n}",
                "says other protocols",
            ),
        ] {
            let found = file_errors(text);
            assert!(found.len() == 1 && found[0].contains(message), "{found:?}");
        }
    }
}
