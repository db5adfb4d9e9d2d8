//! `network_proxy`: what stands between this server and upstreams.

use crate::call::Call;
use crate::context::Context;
use crate::model::{ForwardProxy, Secret, UpstreamAddress};
use crate::problems::{error, not_built_as, unknown};
use crate::telemetry::percent_decoded;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regent_caddyfile::{Error, Token};

const SYNTAX: &str = "network_proxy none | url http://[NAME:PASSWORD@]HOST[:PORT]";

/// `network_proxy`. `None`: there is none.
pub(super) fn option(cx: &Context<'_>, line: &Call<'_>) -> Result<Option<ForwardProxy>, Error> {
    line.without_block(SYNTAX)?;
    match line.args {
        [none] if none.text == "none" => Ok(None),
        [kind, url] if kind.text == "url" => of_url(cx, url).map(Some),
        [kind, ..] if kind.text != "none" && kind.text != "url" => {
            Err(unknown(kind, "source of a proxy", &["none", "url"]))
        }
        _ => Err(line.wrong_arguments(2, SYNTAX)),
    }
}

/// The older way of saying it.
pub(super) fn old_option(cx: &Context<'_>, line: &Call<'_>) -> Result<Option<ForwardProxy>, Error> {
    of_url(cx, line.one("forward_proxy_url http://[NAME:PASSWORD@]HOST[:PORT]")?).map(Some)
}

/// The message never has the URL, which may have a password.
fn of_url(cx: &Context<'_>, token: &Token) -> Result<ForwardProxy, Error> {
    let url = cx.fixed_text(token)?;
    let invalid = || error(token, format!("this is no URL of a proxy; write: {SYNTAX}"));
    let (scheme, rest) = url.split_once("://").ok_or_else(invalid)?;
    match scheme {
        "http" => {}
        "https" | "socks5" | "socks5h" => {
            return Err(not_built_as(token, &format!("network_proxy url {scheme}://…")));
        }
        _ => return Err(invalid()),
    }
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let address = UpstreamAddress::parse(host);
    let has_host = |address: &UpstreamAddress| match address {
        UpstreamAddress::Tcp { host, .. } => !host.is_empty(),
        UpstreamAddress::Unix(_) => false,
    };
    let address = address.filter(has_host).ok_or_else(invalid)?;
    let authorization = user.map(|user| authorization(user).ok_or_else(invalid)).transpose()?;
    Ok(ForwardProxy { address, authorization })
}

/// RFC 7617. `None`: it is badly encoded.
fn authorization(user: &str) -> Option<Secret> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let pair = format!("{}:{}", percent_decoded(name)?, percent_decoded(password)?);
    Some(Secret(format!("Basic {}", STANDARD.encode(pair))))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, errors};
    use crate::model::{ForwardProxy, Secret, UpstreamAddress};

    fn proxy(line: &str) -> Option<ForwardProxy> {
        let text = format!(":80 {{\nreverse_proxy a {{\ntransport http {{\n{line}\n}}\n}}\n}}");
        config(&text).proxies.remove(0).transport.forward_proxy
    }

    fn message(line: &str) -> String {
        errors(&format!("reverse_proxy a {{\ntransport http {{\n{line}\n}}\n}}")).remove(0)
    }

    #[test]
    fn a_proxy_is_named_by_its_url() {
        let at = |host: &str, port| UpstreamAddress::Tcp { host: host.into(), port };
        let found = proxy("network_proxy url http://proxy.internal:3128/").unwrap();
        assert_eq!(found, ForwardProxy { address: at("proxy.internal", 3128), authorization: None });
        assert_eq!(proxy("forward_proxy_url http://[::1]").unwrap().address, at("::1", 80));
        let found = proxy("network_proxy url http://Aladdin:open%20sesame@a:1").unwrap();
        assert_eq!(found.authorization, Some(Secret("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".into())));
        assert_eq!(proxy("network_proxy none"), None);
    }

    #[test]
    fn mistakes() {
        for line in [
            "network_proxy url proxy:3128",
            "network_proxy url http://:3128",
            "network_proxy url http://a/path",
            "network_proxy url http://unix//run/x",
        ] {
            assert!(message(line).contains("no URL of a proxy"), "{line}: {}", message(line));
        }
        assert!(
            message("network_proxy url socks5://a:1080")
                .contains("`network_proxy url socks5://…` is not built yet")
        );
        assert!(message("network_proxy urll http://a").contains("did you mean `url`?"));
        assert!(message("network_proxy url {path}").contains("cannot depend on the request"));
        assert!(message("network_proxy url http://a\nversions h2c").contains("goes by HTTP/1.1"));
        assert!(message("network_proxy url http://a\nproxy_protocol v1").contains("would reach the proxy"));
        let secret = message("network_proxy url http://name:secret@a/b");
        assert!(!secret.contains("secret"), "{secret}");
    }
}
