//! The values that can stand in a template, by the names that Caddy gives them.

use crate::exchange::{Exchange, FileMatch};
use crate::failure::Failure;
use crate::url_path;
use http::{HeaderMap, HeaderName, Uri, Version, header};
use std::borrow::Cow;
use std::io::Write;
use std::net::SocketAddr;
use time::OffsetDateTime;
use time::macros::format_description;

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
    Var(String),
    /// A group of a regular expression that matched; without a name, of the latest.
    Regexp {
        name: Option<String>,
        group: String,
    },
    File(FileField),
    Error(ErrorField),
    Now(TimeFormat),
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
        match name {
            "system.hostname" => {
                Some(std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned())
            }
            "system.slash" => Some("/".into()),
            "system.os" => Some(std::env::consts::OS.into()),
            "system.arch" => Some(std::env::consts::ARCH.into()),
            "system.wd" => Some(std::env::current_dir().ok()?.to_string_lossy().into_owned()),
            _ => None,
        }
    }

    /// `None` for a name that does not exist.
    pub(crate) fn parse(name: &str) -> Option<Self> {
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
        if let Some(field) = name.strip_prefix("http.error.") {
            return parse_error(field).map(Self::Error);
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

    /// Appends the value; nothing if there is none.
    pub(crate) fn write(&self, exchange: &Exchange, out: &mut Vec<u8>) {
        match self {
            Self::Method => out.extend_from_slice(exchange.method.as_str().as_bytes()),
            Self::OrigMethod => out.extend_from_slice(exchange.original_method().as_str().as_bytes()),
            Self::Scheme => out.extend_from_slice(exchange.connection.scheme().as_bytes()),
            Self::Proto => out.extend_from_slice(proto(exchange.version).as_bytes()),
            Self::Host => out.extend_from_slice(exchange.host.as_bytes()),
            Self::HostPort => out.extend_from_slice(exchange.host_port()),
            Self::Port => out.extend_from_slice(port(exchange.host_port())),
            Self::HostLabel(index) => {
                out.extend_from_slice(exchange.host.rsplit('.').nth(*index).unwrap_or_default().as_bytes());
            }
            Self::Remote => display(exchange.connection.remote, out),
            Self::RemoteHost => display(exchange.connection.remote.map(|addr| addr.ip()), out),
            Self::RemotePort => display(exchange.connection.remote.map(|addr| addr.port()), out),
            Self::Local => display(exchange.connection.local, out),
            Self::LocalHost => display(exchange.connection.local.as_ref().map(SocketAddr::ip), out),
            Self::LocalPort => display(exchange.connection.local.as_ref().map(SocketAddr::port), out),
            Self::Header(name) => write_header(exchange, name, out),
            Self::Cookie(name) => out.extend_from_slice(cookie(&exchange.headers, name)),
            Self::Uuid => display(Some(exchange.uuid()), out),
            Self::Var(name) => exchange.write_var(name, out),
            Self::Regexp { name, group } => out.extend_from_slice(exchange.group(name.as_deref(), group)),
            Self::File(field) => out.extend_from_slice(file_field(exchange.file_match(), *field)),
            Self::Error(field) => write_error(exchange.failure(), *field, out),
            Self::Now(format) => write_now(*format, out),
            Self::Escaped(value) => write_query_escaped(value, exchange, out),
            _ => self.write_uri(exchange, out),
        }
    }

    /// Whether the value is a piece of a decoded path (and so has to be encoded to go into a URI).
    pub(crate) fn is_decoded_path(&self) -> bool {
        matches!(
            self,
            Self::Path
                | Self::PathSegment(_)
                | Self::PathDir
                | Self::PathFile
                | Self::PathFileBase
                | Self::PathFileExt
        ) || matches!(
            self,
            Self::OrigPath
                | Self::OrigPathDir
                | Self::OrigPathFile
                | Self::OrigPathSegment(_)
                | Self::Regexp { .. }
                | Self::File(_)
        )
    }

    /// Whether the value is a query string already.
    pub(crate) fn is_query(&self) -> bool {
        matches!(
            self,
            Self::Query | Self::PrefixedQuery | Self::OrigQuery | Self::OrigPrefixedQuery | Self::Escaped(_)
        )
    }

    fn write_uri(&self, exchange: &Exchange, out: &mut Vec<u8>) {
        let (uri, path) = match self {
            Self::OrigUri
            | Self::OrigPath
            | Self::OrigPathDir
            | Self::OrigPathFile
            | Self::OrigPathSegment(_) => (&exchange.original_uri, exchange.original_path()),
            Self::OrigQuery | Self::OrigPrefixedQuery => (&exchange.original_uri, Cow::Borrowed(&[][..])),
            _ => (&exchange.uri, Cow::Borrowed(exchange.path())),
        };
        let name = url_path::file_name(&path);
        match self {
            Self::Uri | Self::OrigUri => {
                out.extend_from_slice(uri.path_and_query().map_or("", |both| both.as_str()).as_bytes());
            }
            Self::Path | Self::OrigPath => out.extend_from_slice(&path),
            Self::PathSegment(index) | Self::OrigPathSegment(index) => {
                out.extend_from_slice(path.split(|byte| *byte == b'/').nth(index + 1).unwrap_or_default());
            }
            Self::PathDir | Self::OrigPathDir => out.extend_from_slice(&path[..path.len() - name.len()]),
            Self::PathFile | Self::OrigPathFile => out.extend_from_slice(name),
            Self::PathFileBase => out.extend_from_slice(&name[..name.len() - extension(name).len()]),
            Self::PathFileExt => out.extend_from_slice(extension(name)),
            Self::PrefixedQuery | Self::OrigPrefixedQuery => write_prefixed(uri, out),
            Self::QueryValue(key) => out.extend_from_slice(&query_value(uri, key)),
            _ => out.extend_from_slice(uri.query().unwrap_or_default().as_bytes()),
        }
    }
}

/// `HTTP/1.1` and the like.
pub(crate) fn proto(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// The decoded keys and values of a query string, in order.
pub(crate) fn query_pairs(uri: &Uri) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + '_ {
    let query = uri.query().unwrap_or_default();
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (url_path::decode_query(key), url_path::decode_query(value))
    })
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
        "remote.host" | "client_ip" => P::RemoteHost,
        "remote.port" => P::RemotePort,
        "local" => P::Local,
        "local.host" => P::LocalHost,
        "local.port" => P::LocalPort,
        "uuid" => P::Uuid,
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

fn parse_error(field: &str) -> Option<ErrorField> {
    match field {
        "status_code" => Some(ErrorField::StatusCode),
        "status_text" => Some(ErrorField::StatusText),
        "message" => Some(ErrorField::Message),
        _ => None,
    }
}

fn strip_any<'a>(name: &'a str, prefixes: &[&str]) -> Option<&'a str> {
    prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))
}

fn write_query_escaped(value: &Placeholder, exchange: &Exchange, out: &mut Vec<u8>) {
    let mut raw = Vec::new();
    value.write(exchange, &mut raw);
    for (index, word) in raw.split(|byte| *byte == b' ').enumerate() {
        if index > 0 {
            out.push(b'+');
        }
        url_path::encode_query_value(word, out);
    }
}

fn display(value: Option<impl std::fmt::Display>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        out.extend_from_slice(value.to_string().as_bytes());
    }
}

fn write_error(failure: Option<&Failure>, field: ErrorField, out: &mut Vec<u8>) {
    let Some(failure) = failure else { return };
    let text = match field {
        ErrorField::StatusCode => failure.status.as_str(),
        ErrorField::StatusText => failure.status_text(),
        ErrorField::Message => failure.message(),
    };
    out.extend_from_slice(text.as_bytes());
}

fn write_header(exchange: &Exchange, name: &HeaderName, out: &mut Vec<u8>) {
    if name == header::HOST {
        return out.extend_from_slice(exchange.host_port());
    }
    for (index, value) in exchange.headers.get_all(name).iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value.as_bytes());
    }
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> &'a [u8] {
    let pairs =
        headers.get_all(header::COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    for pair in pairs {
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { continue };
        if pair[..equals].trim_ascii() == name.as_bytes() {
            return pair[equals + 1..].trim_ascii();
        }
    }
    &[]
}

/// The digits behind the last colon, unless that colon is inside of an IPv6 address.
fn port(host_port: &[u8]) -> &[u8] {
    match host_port.iter().rposition(|byte| *byte == b':') {
        Some(colon) if host_port[colon + 1..].iter().all(u8::is_ascii_digit) => &host_port[colon + 1..],
        _ => &[],
    }
}

fn extension(name: &[u8]) -> &[u8] {
    name.iter().rposition(|byte| *byte == b'.').map_or(&[], |dot| &name[dot..])
}

fn write_prefixed(uri: &Uri, out: &mut Vec<u8>) {
    if let Some(query) = uri.query().filter(|query| !query.is_empty()) {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
}

/// All values of a key, joined with commas.
fn query_value(uri: &Uri, key: &str) -> Vec<u8> {
    let values: Vec<_> =
        query_pairs(uri).filter(|(name, _)| name == key.as_bytes()).map(|(_, value)| value).collect();
    values.join(&b',')
}

fn file_field(found: Option<&FileMatch>, field: FileField) -> &[u8] {
    let Some(found) = found else { return &[] };
    match field {
        FileField::Relative => &found.relative,
        FileField::Absolute => &found.absolute,
        FileField::Kind => found.kind.as_str().as_bytes(),
        FileField::Remainder => &found.remainder,
    }
}

fn write_now(format: TimeFormat, out: &mut Vec<u8>) {
    let now = OffsetDateTime::now_utc();
    let common = format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000");
    let rfc3339 = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    let text = match format {
        TimeFormat::Http => httpdate::fmt_http_date(now.into()),
        TimeFormat::Unix => now.unix_timestamp().to_string(),
        TimeFormat::UnixMs => (now.unix_timestamp_nanos() / 1_000_000).to_string(),
        TimeFormat::Year => now.year().to_string(),
        TimeFormat::CommonLog => now.format(common).unwrap_or_default(),
        TimeFormat::Rfc3339 => now.format(rfc3339).unwrap_or_default(),
    };
    // Writing to a vector cannot fail.
    let _ = out.write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::tests::{get, request};

    fn value(exchange: &Exchange, name: &str) -> String {
        let mut out = Vec::new();
        if let Some(placeholder) = Placeholder::parse(name) {
            placeholder.write(exchange, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn request_values() {
        let exchange = request(
            "GET",
            "/a/b%20c.tar.gz?k=v+1&k=2&z",
            &[("host", "WWW.Example.com:8080"), ("cookie", "a=1; sid=x"), ("x-y", "1"), ("x-y", "2")],
        );
        for (name, want) in [
            ("http.request.method", "GET"),
            ("http.request.host", "www.example.com"),
            ("http.request.hostport", "WWW.Example.com:8080"),
            ("http.request.port", "8080"),
            ("http.request.host.labels.0", "com"),
            ("http.request.host.labels.2", "www"),
            ("http.request.uri", "/a/b%20c.tar.gz?k=v+1&k=2&z"),
            ("http.request.uri.path", "/a/b c.tar.gz"),
            ("http.request.uri.path.0", "a"),
            ("http.request.uri.path.1", "b c.tar.gz"),
            ("http.request.uri.path.9", ""),
            ("http.request.uri.path.dir", "/a/"),
            ("http.request.uri.path.file", "b c.tar.gz"),
            ("http.request.uri.path.file.base", "b c.tar"),
            ("http.request.uri.path.file.ext", ".gz"),
            ("http.request.uri.query", "k=v+1&k=2&z"),
            ("http.request.uri.prefixed_query", "?k=v+1&k=2&z"),
            ("http.request.uri.query.k", "v 1,2"),
            ("http.request.header.X-Y", "1,2"),
            ("http.request.header.Host", "WWW.Example.com:8080"),
            ("http.request.cookie.sid", "x"),
            ("http.request.proto", "HTTP/1.1"),
            ("http.request.scheme", "http"),
            ("http.request.remote.host", "192.0.2.7"),
            ("http.request.remote.port", "5000"),
            ("http.request.orig_uri.path", "/a/b c.tar.gz"),
            ("http.request.orig_uri.path.dir", "/a/"),
            ("http.request.orig_uri.path.file", "b c.tar.gz"),
            ("http.request.orig_uri.path.1", "b c.tar.gz"),
            ("http.request.orig_uri.query", "k=v+1&k=2&z"),
            ("http.request.uri_escaped", "%2Fa%2Fb%2520c.tar.gz%3Fk%3Dv%2B1%26k%3D2%26z"),
            ("http.request.uri.path_escaped", "%2Fa%2Fb+c.tar.gz"),
            ("http.request.uri.query_escaped", "k%3Dv%2B1%26k%3D2%26z"),
            ("http.request.nonsense", ""),
            ("vars.none", ""),
            ("re.none.1", ""),
            ("file_match.relative", ""),
        ] {
            assert_eq!(value(&exchange, name), want, "{name}");
        }
    }

    #[test]
    fn a_uuid_stays_the_same_within_a_request() {
        let exchange = get("/");
        let first = value(&exchange, "http.request.uuid");
        assert_eq!(first, value(&exchange, "http.request.uuid"));
        assert_eq!(first.len(), 36);
        assert_ne!(first, value(&get("/"), "http.request.uuid"));
    }

    #[test]
    fn times_have_their_formats() {
        let exchange = get("/");
        assert!(value(&exchange, "time.now.http").ends_with(" GMT"));
        assert!(value(&exchange, "time.now.unix").parse::<u64>().unwrap() > 1_600_000_000);
        assert!(value(&exchange, "time.now.common_log").ends_with(" +0000"));
        assert_eq!(value(&exchange, "time.now.year").len(), 4);
    }
}
