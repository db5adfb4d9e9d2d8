//! Host names that are written in Unicode (`bücher.example`), as requests, certificates and DNS have them: `xn--bcher-kva.example`.

use crate::model::{Part, Template};
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::net::Ipv6Addr;

/// A host name in ASCII (UTS #46, as browsers do it); what is ASCII already stays as it is. `None`: no name can be made of it.
pub fn ascii_host(host: &str) -> Option<String> {
    if host.is_ascii() {
        return Some(host.to_owned());
    }
    let ascii = idna::domain_to_ascii_cow(host.as_bytes(), idna::AsciiDenyList::URL).ok()?;
    Some(ascii.into_owned()).filter(|ascii| !ascii.is_empty())
}

/// The same for the host of `host:port`, `host/path` and URLs. The rest stays as it is written.
pub fn ascii_authority(text: &str) -> Option<String> {
    let start = text.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = text.split_at(start);
    let (host, rest) = rest.split_at(rest.find([':', '/', '?', '#']).unwrap_or(rest.len()));
    Some(format!("{scheme}{}{rest}", ascii_host(host)?))
}

/// A host of a configuration, in small letters.
pub(crate) fn host(token: &Token) -> Result<String, Error> {
    match ascii_host(&token.text) {
        Some(host) => Ok(host.to_lowercase()),
        None => Err(no_host_name(token)),
    }
}

/// The same for one that may have placeholders, beside which no name is put together.
pub(crate) fn pattern(token: &Token) -> Result<Template, Error> {
    pattern_of(token, &token.text)
}

/// The same for one that is put together; `token` is to blame.
pub(crate) fn pattern_of(token: &Token, text: &str) -> Result<Template, Error> {
    let template = Template::parse(text);
    match template.0.as_slice() {
        // Requests are compared without brackets.
        [Part::Text(text)] if is_bracketed_ipv6(text) => Ok(Template::text(text.trim_matches(['[', ']']))),
        [Part::Text(text)] => Ok(Template::text(ascii_host(text).ok_or_else(|| no_host_name(token))?)),
        parts if parts.iter().all(|part| !matches!(part, Part::Text(text) if !text.is_ascii())) => {
            Ok(template)
        }
        _ => Err(error(
            token,
            "beside a placeholder a host name is written in ASCII: `xn--bcher-kva` for `bücher`",
        )),
    }
}

fn is_bracketed_ipv6(text: &str) -> bool {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    bare.is_some_and(|bare| bare.parse::<Ipv6Addr>().is_ok())
}

fn no_host_name(token: &Token) -> Error {
    error(token, format!("`{}` is no host name: IDNA does not allow one of its characters", token.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{file_errors, load};

    #[test]
    fn names_become_ascii_and_the_rest_stays() {
        for (text, ascii) in [
            ("bücher.example", "xn--bcher-kva.example"),
            ("*.BÜCHER.example", "*.xn--bcher-kva.example"),
            ("straße.example", "xn--strae-oqa.example"),
            ("Example.com", "Example.com"),
            ("日本語。jp", "xn--wgv71a119e.jp"),
        ] {
            assert_eq!(ascii_host(text).as_deref(), Some(ascii), "{text}");
        }
        for (text, ascii) in [
            ("https://bücher.example:8443/ü?ö", "https://xn--bcher-kva.example:8443/ü?ö"),
            ("bücher.example/ü", "xn--bcher-kva.example/ü"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(ascii_authority(text).as_deref(), Some(ascii), "{text}");
        }
        assert_eq!(ascii_host("a\u{2}ü"), None);
    }

    #[test]
    fn a_host_in_unicode_is_one_in_ascii_wherever_it_stands() {
        let file = |host: &str| {
            format!(
                "{{\nadmin localhost:1 {{\norigins https://{host}\n}}\ndefault_sni {host}\nfallback_sni {host}\n\
                 on_demand_tls {{\nask http://{host}/ask\n}}\nregent {{\nhealth_uri {host}/up\n}}\n\
                 storage redis {{\nhost {host}\n}}\n}}\n\
                 https://{host}, http://*.{host} {{\n@h host {host} *.{host}\nrespond @h x\n\
                 @e expression \"host('{host}')\"\nrespond @e y\n\
                 log {{\nhostnames {host}\noutput net {host}:514\n}}\n\
                 reverse_proxy https://{host} {{\nto https://{host}:444\ntransport http {{\ntls\ntls_server_name {host}\n}}\n}}\n\
                 reverse_proxy {{\ndynamic a {host} 80\n}}\nphp_fastcgi {host}:9000\n\
                 mercure {{\nanonymous\npublisher_jwt 0123456789abcdef0123456789abcdef\ncors_origins https://{host}\n}}\n}}"
            )
        };
        let shown = |host: &str| match load(&file(host)) {
            Ok(loaded) => format!("{:#?}", loaded.config),
            Err(errors) => panic!("{errors}"),
        };
        pretty_assertions(&shown("bücher.example"), &shown("xn--bcher-kva.example"));
    }

    /// The lines that differ.
    fn pretty_assertions(unicode: &str, ascii: &str) {
        let differ: Vec<_> =
            unicode.lines().zip(ascii.lines()).filter(|(unicode, ascii)| unicode != ascii).collect();
        assert_eq!(differ, [], "and nothing else");
        assert_eq!(unicode.len(), ascii.len());
    }

    #[test]
    fn a_condition_may_have_an_ipv6_address_in_brackets() {
        let config = |host: &str| {
            let loaded = load(&format!(":80 {{\n@h host {host}\nrespond @h x\n}}")).unwrap();
            format!("{:?}", loaded.config.servers)
        };
        assert_eq!(config("[::1]"), config("::1"));
    }

    #[test]
    fn a_name_that_no_host_can_have_is_an_error() {
        for text in [
            "http://b\u{202e}ücher.example {\n}",
            ":80 {\n@h host ü{http.request.host.labels.0}\nrespond @h x\n}",
        ] {
            assert_eq!(file_errors(text).len(), 1, "{text}");
        }
    }
}
