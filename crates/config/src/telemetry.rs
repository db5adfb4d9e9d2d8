//! Where traces go, as OpenTelemetry's environment variables say it, which are the same for all that is instrumented
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>, …`/protocol/exporter/`).
//!
//! As the specification wants, a value that cannot be understood is warned of and left out; what would keep traces from getting
//! anywhere is an error. Messages name the variable, and the place of the `tracing` that made it count.

use crate::context::Context;
use crate::model::{
    Secret, TraceBatches, TraceClientCertificate, TraceCompression, TraceEndpoint, TraceExport,
    TracePropagation, TraceSampler, Traces,
};
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
/// Where a collector takes traces.
const PATH: &str = "v1/traces";
const TIMEOUT: Duration = Duration::from_secs(10);
const SERVICE: &str = "regent";
/// Spans that may wait, whatever the environment says: some 64 MiB.
const MOST_QUEUED: usize = 65_536;
const LONGEST: Duration = Duration::from_secs(24 * 3600);
const MOST_RESOURCE_ATTRIBUTES: usize = 128;

/// `None`: nothing is to be done about traces. `token`: the directive.
pub(crate) fn traces(cx: &mut Context<'_>, token: &Token) -> Option<Traces> {
    if variable(cx, "OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        cx.warn(token, "`tracing` has no effect: the environment has OTEL_SDK_DISABLED=true");
        return None;
    }
    let sampler = sampler(cx, token);
    let propagation = propagation(cx, token);
    let exporter = variable(cx, "OTEL_TRACES_EXPORTER").unwrap_or_else(|| "otlp".to_owned());
    let export = match exporter.as_str() {
        "none" => None,
        "otlp" => Some(export(cx, token)?),
        other => {
            let message = format!(
                "OTEL_TRACES_EXPORTER={other} is not possible: Regent sends traces by OTLP (`otlp`), or records none (`none`)"
            );
            cx.errors.push(error(token, message));
            return None;
        }
    };
    Some(Traces { sampler, propagation, export })
}

/// An empty variable is none.
fn variable(cx: &Context<'_>, name: &str) -> Option<String> {
    cx.environment.variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// That of traces, or that of all that is exported, with its name.
fn of_export(cx: &Context<'_>, name: &str) -> Option<(String, String)> {
    ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"].into_iter().find_map(|prefix| {
        let name = format!("{prefix}{name}");
        variable(cx, &name).map(|value| (name, value))
    })
}

fn sampler(cx: &mut Context<'_>, token: &Token) -> TraceSampler {
    let usual = TraceSampler { ratio: 1.0, follows_parent: true };
    let Some(name) = variable(cx, "OTEL_TRACES_SAMPLER") else { return usual };
    let (root, follows_parent) = match name.strip_prefix("parentbased_") {
        Some(root) => (root, true),
        None => (name.as_str(), false),
    };
    let ratio = match root {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => ratio(cx, token),
        _ => {
            let message = format!(
                "OTEL_TRACES_SAMPLER={name} is unknown, so `parentbased_always_on` is taken (there are always_on, always_off, \
                 traceidratio, and each with parentbased_ before it)"
            );
            cx.warn(token, message);
            return usual;
        }
    };
    TraceSampler { ratio, follows_parent }
}

fn ratio(cx: &mut Context<'_>, token: &Token) -> f64 {
    let Some(text) = variable(cx, "OTEL_TRACES_SAMPLER_ARG") else { return 1.0 };
    let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.unwrap_or_else(|| {
        cx.warn(token, format!("OTEL_TRACES_SAMPLER_ARG={text} is no number from 0 to 1, so 1 is taken"));
        1.0
    })
}

fn propagation(cx: &mut Context<'_>, token: &Token) -> TracePropagation {
    let Some(list) = variable(cx, "OTEL_PROPAGATORS") else { return TracePropagation::TraceContext };
    let mut propagation = TracePropagation::Nothing;
    for name in list.split(',').map(str::trim) {
        match name {
            "tracecontext" => propagation = TracePropagation::TraceContext,
            // A field as any other.
            "baggage" | "none" | "" => {}
            _ => cx.warn(
                token,
                format!("OTEL_PROPAGATORS: `{name}` is not there; traces go by `tracecontext`, and `baggage` passes as it is"),
            ),
        }
    }
    propagation
}

/// `None`: the errors are noted.
fn export(cx: &mut Context<'_>, token: &Token) -> Option<TraceExport> {
    if let Some((name, protocol)) =
        of_export(cx, "PROTOCOL").filter(|(_, protocol)| protocol != "http/protobuf")
    {
        let message = format!(
            "{name}={protocol} is not possible: set it to `http/protobuf`, which collectors take at port 4318 as a rule, and the \
             endpoint to that port"
        );
        cx.errors.push(error(token, message));
        return None;
    }
    let endpoint = endpoint(cx);
    let endpoint = cx.check(endpoint.map_err(|message| error(token, message)));
    let client = client_certificate(cx, token);
    let client = cx.check(client);
    let certificate = of_export(cx, "CERTIFICATE").map(|(_, file)| cx.environment.absolute(Path::new(&file)));
    Some(TraceExport {
        headers: headers(cx, token),
        compression: compression(cx, token),
        timeout: of_export(cx, "TIMEOUT")
            .map_or(TIMEOUT, |(name, text)| milliseconds(cx, token, &name, &text).unwrap_or(TIMEOUT)),
        certificate,
        resource: resource(cx, token),
        batches: batches(cx, token),
        endpoint: endpoint?,
        client: client?,
    })
}

fn endpoint(cx: &Context<'_>) -> Result<TraceEndpoint, String> {
    let of = |name: &str, url: &str| {
        parse_url(url)
            .ok_or_else(|| format!("{name}={url} is no URL: write http://HOST:PORT, or https://HOST:PORT"))
    };
    if let Some(url) = variable(cx, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        return of("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &url);
    }
    let url = variable(cx, "OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
    let mut endpoint = of("OTEL_EXPORTER_OTLP_ENDPOINT", &url)?;
    if !endpoint.path.ends_with('/') {
        endpoint.path.push('/');
    }
    endpoint.path.push_str(PATH);
    Ok(endpoint)
}

fn parse_url(url: &str) -> Option<TraceEndpoint> {
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
    if host.is_empty() || !host.bytes().all(is_host) || !target.bytes().all(is_target) {
        return None;
    }
    let path = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    let port = port.map_or(Some(usual_port), |port| port.parse().ok().filter(|port| *port != 0))?;
    Some(TraceEndpoint { is_https, host: host.to_owned(), port, path })
}

fn client_certificate(cx: &Context<'_>, token: &Token) -> Result<Option<TraceClientCertificate>, Error> {
    let file = |name| of_export(cx, name).map(|(_, file)| cx.environment.absolute(Path::new(&file)));
    match (file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TraceClientCertificate { certificate, key })),
        _ => Err(error(
            token,
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY need each other",
        )),
    }
}

fn compression(cx: &mut Context<'_>, token: &Token) -> TraceCompression {
    match of_export(cx, "COMPRESSION") {
        Some((_, value)) if value == "gzip" => TraceCompression::Gzip,
        Some((name, value)) if value != "none" => {
            cx.warn(
                token,
                format!("{name}={value} is unknown, so nothing is compressed (there are gzip and none)"),
            );
            TraceCompression::None
        }
        _ => TraceCompression::None,
    }
}

/// The value is not in the message: it is a password as a rule.
fn headers(cx: &mut Context<'_>, token: &Token) -> Vec<(String, Secret)> {
    let Some((name, list)) = of_export(cx, "HEADERS") else { return Vec::new() };
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

fn batches(cx: &mut Context<'_>, token: &Token) -> TraceBatches {
    let usual = TraceBatches::default();
    let queue = count(cx, token, "OTEL_BSP_MAX_QUEUE_SIZE").unwrap_or(usual.queue).min(MOST_QUEUED);
    let size = count(cx, token, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE").unwrap_or(usual.size);
    TraceBatches {
        queue,
        size: size.min(queue),
        delay: time(cx, token, "OTEL_BSP_SCHEDULE_DELAY").unwrap_or(usual.delay),
        patience: time(cx, token, "OTEL_BSP_EXPORT_TIMEOUT").unwrap_or(usual.patience),
    }
}

fn count(cx: &mut Context<'_>, token: &Token, name: &str) -> Option<usize> {
    let text = variable(cx, name)?;
    let count = text.parse::<usize>().ok().filter(|count| *count > 0);
    if count.is_none() {
        cx.warn(token, format!("{name}={text} is no number from 1 on, and is left out"));
    }
    count
}

fn time(cx: &mut Context<'_>, token: &Token, name: &str) -> Option<Duration> {
    let text = variable(cx, name)?;
    milliseconds(cx, token, name, &text)
}

fn milliseconds(cx: &mut Context<'_>, token: &Token, name: &str, text: &str) -> Option<Duration> {
    let time = text.parse().ok().filter(|count| *count > 0).map(Duration::from_millis);
    if time.is_none() {
        cx.warn(token, format!("{name}={text} is no number of milliseconds, and is left out"));
    }
    time.map(|time| time.min(LONGEST))
}

#[cfg(test)]
mod tests;
