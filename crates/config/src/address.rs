//! Site addresses: `:8080`, `host`, `host:port`, `http://host`, `*.example.com:8080`.

use crate::context::Context;
use crate::global::GlobalOptions;
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::net::IpAddr;

/// Where a site is reached, by plain HTTP.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub port: u16,
    /// In lower case; `None`: any.
    pub host: Option<String>,
}

/// Parses an address. What Caddy would serve with TLS is an error, unless it names a port of its own.
pub(crate) fn parse(cx: &mut Context<'_>, options: &GlobalOptions, token: &Token) -> Result<Address, Error> {
    let text = token.text.as_str();
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
        None => (None, text),
    };
    match scheme.as_deref() {
        None | Some("http") => {}
        Some("https") => return Err(no_tls(token, &format!("http://{rest}"))),
        Some(other) => {
            return Err(error(token, format!("`{other}` is no scheme of a site address; write `http://`")));
        }
    }
    if let Some((authority, path)) = rest.split_once('/') {
        return Err(error(
            token,
            format!("a site address has no path; use `{authority}` with `handle /{path}` in the block"),
        ));
    }
    let (host, port) = split_port(token, rest)?;
    let host = host_name(token, host)?;
    if scheme.is_none() {
        check_tls(cx, options, token, &Address { port: port.unwrap_or_default(), host: host.clone() })?;
    }
    Ok(Address { port: port.unwrap_or(options.global.http_port), host })
}

/// What Caddy makes of an address without a scheme; port 0: none is given.
fn check_tls(
    cx: &mut Context<'_>,
    options: &GlobalOptions,
    token: &Token,
    address: &Address,
) -> Result<(), Error> {
    // `auto_https off`: then no port means TLS by itself.
    if !options.tls_by_default {
        return Ok(());
    }
    let text = token.text.as_str();
    let plain = format!("http://{text}");
    if address.port == options.https_port || (address.port == 0 && address.host.is_some()) {
        return Err(no_tls(token, &format!("{plain}`, or set the global option `auto_https off")));
    }
    if address.host.is_none() || address.port == options.global.http_port {
        return Ok(());
    }
    let message = format!(
        "Caddy would serve `{text}` with TLS, which is not built yet in Regent: this is plain HTTP; write `{plain}` to say so"
    );
    cx.warn(token, message);
    Ok(())
}

fn no_tls(token: &Token, instead: &str) -> Error {
    error(
        token,
        format!("`{}` asks for TLS, which is not built yet in Regent; write `{instead}`", token.text),
    )
}

fn split_port<'a>(token: &Token, text: &'a str) -> Result<(&'a str, Option<u16>), Error> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => return Ok((text, None)),
    };
    match port.parse() {
        Ok(port @ 1..) => Ok((host, Some(port))),
        _ => Err(error(token, format!("`{port}` is no port; write a number from 1 to 65535"))),
    }
}

/// `None` for any host: none is named, or an address that stands for all of the machine's own.
fn host_name(token: &Token, host: &str) -> Result<Option<String>, Error> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok((!address.is_unspecified()).then(|| address.to_string()));
    }
    if host.is_empty() || host == "*" {
        return Ok(None);
    }
    let valid_label = |label: &str| {
        label == "*"
            || (!label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_')))
    };
    if host.split('.').all(valid_label) {
        return Ok(Some(host.to_lowercase()));
    }
    Err(error(token, format!("`{host}` is no host name; write one such as `example.com` or `*.example.com`")))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{file_errors, load};

    /// Hosts and ports of a site with these addresses.
    fn sites(addresses: &str) -> Vec<String> {
        let config = load(&format!("{addresses} {{\n}}")).unwrap_or_else(|errors| panic!("{errors}")).config;
        let sites =
            config.servers.iter().flat_map(|server| server.sites.iter().map(move |site| (server, site)));
        sites.map(|(server, site)| format!("{:?} {:?}", server.listen, site.hosts)).collect()
    }

    #[test]
    fn plain_http() {
        let cases = [
            (":8080", "Tcp([::]:8080) []"),
            ("http://", "Tcp([::]:80) []"),
            ("http://:8080", "Tcp([::]:8080) []"),
            ("http://Example.com", "Tcp([::]:80) [\"example.com\"]"),
            ("http://*.example.com:81", "Tcp([::]:81) [\"*.example.com\"]"),
            ("example.com:80", "Tcp([::]:80) [\"example.com\"]"),
            ("http://[::1]:81", "Tcp([::1]:81) [\"::1\"]"),
            ("http://127.0.0.1", "Tcp(127.0.0.1:80) [\"127.0.0.1\"]"),
            ("http://192.0.2.7", "Tcp([::]:80) [\"192.0.2.7\"]"),
            ("0.0.0.0:81", "Tcp([::]:81) []"),
        ];
        for (address, expected) in cases {
            assert_eq!(sites(address), [expected], "{address}");
        }
        assert_eq!(sites("{\nauto_https off\nhttp_port 81\n}\nlocalhost"), ["Tcp([::]:81) [\"localhost\"]"]);
    }

    #[test]
    fn the_port_of_https_was_an_error_with_auto_https_off() {
        assert_eq!(sites("{\nauto_https off\n}\n:443"), ["Tcp([::]:443) []"]);
        assert_eq!(sites("{\nauto_https off\n}\nexample.com:443"), ["Tcp([::]:443) [\"example.com\"]"]);
        assert!(!file_errors("{\nauto_https off\n}\nhttps://example.com {\n}").is_empty());
    }

    #[test]
    fn what_caddy_would_encrypt() {
        for address in ["localhost", "https://example.com", "example.com:443", ":443"] {
            let errors = file_errors(&format!("{address} {{\n}}"));
            assert!(errors[0].contains("TLS, which is not built yet"), "{errors:?}");
        }
        assert!(file_errors("localhost {\n}")[0].contains("`http://localhost`"));
        let warnings = load("example.com:8080 {\n}").unwrap().warnings;
        assert!(warnings[0].message.contains("plain HTTP"), "{warnings:?}");
    }

    #[test]
    fn mistakes() {
        for address in ["http://a/b", ":0", ":x", ":70000", "ftp://a", "http://a..b", "http://a b!"] {
            assert!(!file_errors(&format!("{address} {{\n}}")).is_empty(), "{address}");
        }
    }
}
