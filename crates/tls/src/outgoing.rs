//! Connections to other servers.

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

/// To one address, so that one that is not reachable (often that of IPv6) leaves time for the others.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// Tries all addresses of the host. `host`: a name, or an address without brackets.
///
/// # Errors
/// That of the last address; it names host and address.
pub(crate) async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses = tokio::net::lookup_host((host, port))
        .await
        .map_err(|error| io::Error::other(format!("cannot look up {host}: {error}")))?;
    let mut last = io::Error::other(format!("{host} has no address"));
    for address in addresses {
        match connect_to(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = io::Error::other(format!("cannot connect to {host} ({address}): {error}")),
        }
    }
    Err(last)
}

/// The proxies that the environment names for HTTPS: `HTTPS_PROXY` or `ALL_PROXY`, in small letters too, but for the hosts
/// of `NO_PROXY`, as all programs have them.
#[derive(Debug)]
pub(crate) struct Proxies(Matcher);

impl Proxies {
    pub fn of_environment() -> Self {
        Self(Matcher::from_env())
    }

    /// Connects to where HTTPS is spoken, through a proxy if there is one for this host.
    ///
    /// # Errors
    /// As [`connect`]; or that of the proxy, whose host it names.
    pub async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        match self.proxy_to(host, port) {
            Some((proxy, target)) => connect_through(&proxy, target).await,
            None => connect(host, port).await,
        }
    }

    /// `None`: it is reached directly, as this machine itself always is (Go's `http.ProxyFromEnvironment`).
    fn proxy_to(&self, host: &str, port: u16) -> Option<(Intercept, http::Uri)> {
        let address: Option<IpAddr> = host.parse().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return None;
        }
        let authority = match address {
            Some(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            _ => format!("{host}:{port}"),
        };
        let target =
            http::Uri::builder().scheme("https").authority(authority).path_and_query("/").build().ok()?;
        Some((self.0.intercept(&target)?, target))
    }
}

async fn connect_through(proxy: &Intercept, target: http::Uri) -> io::Result<TcpStream> {
    let uri = proxy.uri().clone();
    let fails = |reason: String| {
        let name = uri.authority().map_or("", |authority| authority.as_str());
        io::Error::other(format!("cannot connect through the proxy {name}: {reason}"))
    };
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.enforce_http(false);
    let connected = match uri.scheme_str() {
        Some("http") => {
            let tunnel = Tunnel::new(uri.clone(), connector);
            let authorized = proxy.basic_auth().cloned();
            let mut tunnel = match authorized {
                Some(authorization) => tunnel.with_auth(authorization),
                None => tunnel,
            };
            tunnel.call(target).await.map_err(|error| with_cause(&error))
        }
        Some("socks5" | "socks5h") => {
            // The proxy looks the name up, as Go has it for both.
            let proxied = SocksV5::new(with_port(&uri, 1080), connector);
            let mut proxied = match proxy.raw_auth() {
                Some((name, password)) => proxied.with_auth(name.to_owned(), password.to_owned()),
                None => proxied,
            };
            proxied.call(target).await.map_err(|error| with_cause(&error))
        }
        other => {
            Err(format!("`{}` is not spoken; take one that speaks http or socks5", other.unwrap_or_default()))
        }
    };
    connected.map(TokioIo::into_inner).map_err(fails)
}

fn with_port(uri: &http::Uri, usual: u16) -> http::Uri {
    let mut parts = uri.clone().into_parts();
    if let (None, Some(host)) = (uri.port(), uri.host()) {
        parts.authority = format!("{host}:{usual}").parse().ok();
    }
    http::Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// Libraries hide in the cause what has happened.
fn with_cause(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", with_cause(cause)),
        None => error.to_string(),
    }
}

async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    timeout(CONNECT_TIMEOUT, TcpStream::connect(address))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    fn proxies(url: &str, except: &str) -> Proxies {
        Proxies(Matcher::builder().https(url).no(except).build())
    }

    #[test]
    fn this_machine_and_what_is_excepted_are_reached_directly() {
        let proxies = proxies("http://me:secret@proxy.test:3128", "inside.test");
        for host in ["localhost", "127.0.0.1", "::1", "inside.test", "a.inside.test"] {
            assert!(proxies.proxy_to(host, 443).is_none(), "{host}");
        }
        for (host, expected) in [("ca.test", "ca.test:443"), ("2001:db8::1", "[2001:db8::1]:443")] {
            let (proxy, target) = proxies.proxy_to(host, 443).unwrap();
            assert_eq!(proxy.uri().authority().unwrap(), "proxy.test:3128");
            assert_eq!(target.authority().unwrap(), expected);
        }
        assert!(!format!("{proxies:?}").contains("secret"));
    }

    #[tokio::test]
    async fn a_proxy_leads_on_or_says_why_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://me:secret@{}", listener.local_addr().unwrap());
        let proxies = proxies(&url, "");
        let answer = async |answer: &str| {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            client.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        };
        let (connected, head) =
            tokio::join!(proxies.connect("ca.test", 443), answer("HTTP/1.1 200 Connected\r\n\r\n"));
        connected.unwrap();
        assert!(head.starts_with("CONNECT ca.test:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
        for (status, reason) in [("407 No", "authorization required"), ("502 No", "unsuccessful")] {
            let refusal = format!("HTTP/1.1 {status}\r\n\r\n");
            let (connected, _) = tokio::join!(proxies.connect("ca.test", 443), answer(&refusal));
            let error = connected.unwrap_err().to_string();
            assert!(error.starts_with("cannot connect through the proxy 127.0.0.1:"), "{error}");
            assert!(error.contains(reason) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_socks_proxy_has_a_port_of_its_own() {
        let with_port = |uri: &'static str| with_port(&http::Uri::from_static(uri), 1080).to_string();
        assert_eq!(with_port("socks5://proxy.test/"), "socks5://proxy.test:1080/");
        assert_eq!(with_port("socks5h://[2001:db8::1]/"), "socks5h://[2001:db8::1]:1080/");
        assert_eq!(with_port("socks5://proxy.test:9050/"), "socks5://proxy.test:9050/");
    }

    #[tokio::test]
    async fn a_proxy_that_is_not_spoken_to_is_named() {
        let error = proxies("https://proxy.test", "").connect("ca.test", 443).await.unwrap_err().to_string();
        assert!(
            error.contains("proxy.test") && error.contains("take one that speaks http or socks5"),
            "{error}"
        );
    }
}
