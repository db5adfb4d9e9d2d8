//! The values that can stand in a template, by the names that Caddy gives them.

mod tls;
mod value;

pub(crate) use value::{proto, query_pairs};

use crate::ip_prefix::IpPrefix;
use http::HeaderName;
use tls::TlsField;

/// The variable that has the zone of `rate_limit` by which the request is refused.
pub(crate) const RATE_ZONE: &str = "rate_limit.exceeded.name";

/// A value that is known only once there is a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Placeholder {
    Method,
    OrigMethod,
    Scheme,
    Proto,
    Host,
    HostPort,
    Port,
    /// Label of the host name, counted from the right.
    HostLabel(usize),
    Remote,
    RemoteHost,
    /// `192.0.2.0/24`
    RemotePrefix(IpPrefix),
    RemotePort,
    Local,
    LocalHost,
    LocalPort,
    /// Path and query, encoded.
    Uri,
    /// Decoded and cleaned.
    Path,
    /// The value as it goes into a query (Go's `url.QueryEscape`).
    Escaped(Box<Placeholder>),
    PathSegment(usize),
    PathDir,
    PathFile,
    PathFileBase,
    PathFileExt,
    Query,
    /// With its `?`.
    PrefixedQuery,
    QueryValue(String),
    OrigUri,
    OrigPath,
    OrigPathDir,
    OrigPathFile,
    OrigPathSegment(usize),
    OrigQuery,
    OrigPrefixedQuery,
    Header(HeaderName),
    Cookie(String),
    Uuid,
    /// Of the handshake and of the client's certificate.
    Tls(TlsField),
    /// How long ago the request came.
    Duration,
    DurationMs,
    Var(String),
    /// A group of a regular expression that matched; without a name, of the latest.
    Regexp {
        name: Option<String>,
        group: String,
    },
    File(FileField),
    Error(ErrorField),
    Proxied(ProxiedField),
    /// Of the response that `intercept` has before it.
    ResponseStatus,
    /// Whom `basic_auth` has let in.
    User,
    ResponseHeader(HeaderName),
    /// Of the response that is on its way out; empty but in `header` and in `log_append`.
    OutgoingHeader(HeaderName),
    /// Whether the server is about to stop.
    ShuttingDown,
    /// How long it goes on serving then.
    TimeUntilShutdown,
    Now(TimeFormat),
}

/// Of the upstream that the request was handed to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProxiedField {
    Address,
    Host,
    Port,
    Retries,
    Latency,
    LatencyMs,
    StatusCode,
    StatusText,
    Header(HeaderName),
}

/// What the file matcher found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FileField {
    Relative,
    Absolute,
    Kind,
    Remainder,
}

/// Of the error whose page is being made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ErrorField {
    StatusCode,
    StatusText,
    Message,
    /// Nine characters by which people find it again.
    Id,
    /// All of it in a line.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TimeFormat {
    Rfc3339,
    Http,
    CommonLog,
    Unix,
    UnixMs,
    Year,
}

impl Placeholder {
    /// The value of a name that is the same for every request.
    pub(crate) fn constant(name: &str) -> Option<String> {
        if let Some(variable) = name.strip_prefix("env.") {
            return Some(std::env::var(variable).unwrap_or_default());
        }
        regent_config::of_system(name)
    }

    /// `None` for a name that does not exist.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        if let Some(field) = name.strip_prefix("http.request.tls.") {
            return TlsField::parse(field).map(Self::Tls);
        }
        if let Some(request) = name.strip_prefix("http.request.") {
            return parse_request(request);
        }
        if let Some(variable) = strip_any(name, &["http.vars.", "vars."]) {
            return Some(Self::Var(variable.to_owned()));
        }
        if let Some(regexp) = strip_any(name, &["http.regexp.", "re."]) {
            return Some(parse_regexp(regexp));
        }
        if let Some(field) = strip_any(name, &["http.matchers.file.", "file_match."]) {
            return parse_file(field).map(Self::File);
        }
        if let Some(field) = name.strip_prefix("http.reverse_proxy.") {
            return parse_proxied(field).map(Self::Proxied);
        }
        if let Some(field) = name.strip_prefix("http.intercept.header.") {
            return HeaderName::try_from(field).ok().map(Self::ResponseHeader);
        }
        if let Some(field) = name.strip_prefix("http.response.header.") {
            return HeaderName::try_from(field).ok().map(Self::OutgoingHeader);
        }
        if let Some(field) = name.strip_prefix("http.error.") {
            return parse_error(field).map(Self::Error);
        }
        match name {
            "http.error" => return Some(Self::Error(ErrorField::All)),
            "http.intercept.status_code" => return Some(Self::ResponseStatus),
            "http.auth.user.id" => return Some(Self::User),
            "http.rate_limit.exceeded.name" => return Some(Self::Var(RATE_ZONE.to_owned())),
            "http.shutting_down" => return Some(Self::ShuttingDown),
            "http.time_until_shutdown" => return Some(Self::TimeUntilShutdown),
            _ => {}
        }
        Some(Self::Now(match name {
            "time.now" => TimeFormat::Rfc3339,
            "time.now.http" => TimeFormat::Http,
            "time.now.common_log" => TimeFormat::CommonLog,
            "time.now.unix" => TimeFormat::Unix,
            "time.now.unix_ms" => TimeFormat::UnixMs,
            "time.now.year" => TimeFormat::Year,
            _ => return None,
        }))
    }
}

fn parse_request(name: &str) -> Option<Placeholder> {
    use Placeholder as P;
    if let Some(field) = name.strip_prefix("header.") {
        return HeaderName::try_from(field).ok().map(P::Header);
    }
    if let Some(cookie) = name.strip_prefix("cookie.") {
        return Some(P::Cookie(cookie.to_owned()));
    }
    if let Some(key) = name.strip_prefix("uri.query.") {
        return Some(P::QueryValue(key.to_owned()));
    }
    if let Some(bits) = name.strip_prefix("remote.host/") {
        let (v4, v6) = bits.split_once(',').unwrap_or((bits, bits));
        return Some(P::RemotePrefix(IpPrefix { v4: v4.parse().ok()?, v6: v6.parse().ok()? }));
    }
    if let Some(index) = name.strip_prefix("host.labels.") {
        return index.parse().ok().map(P::HostLabel);
    }
    if let Some(value) = name.strip_suffix("_escaped") {
        return parse_escapable(value).map(|value| P::Escaped(Box::new(value)));
    }
    Some(match name {
        "method" => P::Method,
        "orig_method" => P::OrigMethod,
        "scheme" => P::Scheme,
        "proto" => P::Proto,
        "host" => P::Host,
        "hostport" => P::HostPort,
        "port" => P::Port,
        "remote" => P::Remote,
        "remote.host" => P::RemoteHost,
        "client_ip" => P::Var("client_ip".into()),
        "remote.port" => P::RemotePort,
        "local" => P::Local,
        "local.host" => P::LocalHost,
        "local.port" => P::LocalPort,
        "uuid" => P::Uuid,
        "duration" => P::Duration,
        "duration_ms" => P::DurationMs,
        "uri" => P::Uri,
        "uri.path" => P::Path,
        "uri.path.dir" => P::PathDir,
        "uri.path.file" => P::PathFile,
        "uri.path.file.base" => P::PathFileBase,
        "uri.path.file.ext" => P::PathFileExt,
        "uri.query" => P::Query,
        "uri.prefixed_query" => P::PrefixedQuery,
        "orig_uri" => P::OrigUri,
        "orig_uri.path" => P::OrigPath,
        "orig_uri.path.dir" => P::OrigPathDir,
        "orig_uri.path.file" => P::OrigPathFile,
        "orig_uri.query" => P::OrigQuery,
        "orig_uri.prefixed_query" => P::OrigPrefixedQuery,
        _ => return parse_segment(name),
    })
}

/// What has an escaped form.
fn parse_escapable(name: &str) -> Option<Placeholder> {
    match name {
        "uri" => Some(Placeholder::Uri),
        "uri.path" => Some(Placeholder::Path),
        "uri.query" => Some(Placeholder::Query),
        _ => None,
    }
}

fn parse_segment(name: &str) -> Option<Placeholder> {
    match name.strip_prefix("orig_uri.path.") {
        Some(index) => index.parse().ok().map(Placeholder::OrigPathSegment),
        None => name.strip_prefix("uri.path.")?.parse().ok().map(Placeholder::PathSegment),
    }
}

fn parse_regexp(name: &str) -> Placeholder {
    match name.rsplit_once('.') {
        Some((name, group)) => Placeholder::Regexp { name: Some(name.to_owned()), group: group.to_owned() },
        None => Placeholder::Regexp { name: None, group: name.to_owned() },
    }
}

fn parse_file(field: &str) -> Option<FileField> {
    match field {
        "relative" => Some(FileField::Relative),
        "absolute" => Some(FileField::Absolute),
        "type" => Some(FileField::Kind),
        "remainder" => Some(FileField::Remainder),
        _ => None,
    }
}

fn parse_proxied(field: &str) -> Option<ProxiedField> {
    if let Some(name) = field.strip_prefix("header.") {
        return HeaderName::try_from(name).ok().map(ProxiedField::Header);
    }
    match field {
        "upstream.address" | "upstream.hostport" => Some(ProxiedField::Address),
        "upstream.host" => Some(ProxiedField::Host),
        "upstream.port" => Some(ProxiedField::Port),
        "upstream.latency" => Some(ProxiedField::Latency),
        "upstream.latency_ms" => Some(ProxiedField::LatencyMs),
        "retries" => Some(ProxiedField::Retries),
        "status_code" => Some(ProxiedField::StatusCode),
        "status_text" => Some(ProxiedField::StatusText),
        _ => None,
    }
}

fn parse_error(field: &str) -> Option<ErrorField> {
    match field {
        "status_code" => Some(ErrorField::StatusCode),
        "status_text" => Some(ErrorField::StatusText),
        "message" => Some(ErrorField::Message),
        "id" => Some(ErrorField::Id),
        _ => None,
    }
}

fn strip_any<'a>(name: &'a str, prefixes: &[&str]) -> Option<&'a str> {
    prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))
}

#[cfg(test)]
mod tests;
