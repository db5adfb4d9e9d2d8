//! What a placeholder stands for in a request.

use super::{ErrorField, FileField, Placeholder, ProxiedField, TimeFormat};
use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::found::FileMatch;
use crate::context::proxied::Proxied;
use crate::paths::{host, url_path};
use http::{HeaderMap, HeaderName, Uri, Version, header};
use std::borrow::Cow;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Instant;
use time::OffsetDateTime;
use time::macros::format_description;

impl Placeholder {
    /// Appends the value; nothing if there is none.
    pub(crate) fn write(&self, exchange: &Exchange, out: &mut Vec<u8>) {
        match self {
            Self::Method => out.extend_from_slice(exchange.method.as_str().as_bytes()),
            Self::OrigMethod => out.extend_from_slice(exchange.original_method().as_str().as_bytes()),
            Self::Scheme => out.extend_from_slice(exchange.connection.scheme().as_bytes()),
            Self::Proto => out.extend_from_slice(proto(exchange.version).as_bytes()),
            Self::Host => out.extend_from_slice(host::in_url(&exchange.host).as_bytes()),
            Self::HostPort => out.extend_from_slice(exchange.host_port()),
            Self::Port => out.extend_from_slice(port(exchange.host_port())),
            Self::HostLabel(index) => {
                out.extend_from_slice(exchange.host.rsplit('.').nth(*index).unwrap_or_default().as_bytes());
            }
            Self::Remote => display(exchange.connection.remote, out),
            Self::RemoteHost => display(exchange.connection.remote.map(|addr| addr.ip()), out),
            Self::RemotePrefix(prefix) => {
                let network = |address| format!("{}/{}", prefix.of(address), prefix.bits(address));
                display(exchange.connection.remote.map(|addr| network(addr.ip())), out);
            }
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
            Self::Error(field) => write_error(exchange, *field, out),
            Self::Tls(field) => display(exchange.connection.tls.as_ref().map(|tls| field.text(tls)), out),
            Self::Duration => display(exchange.age().map(|age| format!("{age:?}")), out),
            Self::DurationMs => display(exchange.age().map(|age| age.as_secs_f64() * 1e3), out),
            Self::User => out.extend_from_slice(exchange.user().unwrap_or_default().as_bytes()),
            Self::Proxied(field) => {
                exchange.proxied.iter().for_each(|proxied| write_proxied(proxied, field, out));
            }
            Self::ResponseStatus => display(exchange.response_head().map(|head| head.status.as_u16()), out),
            Self::ResponseHeader(name) => {
                let values = exchange.response_head().map(|head| head.headers.get_all(name).iter());
                let values: Vec<_> = values.into_iter().flatten().map(|value| value.as_bytes()).collect();
                out.extend_from_slice(&values.join(&b','));
            }
            Self::OutgoingHeader(_) => {}
            Self::ShuttingDown => display(Some(exchange.stops_at.is_some()), out),
            Self::TimeUntilShutdown => {
                let left = exchange.stops_at.map(|at| at.saturating_duration_since(Instant::now()));
                display(left.map(|left| format!("{left:?}")), out);
            }
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
            // Of a directory its own name, as Go's `path.Base` has it.
            Self::PathFileBase if name.is_empty() => out.extend_from_slice(directory_name(&path)),
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

/// The last name in a path that ends with a slash; a slash for the root.
fn directory_name(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    if end == 0 { b"/" } else { url_path::file_name(&path[..end]) }
}

/// The decoded keys and values of a query string, in order.
pub(crate) fn query_pairs(uri: &Uri) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + '_ {
    let query = uri.query().unwrap_or_default();
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (url_path::decode_query(key), url_path::decode_query(value))
    })
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

fn write_error(exchange: &Exchange, field: ErrorField, out: &mut Vec<u8>) {
    let Some(failure) = exchange.failure() else { return };
    let text = match field {
        ErrorField::StatusCode => failure.status.as_str(),
        ErrorField::StatusText => failure.status_text(),
        ErrorField::Message => failure.message(),
        ErrorField::Id => return display(Some(exchange.uuid().short()), out),
        ErrorField::All => return display(Some(error_line(exchange, failure)), out),
    };
    out.extend_from_slice(text.as_bytes());
}

/// As Caddy writes an error (caddyhttp/errors.go), but for the place in its source.
fn error_line(exchange: &Exchange, failure: &Failure) -> String {
    let (id, status) = (exchange.uuid().short(), failure.status.as_str());
    format!("{{id={id}}}: HTTP {status}: {}", failure.message())
}

fn write_proxied(proxied: &Proxied, field: &ProxiedField, out: &mut Vec<u8>) {
    let response = proxied.response.as_ref();
    let status = response.map(|(status, _)| status);
    match field {
        ProxiedField::Address => out.extend_from_slice(proxied.address.as_bytes()),
        ProxiedField::Host => out.extend_from_slice(proxied.host.as_bytes()),
        ProxiedField::Port => out.extend_from_slice(proxied.port.as_bytes()),
        ProxiedField::Retries => display(Some(proxied.retries), out),
        ProxiedField::Latency => display(proxied.latency.map(|latency| format!("{latency:?}")), out),
        ProxiedField::LatencyMs => display(proxied.latency.map(|latency| latency.as_secs_f64() * 1e3), out),
        ProxiedField::StatusCode => display(status.map(|status| status.as_u16()), out),
        ProxiedField::StatusText => display(status, out),
        ProxiedField::Header(name) => {
            let values: Vec<_> = response
                .iter()
                .flat_map(|(_, fields)| fields.get_all(name))
                .map(http::HeaderValue::as_bytes)
                .collect();
            out.extend_from_slice(&values.join(&b","[..]));
        }
    }
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
