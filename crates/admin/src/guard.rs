//! Who may ask: no web page of another origin.
//!
//! A browser sends requests to the listener on behalf of any page that it shows. Two things tell them apart:
//!
//! - **Host**. A page of `evil.example` whose name suddenly resolves to 127.0.0.1 (DNS rebinding) is of the listener's
//!   origin as far as the browser knows, but names `evil.example` in `Host`. Allowed are the names and addresses that the
//!   listener is reached by, and the configured ones. The port is not looked at: it is another one behind a port mapping
//!   or an SSH tunnel, and a page cannot choose a host by it.
//! - **Origin** and **Sec-Fetch-Site**. Browsers name the page's origin with every request that could change something,
//!   and modern ones say with each how page and target are related. Allowed are the listener's own pages, what a person
//!   typed into the address bar, and the configured origins. Another port of the same machine is another origin: a PHP
//!   application on localhost:8080 must not drive the server. A link to the dashboard is another matter: what a person
//!   follows (`Sec-Fetch-Mode: navigate`) opens a page of its own, which the linking page cannot see into.
//!
//! Programs that are no browsers send neither, and pass. Through a Unix socket any host passes: no browser gets there.

use crate::address::Address;
use crate::failure::Failure;
use crate::listener::Listeners;
use http::header::{HOST, HeaderName, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Method};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// An origin that may use the API beside the listener's own (`admin { origins … }`): `admin.example`,
/// `admin.example:8443` or `https://admin.example`. Requests may name its host, and pages of it may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// `None`: any.
    scheme: Option<String>,
    authority: Authority,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no origin; write `example.com`, `example.com:8443` or `https://example.com`")]
pub struct OriginError {
    text: String,
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let error = || OriginError { text: text.to_owned() };
        let (scheme, authority) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        let known = scheme.as_deref().is_none_or(|scheme| matches!(scheme, "http" | "https"));
        let authority: Authority = authority.trim_end_matches('/').parse().map_err(|_| error())?;
        if !known || authority.host().is_empty() || authority.as_str().contains('@') {
            return Err(error());
        }
        Ok(Self { scheme, authority })
    }
}

impl Origin {
    /// Whether a page of the origin (`scheme://authority`) is of this one.
    fn is_of(&self, scheme: &str, authority: &str) -> bool {
        self.scheme.as_deref().is_none_or(|own| own == scheme)
            && self.authority.as_str().eq_ignore_ascii_case(authority)
    }
}

/// Who may use the API beside programs and pages on the listener's own address.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// In addition to the listener's own.
    pub origins: Vec<Origin>,
    pub origin_check: OriginCheck,
}

/// Which requests have to name an origin (`enforce_origin`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OriginCheck {
    /// Those of browsers, which do so by themselves.
    #[default]
    Browsers,
    /// All; `regent threads` and its like do.
    Everyone,
}

/// Lets requests pass, or says why not.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: Hosts,
    access: Access,
}

/// The hosts that the listener itself is reached by.
#[derive(Debug)]
enum Hosts {
    Any,
    /// These addresses, and the name that was listened on. `localhost` is the name of loopback addresses.
    These {
        name: String,
        addresses: Vec<IpAddr>,
    },
}

impl Guard {
    pub fn new(listeners: &Listeners, access: Access) -> Self {
        let hosts = match &listeners.address {
            Address::Unix(_) => Hosts::Any,
            Address::Tcp { host, .. } => Hosts::These {
                name: host.clone(),
                addresses: listeners.tcp_addresses().iter().map(SocketAddr::ip).collect(),
            },
        };
        Self { hosts, access }
    }

    pub fn check(&self, head: &Parts) -> Result<(), Failure> {
        let host = self.host(head)?;
        match single(&head.headers, &ORIGIN)? {
            // It says more than the other, to which a configured origin is cross-site.
            Some(origin) => self.check_origin(origin, host),
            None => self.check_site(head),
        }
    }

    /// The host that the request names, with its port; empty through a Unix socket without one.
    fn host<'a>(&self, head: &'a Parts) -> Result<&'a str, Failure> {
        let Some(named) = single(&head.headers, &HOST)? else {
            let allowed = matches!(self.hosts, Hosts::Any);
            return if allowed { Ok("") } else { Err(Failure::Host(String::new())) };
        };
        // A request to a proxy names its target in the request line too.
        let target = head.uri.authority().map(Authority::as_str);
        match [Some(named), target].into_iter().flatten().find(|host| !self.allows_host(host)) {
            Some(refused) => Err(Failure::Host(refused.to_owned())),
            None => Ok(named),
        }
    }

    fn allows_host(&self, host: &str) -> bool {
        let Hosts::These { name, addresses } = &self.hosts else { return true };
        // `user@host` is none: a `Host` has no user, and readers differ in which part they would take.
        let Some(authority) = host.parse::<Authority>().ok().filter(|_| !host.contains('@')) else {
            return false;
        };
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let own = match bare.parse() {
            Ok(address) => is_reached_by(addresses, address),
            Err(_) if bare.eq_ignore_ascii_case("localhost") => addresses.iter().any(includes_loopback),
            Err(_) => bare.eq_ignore_ascii_case(name),
        };
        own || self.access.origins.iter().any(|origin| origin.authority.host().eq_ignore_ascii_case(host))
    }

    fn check_origin(&self, origin: &str, host: &str) -> Result<(), Failure> {
        let of_listener = |scheme: &str, authority: &str| {
            scheme == "http" && !host.is_empty() && authority.eq_ignore_ascii_case(host)
        };
        let allowed = origin.split_once("://").is_some_and(|(scheme, authority)| {
            of_listener(scheme, authority)
                || self.access.origins.iter().any(|own| own.is_of(scheme, authority))
        });
        if allowed { Ok(()) } else { Err(Failure::Origin(origin.to_owned())) }
    }

    /// `none` is the address bar.
    fn check_site(&self, head: &Parts) -> Result<(), Failure> {
        match (single(&head.headers, &SEC_FETCH_SITE)?, self.access.origin_check) {
            (Some("same-origin" | "none"), _) | (None, OriginCheck::Browsers) => Ok(()),
            (Some(_), OriginCheck::Browsers) if follows_a_link(head)? => Ok(()),
            (Some(site), _) => Err(Failure::Site(site.to_owned())),
            (None, OriginCheck::Everyone) => Err(Failure::NoOrigin),
        }
    }
}

/// Into a window of its own, not into a frame of the linking page. No GET changes anything here.
fn follows_a_link(head: &Parts) -> Result<bool, Failure> {
    let mode = single(&head.headers, &SEC_FETCH_MODE)?;
    let destination = single(&head.headers, &SEC_FETCH_DEST)?;
    Ok(head.method == Method::GET && mode == Some("navigate") && destination == Some("document"))
}

fn is_reached_by(listening: &[IpAddr], asked: IpAddr) -> bool {
    // On every interface, any address may be this machine's. None can be rebound: that takes a name.
    listening.iter().any(|own| own.is_unspecified() || *own == asked)
        || (asked.is_loopback() && listening.iter().any(includes_loopback))
}

fn includes_loopback(address: &IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified()
}

/// A field that must not come twice, lest two readers understand different things.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Failure> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    let text = first.to_str().ok().filter(|_| values.next().is_none());
    text.map(Some).ok_or_else(|| Failure::Head(name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use http::StatusCode;

    fn guard(address: &str, ips: &[&str], origins: &[&str]) -> Guard {
        let hosts = match address.parse().unwrap() {
            Address::Unix(_) => Hosts::Any,
            Address::Tcp { host, .. } => {
                Hosts::These { name: host, addresses: ips.iter().map(|ip| ip.parse().unwrap()).collect() }
            }
        };
        let origins = origins.iter().map(|origin| origin.parse().unwrap()).collect();
        Guard { hosts, access: Access { origins, ..Access::default() } }
    }

    fn local() -> Guard {
        guard("localhost:2019", &["127.0.0.1", "::1"], &[])
    }

    /// Header fields, one to a line.
    fn asks(guard: &Guard, fields: &str) -> Result<(), StatusCode> {
        let mut request = Request::builder().uri("/");
        for (name, value) in fields.lines().map(|line| line.split_once(": ").unwrap()) {
            request = request.header(name, value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        guard.check(&head).map_err(|failure| failure.status())
    }

    const FORBIDDEN: Result<(), StatusCode> = Err(StatusCode::FORBIDDEN);

    #[test]
    fn a_loopback_listener_is_reached_by_its_names_and_any_port() {
        for host in
            ["localhost:2019", "LOCALHOST", "127.0.0.1:2019", "[::1]:2019", "127.0.0.1:3000", "127.1.2.3"]
        {
            assert_eq!(asks(&local(), &format!("host: {host}")), Ok(()), "{host}");
        }
    }

    #[test]
    fn a_rebound_name_is_refused() {
        for host in [
            "evil.example:2019",
            "localhost.evil.example",
            "10.0.0.1",
            "evil.example@localhost",
            "localhost@evil",
            "[",
        ] {
            assert_eq!(asks(&local(), &format!("host: {host}")), FORBIDDEN, "{host}");
        }
        assert_eq!(asks(&local(), ""), FORBIDDEN);
    }

    #[test]
    fn an_ambiguous_host_is_refused() {
        assert_eq!(asks(&local(), "host: localhost\nhost: localhost"), Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn a_request_line_with_another_host_is_refused() {
        let request = Request::builder().uri("http://evil.example/stop").header("host", "localhost");
        let (head, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(local().check(&head).unwrap_err().status(), StatusCode::FORBIDDEN);
    }

    #[test]
    fn a_listener_on_every_interface_is_reached_by_any_address_but_no_foreign_name() {
        let open = guard(":2019", &["0.0.0.0", "::"], &[]);
        for host in ["localhost:2019", "10.0.0.1:2019", "[2001:db8::1]"] {
            assert_eq!(asks(&open, &format!("host: {host}")), Ok(()), "{host}");
        }
        assert_eq!(asks(&open, "host: evil.example:2019"), FORBIDDEN);
    }

    #[test]
    fn a_listener_on_one_address_is_reached_by_it_only() {
        let lan = guard("admin.example:2019", &["10.0.0.1"], &[]);
        assert_eq!(asks(&lan, "host: admin.example:2019"), Ok(()));
        assert_eq!(asks(&lan, "host: 10.0.0.1:2019"), Ok(()));
        assert_eq!(asks(&lan, "host: localhost:2019"), FORBIDDEN);
        assert_eq!(asks(&lan, "host: 127.0.0.1:2019"), FORBIDDEN);
    }

    #[test]
    fn only_own_pages_ask() {
        let from = |origin: &str| asks(&local(), &format!("host: localhost:2019\norigin: {origin}"));
        assert_eq!(from("http://localhost:2019"), Ok(()));
        for origin in [
            "http://localhost:8080",
            "http://localhost",
            "http://127.0.0.1:2019",
            "https://localhost:2019",
            "https://evil.example",
            "null",
            "",
            "://localhost:2019",
        ] {
            assert_eq!(from(origin), FORBIDDEN, "{origin}");
        }
    }

    #[test]
    fn pages_of_other_sites_do_not_even_read() {
        let from = |site: &str| asks(&local(), &format!("host: localhost:2019\nsec-fetch-site: {site}"));
        assert_eq!(from("same-origin"), Ok(()));
        assert_eq!(from("none"), Ok(()));
        for site in ["cross-site", "same-site", ""] {
            assert_eq!(from(site), FORBIDDEN, "{site}");
        }
    }

    #[test]
    fn a_link_on_another_page_may_be_followed_but_not_into_a_frame() {
        let linked = |mode: &str, destination: &str| {
            let site = "host: localhost:2019\nsec-fetch-site: cross-site";
            asks(&local(), &format!("{site}\nsec-fetch-mode: {mode}\nsec-fetch-dest: {destination}"))
        };
        assert_eq!(linked("navigate", "document"), Ok(()));
        for (mode, destination) in
            [("navigate", "iframe"), ("no-cors", "script"), ("cors", "empty"), ("no-cors", "document")]
        {
            assert_eq!(linked(mode, destination), FORBIDDEN, "{mode} {destination}");
        }
        let form = Request::post("/stop").header(HOST, "localhost:2019").header(SEC_FETCH_SITE, "cross-site");
        let form = form.header(SEC_FETCH_MODE, "navigate").header(SEC_FETCH_DEST, "document");
        let (head, ()) = form.body(()).unwrap().into_parts();
        assert!(local().check(&head).is_err());
    }

    #[test]
    fn configured_origins_may_ask() {
        let proxied =
            guard("localhost:2019", &["127.0.0.1"], &["https://admin.example", "other.example:8443"]);
        let asks = |fields: &str| asks(&proxied, fields);
        assert_eq!(
            asks("host: admin.example\norigin: https://admin.example\nsec-fetch-site: cross-site"),
            Ok(())
        );
        assert_eq!(asks("host: localhost:2019\norigin: http://other.example:8443"), Ok(()));
        assert_eq!(asks("host: localhost:2019\norigin: http://admin.example"), FORBIDDEN);
        assert_eq!(asks("host: localhost:2019\norigin: https://other.example"), FORBIDDEN);
    }

    #[test]
    fn an_origin_may_be_asked_of_everyone() {
        let mut strict = local();
        strict.access.origin_check = OriginCheck::Everyone;
        assert_eq!(asks(&strict, "host: localhost:2019"), FORBIDDEN);
        assert_eq!(asks(&strict, "host: localhost:2019\norigin: http://localhost:2019"), Ok(()));
        // The dashboard's own questions: a browser sends no Origin with them.
        assert_eq!(asks(&strict, "host: localhost:2019\nsec-fetch-site: same-origin"), Ok(()));
    }

    #[test]
    fn any_host_passes_through_a_unix_socket_and_pages_do_not() {
        let unix = guard("unix//run/regent.sock", &[], &[]);
        assert_eq!(asks(&unix, ""), Ok(()));
        assert_eq!(asks(&unix, "host: anything"), Ok(()));
        assert_eq!(asks(&unix, "origin: http://evil.example"), FORBIDDEN);
    }

    #[test]
    fn what_is_no_origin_is_an_error() {
        for text in ["", "ftp://a", "https://", "a b", "user@host", "http://a/path"] {
            let error = text.parse::<Origin>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is no origin")), "{error}");
        }
    }
}
