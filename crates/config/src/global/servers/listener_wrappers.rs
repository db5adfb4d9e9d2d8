//! `listener_wrappers { … }`: what a connection goes through before it is HTTP.

use crate::call::Call;
use crate::context::Context;
use crate::ip_ranges;
use crate::model::{PlainHttp, ProxyPolicy, ProxyProtocol, ServerOptions};
use crate::problems::{error, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};

const OPTIONS: &[&str] = &["allow", "deny", "fallback_policy", "timeout"];

const POLICIES: &[(&str, ProxyPolicy)] = &[
    ("ignore", ProxyPolicy::Ignore),
    ("reject", ProxyPolicy::Reject),
    ("require", ProxyPolicy::Require),
    ("skip", ProxyPolicy::Skip),
    ("use", ProxyPolicy::Use),
];

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>, server: &mut ServerOptions) -> Result<(), Error> {
    call.no_arguments("listener_wrappers { proxy_protocol { … }; http_redirect; tls }")?;
    let mut found = None;
    server.plain_http = PlainHttp::Refused;
    let mut tls = None;
    for option in call.options() {
        match option.name() {
            "tls" => {
                let result = option.exactly::<0>("tls");
                cx.check(result);
                tls = Some(option.name);
            }
            "http_redirect" => {
                let result = option.exactly::<0>("http_redirect");
                cx.check(result);
                if let Some(tls) = tls {
                    let message = "`tls` has no effect here: plain HTTP is looked for before TLS; \
                                   put `tls` behind `http_redirect`";
                    cx.warn(tls, message);
                }
                server.plain_http = PlainHttp::Redirected;
            }
            "proxy_protocol" if found.is_some() => {
                cx.errors.push(error(option.name, "`proxy_protocol` is there already"));
            }
            "proxy_protocol" => {
                if let Some(tls) = tls {
                    cx.warn(tls, "`tls` has no effect here: PROXY headers are expected before TLS; put `tls` behind `proxy_protocol`");
                }
                found = Some(proxy_protocol(cx, &option)?);
            }
            _ => {
                let known = ["http_redirect", "proxy_protocol", "tls"];
                cx.errors.push(unknown_option(option.name, "listener_wrappers", &known, &[]));
            }
        }
    }
    server.proxy_protocol = found;
    Ok(())
}

fn proxy_protocol(cx: &mut Context<'_>, call: &Call<'_>) -> Result<ProxyProtocol, Error> {
    call.no_arguments("proxy_protocol { OPTION… }")?;
    let mut found = ProxyProtocol::default();
    for option in call.options() {
        let result = apply(cx, &option, &mut found);
        cx.check(result);
    }
    if found.allow.is_empty() && found.fallback == ProxyPolicy::Ignore {
        cx.warn(
            call.name,
            "the addresses in PROXY headers are ignored; name the proxies that are believed with `allow`",
        );
    }
    Ok(found)
}

fn apply(cx: &Context<'_>, option: &Call<'_>, found: &mut ProxyProtocol) -> Result<(), Error> {
    match option.name() {
        "timeout" => found.timeout = values::duration(option.one("timeout DURATION")?)?,
        "allow" => found.allow.extend(ip_ranges::parse(cx, option.some("allow RANGE…")?)?),
        "deny" => found.deny.extend(ip_ranges::parse(cx, option.some("deny RANGE…")?)?),
        "fallback_policy" => found.fallback = policy(option.one("fallback_policy POLICY")?)?,
        _ => return Err(unknown_option(option.name, "proxy_protocol", OPTIONS, &[])),
    }
    Ok(())
}

fn policy(token: &Token) -> Result<ProxyPolicy, Error> {
    let written = token.text.to_ascii_lowercase();
    let found = POLICIES.iter().find(|(name, _)| *name == written);
    found.map(|(_, policy)| *policy).ok_or_else(|| {
        let names: Vec<_> = POLICIES.iter().map(|(name, _)| *name).collect();
        unknown(token, "policy", &names)
    })
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{file_errors, load};
    use crate::model::{PlainHttp, ProxyPolicy, ProxyProtocol};
    use std::time::Duration;

    fn wrappers(lines: &str) -> (Option<ProxyProtocol>, Vec<String>) {
        let text = format!("{{\nservers {{\nlistener_wrappers {{\n{lines}\n}}\n}}\n}}\n:80 {{\n}}");
        let loaded = load(&text).unwrap_or_else(|errors| panic!("{errors}"));
        let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
        (loaded.config.servers[0].options.proxy_protocol.clone(), warnings)
    }

    #[test]
    fn options() {
        let (found, warnings) = wrappers(
            "proxy_protocol {\ntimeout 2s\nallow 10.0.0.0/8 ::1\ndeny 10.1.0.0/16\nfallback_policy REJECT\n}\ntls",
        );
        let expected = ProxyProtocol {
            timeout: Duration::from_secs(2),
            allow: vec![([10, 0, 0, 0].into(), 8), ("::1".parse().unwrap(), 128)],
            deny: vec![([10, 1, 0, 0].into(), 16)],
            fallback: ProxyPolicy::Reject,
        };
        assert_eq!(found, Some(expected));
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(wrappers("tls").0, None);
        let plain_http = |lines: &str| {
            let text = format!("{{\nservers {{\nlistener_wrappers {{\n{lines}\n}}\n}}\n}}\n:80 {{\n}}");
            load(&text).unwrap().config.servers.remove(0).options.plain_http
        };
        assert_eq!(plain_http("http_redirect\ntls"), PlainHttp::Redirected);
        assert_eq!(plain_http("tls"), PlainHttp::Refused);
    }

    #[test]
    fn what_does_little_is_a_warning() {
        let (_, warnings) = wrappers("tls\nhttp_redirect");
        assert!(warnings.len() == 1 && warnings[0].contains("behind `http_redirect`"), "{warnings:?}");
        let (found, warnings) = wrappers("tls\nproxy_protocol");
        assert_eq!(found, Some(ProxyProtocol::default()));
        assert!(warnings[0].contains("`tls` has no effect here"), "{warnings:?}");
        assert!(warnings[1].contains("are ignored"), "{warnings:?}");
    }

    #[test]
    fn mistakes() {
        let found = file_errors(
            "{\nservers {\nlistener_wrappers {\nproxy_protocol {\ntimout 1s\nallow x\nfallback_policy usee\n}\n\
             proxy_protocol\nhttp_redirct\n}\n}\n}",
        );
        assert!(found[0].contains("did you mean `timeout`?"), "{found:?}");
        assert!(found[2].contains("did you mean `use`?"), "{found:?}");
        assert_eq!(found.len(), 5, "{found:?}");
    }
}
