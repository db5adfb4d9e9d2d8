//! The collector of one kind of signal.

use super::{milliseconds, variable};
use crate::context::Context;
use crate::host_names::ascii_host;
use crate::model::{OtlpClientCertificate, OtlpCollector, OtlpCompression, OtlpEndpoint, Secret};
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
const TIMEOUT: Duration = Duration::from_secs(10);
const SERVICE: &str = "regent";
const MOST_RESOURCE_ATTRIBUTES: usize = 128;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    /// In the names of variables.
    fn name(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
        }
    }

    /// Where a collector takes it.
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "v1/traces",
            Self::Metrics => "v1/metrics",
        }
    }
}

/// `None`: the errors are noted.
pub(super) fn collector(cx: &mut Context<'_>, token: &Token, signal: Signal) -> Option<OtlpCollector> {
    if let Some((name, protocol)) =
        of_export(cx, signal, "PROTOCOL").filter(|(_, protocol)| protocol != "http/protobuf")
    {
        let message = format!(
            "{name}={protocol} is not possible: set it to `http/protobuf`, which collectors take at port 4318 as a rule, and the \
             endpoint to that port"
        );
        cx.errors.push(error(token, message));
        return None;
    }
    let endpoint = endpoint(cx, signal);
    let endpoint = cx.check(endpoint.map_err(|message| error(token, message)));
    let client = client_certificate(cx, token, signal);
    let client = cx.check(client);
    let certificate =
        of_export(cx, signal, "CERTIFICATE").map(|(_, file)| cx.environment.absolute(Path::new(&file)));
    Some(OtlpCollector {
        headers: headers(cx, token, signal),
        compression: compression(cx, token, signal),
        timeout: of_export(cx, signal, "TIMEOUT")
            .map_or(TIMEOUT, |(name, text)| milliseconds(cx, token, &name, &text).unwrap_or(TIMEOUT)),
        certificate,
        resource: resource(cx, token),
        endpoint: endpoint?,
        client: client?,
    })
}

/// That of the signal, or that of all that is exported, with its name.
pub(super) fn of_export(cx: &Context<'_>, signal: Signal, name: &str) -> Option<(String, String)> {
    [format!("OTEL_EXPORTER_OTLP_{}_", signal.name()), "OTEL_EXPORTER_OTLP_".to_owned()].iter().find_map(
        |prefix| {
            let name = format!("{prefix}{name}");
            variable(cx, &name).map(|value| (name, value))
        },
    )
}

fn endpoint(cx: &Context<'_>, signal: Signal) -> Result<OtlpEndpoint, String> {
    let of = |name: &str, url: &str| {
        parse_url(url)
            .ok_or_else(|| format!("{name}={url} is no URL: write http://HOST:PORT, or https://HOST:PORT"))
    };
    let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.name());
    if let Some(url) = variable(cx, &own) {
        return of(&own, &url);
    }
    let url = variable(cx, "OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
    let mut endpoint = of("OTEL_EXPORTER_OTLP_ENDPOINT", &url)?;
    if !endpoint.path.ends_with('/') {
        endpoint.path.push('/');
    }
    endpoint.path.push_str(signal.path());
    Ok(endpoint)
}

fn parse_url(url: &str) -> Option<OtlpEndpoint> {
    let (scheme, rest) = url.split_once("://")?;
    let (is_https, usual_port) = match scheme.to_ascii_lowercase().as_str() {
        "http" => (false, 80),
        "https" => (true, 443),
        _ => return None,
    };
    let rest = rest.split('#').next()?;
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(at);
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    let is_target = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\');
    let host = ascii_host(host)?;
    if host.is_empty() || !host.bytes().all(is_host) || !target.bytes().all(is_target) {
        return None;
    }
    let path = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    let port = port.map_or(Some(usual_port), |port| port.parse().ok().filter(|port| *port != 0))?;
    Some(OtlpEndpoint { is_https, host, port, path })
}

fn client_certificate(
    cx: &Context<'_>,
    token: &Token,
    signal: Signal,
) -> Result<Option<OtlpClientCertificate>, Error> {
    let file = |name| of_export(cx, signal, name).map(|(_, file)| cx.environment.absolute(Path::new(&file)));
    match (file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(OtlpClientCertificate { certificate, key })),
        _ => Err(error(
            token,
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY need each other",
        )),
    }
}

fn compression(cx: &mut Context<'_>, token: &Token, signal: Signal) -> OtlpCompression {
    match of_export(cx, signal, "COMPRESSION") {
        Some((_, value)) if value == "gzip" => OtlpCompression::Gzip,
        Some((name, value)) if value != "none" => {
            cx.warn(
                token,
                format!("{name}={value} is unknown, so nothing is compressed (there are gzip and none)"),
            );
            OtlpCompression::None
        }
        _ => OtlpCompression::None,
    }
}

/// The value is not in the message: it is a password as a rule.
fn headers(cx: &mut Context<'_>, token: &Token, signal: Signal) -> Vec<(String, Secret)> {
    let Some((name, list)) = of_export(cx, signal, "HEADERS") else { return Vec::new() };
    let (pairs, bad) = pairs(&list);
    let is_token = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let is_value = |value: &str| value.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    let (good, others): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|(name, value)| is_token(name) && is_value(value));
    if bad || !others.is_empty() {
        cx.warn(token, format!("{name}: not every part of it is a header `NAME=VALUE`; the others are sent"));
    }
    good.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), Secret(value))).collect()
}

fn resource(cx: &mut Context<'_>, token: &Token) -> Vec<(String, String)> {
    let mut attributes = BTreeMap::from([("service.name".to_owned(), SERVICE.to_owned())]);
    if let Some(list) = variable(cx, "OTEL_RESOURCE_ATTRIBUTES") {
        let (pairs, bad) = pairs(&list);
        if bad || pairs.len() > MOST_RESOURCE_ATTRIBUTES {
            cx.warn(
                token,
                "OTEL_RESOURCE_ATTRIBUTES: not every part of it is `NAME=VALUE`, or they are more than 128",
            );
        }
        attributes.extend(pairs.into_iter().take(MOST_RESOURCE_ATTRIBUTES));
    }
    attributes.extend(variable(cx, "OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name)));
    attributes.into_iter().collect()
}

/// `NAME=VALUE,…`, where values have `%20` for what cannot stand there, and whether something is none.
fn pairs(list: &str) -> (Vec<(String, String)>, bool) {
    let mut bad = false;
    let mut pairs = Vec::new();
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let pair = part.split_once('=').and_then(|(name, value)| {
            let name = percent_decoded(name.trim())?;
            (!name.is_empty()).then_some((name, percent_decoded(value.trim())?))
        });
        bad |= pair.is_none();
        pairs.extend(pair);
    }
    (pairs, bad)
}

pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = (*first == b'%').then(|| tail.get(..2)).flatten();
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        match digits.and_then(|digits| std::str::from_utf8(digits).ok()) {
            Some(digits) => {
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}
