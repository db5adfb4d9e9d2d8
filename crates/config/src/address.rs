//! Site addresses: `:8080`, `host`, `host:port`, `http://host`, `https://host`, `*.example.com:8080`.
//!
//! They mean what they mean to Caddy (caddyconfig/httpcaddyfile/addresses.go and httptype.go). A path behind them is a condition
//! on requests.

use crate::context::Notation;
use crate::directives;
use crate::global::GlobalOptions;
use crate::host_names::ascii_host;
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::fmt;
use std::net::IpAddr;

/// An address as it is written. Its `Display` is an address that means the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub scheme: Option<Scheme>,
    /// In lower case and ASCII, and an IPv6 address without its brackets; `None`: any.
    pub host: Option<String>,
    pub port: Option<u16>,
    /// With its `/`; `None`: any.
    pub path: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// What is spoken at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Security {
    Plain,
    Tls,
    /// TLS if the site has a `tls` directive, or another site on the same listener has TLS.
    Follows,
}

/// Where a site is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub port: u16,
    pub host: Option<String>,
    pub security: Security,
    /// Only requests for such a path are for the site.
    pub path: Option<String>,
}

/// Parses an address and says what the global options make of it.
pub(crate) fn parse(options: &GlobalOptions, token: &Token) -> Result<Place, Error> {
    if options.notation == Notation::Caddyfile && directives::find(&token.text).is_some() {
        let text = &token.text;
        let message = format!(
            "`{text}` is a directive and has to stand in a site block: `:443 {{ {text} … }}`; for a host of this name write `https://{text}`"
        );
        return Err(error(token, message));
    }
    let address = Address::parse(&token.text).map_err(|message| error(token, message))?;
    let (http, https) = (options.global.http_port, options.global.tls.https_port);
    let (port, security) = match (address.scheme, address.port) {
        (Some(Scheme::Http), port) => (port.unwrap_or(http), Security::Plain),
        (Some(Scheme::Https), port) => (port.unwrap_or(https), Security::Tls),
        (None, Some(port)) if port == http => (port, Security::Plain),
        (None, port) => {
            let port = port.unwrap_or(https);
            // With `auto_https off`, a port alone does not ask for TLS.
            let by_port = port == https && options.auto_https.is_on();
            (port, if by_port || address.host.is_some() { Security::Tls } else { Security::Follows })
        }
    };
    if options.notation == Notation::Caddyfile {
        check_convention(options, token, &address, port)?;
    }
    Ok(Place { port, host: address.host, security, path: address.path })
}

/// As in Caddy: neither scheme on the port of the other.
fn check_convention(
    options: &GlobalOptions,
    token: &Token,
    address: &Address,
    port: u16,
) -> Result<(), Error> {
    let (http, https) = (options.global.http_port, options.global.tls.https_port);
    let (scheme, other, option) = match address.scheme {
        Some(Scheme::Http) if port == https => ("http", "HTTPS", "https_port"),
        Some(Scheme::Https) if port == http => ("https", "plain HTTP", "http_port"),
        _ => return Ok(()),
    };
    Err(error(
        token,
        format!(
            "`{}` has `{scheme}://` on port {port}, which is that of {other}; name another port, or set the global option `{option}`",
            token.text
        ),
    ))
}

impl Address {
    /// Parses an address; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(self::scheme(scheme)?), rest),
            None => (None, text),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = split_port(authority)?;
        let path = Some(path).filter(|path| !matches!(*path, "" | "/")).map(str::to_owned);
        Ok(Self { scheme, host: host_name(host)?, port, path })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scheme {
            Some(Scheme::Http) => f.write_str("http://")?,
            Some(Scheme::Https) => f.write_str("https://")?,
            None => {}
        }
        match &self.host {
            Some(host) if host.contains(':') => write!(f, "[{host}]")?,
            Some(host) => f.write_str(host)?,
            None if self.port.is_none() && self.scheme.is_none() => f.write_str("*")?,
            None => {}
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))?;
        f.write_str(self.path.as_deref().unwrap_or_default())
    }
}

fn scheme(text: &str) -> Result<Scheme, String> {
    match text.to_ascii_lowercase().as_str() {
        "http" => Ok(Scheme::Http),
        "https" => Ok(Scheme::Https),
        "ws" | "wss" => {
            Err(format!("`{text}://` is a scheme of browsers only; write `http://` or `https://`"))
        }
        _ => Err(format!("`{text}` is no scheme of a site address; write `http://` or `https://`")),
    }
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => return Ok((text, None)),
    };
    match port.parse() {
        Ok(number @ 1..) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok((host, Some(number))),
        _ => Err(format!("`{port}` is no port; write a number from 1 to 65535")),
    }
}

/// `None` for any host: none is named, or an address that stands for all of the machine's own.
fn host_name(host: &str) -> Result<Option<String>, String> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok((!address.is_unspecified()).then(|| address.to_string()));
    }
    if host.is_empty() || host == "*" {
        return Ok(None);
    }
    let valid_label = |label: &str| {
        label == "*"
            || (!label.is_empty()
                && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
    };
    let ascii = ascii_host(host).map(|ascii| ascii.to_lowercase());
    if let Some(ascii) = ascii.filter(|ascii| ascii.split('.').all(valid_label)) {
        return Ok(Some(ascii));
    }
    Err(format!("`{host}` is no host name; write one such as `example.com` or `*.example.com`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{file_errors, load};
    use proptest::prelude::*;

    /// Listeners and hosts of sites with these addresses, and whether they have TLS.
    fn sites(text: &str) -> Vec<String> {
        let config = load(&format!("{text} {{\n}}")).unwrap_or_else(|errors| panic!("{errors}")).config;
        let sites =
            config.servers.iter().flat_map(|server| server.sites.iter().map(move |site| (server, site)));
        let show = |(server, site): (&crate::Server, &crate::Site)| {
            let scheme = if server.tls.is_some() { "https" } else { "http" };
            assert_eq!(server.tls.is_some(), site.tls.is_some());
            format!("{scheme} {:?} {:?}", server.listen, site.hosts)
        };
        sites.map(show).collect()
    }

    #[test]
    fn plain_http() {
        let cases = [
            (":8080", "http Tcp([::]:8080) []"),
            (":80", "http Tcp([::]:80) []"),
            ("http://", "http Tcp([::]:80) []"),
            ("http://:8080", "http Tcp([::]:8080) []"),
            ("http://Example.com", "http Tcp([::]:80) [\"example.com\"]"),
            ("http://*.example.com:81", "http Tcp([::]:81) [\"*.example.com\"]"),
            ("example.com:80", "http Tcp([::]:80) [\"example.com\"]"),
            ("http://[::1]:81", "http Tcp([::1]:81) [\"::1\"]"),
            ("http://127.0.0.1", "http Tcp(127.0.0.1:80) [\"127.0.0.1\"]"),
            ("http://192.0.2.7", "http Tcp([::]:80) [\"192.0.2.7\"]"),
            ("0.0.0.0:81", "http Tcp([::]:81) []"),
        ];
        for (address, expected) in cases {
            assert_eq!(sites(address), [expected], "{address}");
        }
    }

    #[test]
    fn https() {
        let cases = [
            ("localhost", "https Tcp([::]:443) [\"localhost\"]"),
            ("https://localhost", "https Tcp([::]:443) [\"localhost\"]"),
            ("HTTPS://app.localhost:8443", "https Tcp([::]:8443) [\"app.localhost\"]"),
            ("localhost:8443", "https Tcp([::]:8443) [\"localhost\"]"),
            ("localhost:443", "https Tcp([::]:443) [\"localhost\"]"),
            ("127.0.0.1", "https Tcp(127.0.0.1:443) [\"127.0.0.1\"]"),
            ("[::1]", "https Tcp([::1]:443) [\"::1\"]"),
            ("192.0.2.7", "https Tcp([::]:443) [\"192.0.2.7\"]"),
            ("*.localhost", "https Tcp([::]:443) [\"*.localhost\"]"),
        ];
        for (address, expected) in cases {
            let text = format!("{{\nauto_https disable_redirects\n}}\n{address}");
            assert_eq!(sites(&text), [expected], "{address}");
        }
        let ports = "{\nauto_https disable_redirects\nhttp_port 81\nhttps_port 444\n}\n";
        assert_eq!(sites(&format!("{ports}localhost")), ["https Tcp([::]:444) [\"localhost\"]"]);
        assert_eq!(sites(&format!("{ports}localhost:81")), ["http Tcp([::]:81) [\"localhost\"]"]);
        assert_eq!(sites(&format!("{ports}http://localhost")), ["http Tcp([::]:81) [\"localhost\"]"]);
    }

    #[test]
    fn the_port_of_https_was_an_error_with_auto_https_off() {
        assert_eq!(sites("{\nauto_https off\n}\n:443"), ["http Tcp([::]:443) []"]);
    }

    #[test]
    fn a_path_is_a_condition() {
        let loaded =
            load("http://a.com/x/*, http://b.com/y {\nrespond x\n}\nhttp://c.com/ {\nrespond y\n}").unwrap();
        let sites = &loaded.config.servers[0].sites;
        let site = sites.iter().find(|site| site.hosts.contains(&"a.com".to_owned())).unwrap();
        assert_eq!(
            site.routes[0].matchers,
            [[crate::Matcher::Path(vec![crate::Template::text("/x/*")])]],
            "and not the other host's"
        );
        assert!(sites.iter().any(|site| site.hosts == ["c.com"] && site.routes[0].matchers.is_empty()));
        assert!(
            loaded.warnings[0].to_string().contains("1:1: a path in a site's address"),
            "{:?}",
            loaded.warnings
        );
        assert_eq!(file_errors("http://a.com/x {\n}\nhttp://a.com {\n}"), [""; 0]);
        let found = file_errors("http://a.com/x, http://b.com {\n}");
        assert!(found[0].contains("put the path into a `handle` block"), "{found:?}");
    }

    #[test]
    fn neither_scheme_is_on_the_port_of_the_other() {
        assert!(file_errors("http://localhost:443 {\n}")[0].contains("which is that of HTTPS"));
        assert!(file_errors("https://localhost:80 {\n}")[0].contains("which is that of plain HTTP"));
        assert!(file_errors("{\nhttp_port 8080\n}\nhttps://localhost:8080 {\n}")[0].contains("`http_port`"));
    }

    #[test]
    fn a_directive_outside_of_a_site_is_no_host() {
        for text in [
            "handle {\nrespond x\n}",
            "respond x",
            "{\ndebug\n}\nroute {\n}",
            "http://a {\n}\nfile_server {\n}",
        ] {
            let found = file_errors(text);
            assert!(
                found
                    .iter()
                    .any(|message| message.contains("is a directive and has to stand in a site block")),
                "{text}: {found:?}"
            );
        }
        assert_eq!(file_errors("http://handle {\n}\nlog:8080 {\n}\nlog.localhost {\n}"), [""; 0]);
    }

    #[test]
    fn mistakes() {
        for address in [
            ":0",
            ":x",
            ":+80",
            "a:",
            ":70000",
            "ftp://a",
            "wss://a",
            "http://a..b",
            "http://a b!",
            "a:b:80",
            "[::1",
            "x]:80",
            "fe80::1%eth0",
        ] {
            assert!(Address::parse(address).is_err(), "{address}");
            assert!(!file_errors(&format!("\"{address}\" {{\n}}")).is_empty(), "{address}");
        }
    }

    proptest! {
        /// Of any text: an address, whose display is that address again, or an error with a message.
        #[test]
        fn every_text_is_an_address_or_an_error(text in "\\PC*") {
            check(&text)?;
        }

        #[test]
        fn what_looks_like_an_address_is_one_or_an_error(
            text in "(https?://|HTTP://|)(\\[?[0-9a-f:.]{0,12}\\]?|[a-zA-ZİΣß*.-]{0,12})(:[0-9]{0,6})?"
        ) {
            check(&text)?;
        }
    }

    fn check(text: &str) -> Result<(), TestCaseError> {
        match Address::parse(text) {
            Ok(address) => prop_assert_eq!(Address::parse(&address.to_string()), Ok(address)),
            Err(message) => prop_assert!(!message.is_empty()),
        }
        Ok(())
    }
}
