//! What a server says about where it is.

use regent_config::Server;
use std::net::SocketAddr;

/// More hosts than these are only counted.
const SHOWN_HOSTS: usize = 8;

/// What is served at a listening address.
pub struct Served {
    scheme: Scheme,
    /// In the order in which requests are compared with them.
    hosts: Vec<String>,
    any_host: AnyHost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

/// Whether there is a site for the hosts that no other site has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnyHost {
    Served,
    Refused,
}

impl Served {
    pub fn new(server: &Server) -> Self {
        let mut hosts: Vec<String> = Vec::new();
        for host in server.sites.iter().flat_map(|site| &site.hosts) {
            if !hosts.contains(host) {
                hosts.push(host.clone());
            }
        }
        let any_host = server.sites.iter().any(|site| site.hosts.is_empty());
        Self {
            scheme: if server.tls.is_some() { Scheme::Https } else { Scheme::Http },
            hosts,
            any_host: if any_host { AnyHost::Served } else { AnyHost::Refused },
        }
    }

    /// As a browser on this machine reaches it, where hosts that are served have its address.
    pub fn urls(&self, address: &SocketAddr) -> Vec<String> {
        let shown = self.hosts.iter().take(SHOWN_HOSTS);
        let mut urls: Vec<_> = shown.map(|host| self.scheme.url(host, address.port())).collect();
        if self.hosts.len() > SHOWN_HOSTS {
            urls.push(format!("{} more", self.hosts.len() - SHOWN_HOSTS));
        }
        if self.any_host == AnyHost::Served {
            let url = local_url(self.scheme, address);
            if !urls.contains(&url) {
                urls.push(url);
            }
        }
        urls
    }
}

impl Scheme {
    /// Without the port if it is the scheme's own.
    fn url(self, host: &str, port: u16) -> String {
        let (scheme, own_port) = match self {
            Self::Http => ("http", 80),
            Self::Https => ("https", 443),
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        if port == own_port { format!("{scheme}://{host}") } else { format!("{scheme}://{host}:{port}") }
    }
}

/// As a browser on this machine reaches a site for any host.
pub fn local_url(scheme: Scheme, address: &SocketAddr) -> String {
    let ip = address.ip();
    let host = if ip.is_unspecified() { "localhost".to_owned() } else { ip.to_string() };
    scheme.url(&host, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::Environment;
    use std::collections::BTreeMap;
    use std::path::Path;

    /// The URLs of each listening address.
    fn urls(caddyfile: &str) -> Vec<String> {
        let environment = Environment { variables: BTreeMap::new(), current_dir: "/srv".into() };
        let loaded = regent_config::parse("Caddyfile", caddyfile, Path::new(""), &environment);
        let servers = loaded.unwrap_or_else(|errors| panic!("{errors}")).config.servers;
        let urls = |server: &Server| {
            let regent_config::Listen::Tcp(address) = &server.listen else { panic!("it is no socket") };
            Served::new(server).urls(address).join(" ")
        };
        servers.iter().map(urls).collect()
    }

    #[test]
    fn hosts_are_named_with_their_scheme() {
        assert_eq!(urls("localhost {\n}"), ["https://localhost", "http://localhost"]);
        assert_eq!(
            urls("https://app.localhost:8443, localhost:8443 {\n}")[0],
            "https://app.localhost:8443 https://localhost:8443"
        );
        assert_eq!(urls("https://[::1]:8443 {\n}")[0], "https://[::1]:8443");
    }

    #[test]
    fn a_site_for_any_host_has_the_name_of_the_address() {
        assert_eq!(urls(":8080 {\n}"), ["http://localhost:8080"]);
        assert_eq!(urls("http:// {\n}"), ["http://localhost"]);
        assert_eq!(urls("http://:8080 {\nbind 127.0.0.2\n}"), ["http://127.0.0.2:8080"]);
        assert_eq!(urls("http://localhost {\n}\n:80 {\n}"), ["http://localhost"]);
        assert_eq!(urls("http://a.test {\n}\n:80 {\n}"), ["http://a.test http://localhost"]);
    }

    #[test]
    fn many_hosts_are_counted() {
        let hosts: Vec<_> = (10..30).map(|number| format!("http://h{number}.test")).collect();
        let line = &urls(&format!("{} {{\n}}", hosts.join(", ")))[0];
        assert!(line.starts_with("http://h10.test http://h11.test") && line.ends_with(" 12 more"), "{line}");
    }
}
