//! A request as an engine sees it: CGI's variables (RFC 3875), which are PHP's `$_SERVER`, and what PHP servers add.

use crate::keys;
use crate::target::Target;
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use regent_config::ClientAddress;
use regent_exchange::{Connection, Tls};
use regent_handlers::{Exchange, Forwarded, Scheme, Step};
use regent_wire::names::{OTHER, WELL_KNOWN, key};
use regent_wire::{HeadBlock, HeadBuilder};
use rustc_hash::FxHashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// SERVER_SOFTWARE. Applications look for FrankenPHP in it: WordPress has permalinks without `index.php` only with a
/// server that it knows (`wp-includes/vars.php`, `got_url_rewrite()`).
pub const SOFTWARE: &str = concat!("FrankenPHP (Regent/", env!("CARGO_PKG_VERSION"), ")");

/// Of these the server knows nothing but what its own TLS is, and FrankenPHP has them empty then; a site's `env` may know better, behind a proxy that
/// ends TLS or asks for passwords. REMOTE_USER is left to `env` altogether: a script that finds it takes the name for
/// one that was proved (RFC 3875 §4.1.11), so it is not what any client puts into `Authorization`.
const LEFT_TO_SITES: [(&str, u16); 3] =
    [("AUTH_TYPE", keys::AUTH_TYPE), ("SSL_PROTOCOL", keys::SSL_PROTOCOL), ("SSL_CIPHER", keys::SSL_CIPHER)];

/// Writes requests' variables; made once for each I/O thread.
pub(crate) struct Variables {
    /// Keys of the request fields that have one.
    fields: FxHashMap<HeaderName, u16>,
    /// What engines call the hubs, by their ids.
    hubs: Vec<String>,
}

/// What belongs to the connection: made once for each that an engine is asked on.
pub struct Peer {
    /// Everything that is the same for all of its requests, encoded.
    block: HeadBlock,
    local_address: String,
    local_port: String,
}

impl Peer {
    pub fn new(connection: &Connection) -> Self {
        let Connection { remote, local, ref tls } = *connection;
        Self::seen(&Seen {
            remote: remote.map(|remote| remote.ip()),
            remote_port: remote.map(|remote| remote.port()),
            local,
            is_https: tls.is_some(),
            local_port: local.map(|local| local.port()),
            tls: tls.as_deref(),
        })
    }

    /// As the client of a trusted proxy has it.
    fn forwarded(connection: &Connection, forwarded: &Forwarded) -> Self {
        let is_https = forwarded.is_https(connection);
        let by_scheme = forwarded.scheme.map(|scheme| if scheme == Scheme::Https { 443 } else { 80 });
        let local_port = connection.local.map(|local| local.port());
        Self::seen(&Seen {
            remote: forwarded.address,
            remote_port: forwarded.port,
            local: connection.local,
            is_https,
            local_port: forwarded.server_port.or(by_scheme).or(local_port),
            tls: connection.tls.as_deref().filter(|_| is_https),
        })
    }

    fn seen(seen: &Seen<'_>) -> Self {
        let address = |address: Option<IpAddr>| address.map(address_text).unwrap_or_default();
        let remote_address = address(seen.remote);
        let local_address = address(seen.local.map(|local| local.ip()));
        let remote_port = seen.remote_port.map(decimal).unwrap_or_default();
        let mut block = HeadBuilder::new();
        for (key, value) in [
            (keys::REQUEST_SCHEME, if seen.is_https { "https" } else { "http" }),
            (keys::GATEWAY_INTERFACE, "CGI/1.1"),
            (keys::SERVER_SOFTWARE, SOFTWARE),
            (keys::SERVER_ADDR, &local_address),
            (keys::REMOTE_ADDR, &remote_address),
            (keys::REMOTE_HOST, &remote_address),
            (keys::REMOTE_PORT, &remote_port),
            (keys::REMOTE_IDENT, ""),
        ] {
            block.known(key, value.as_bytes());
        }
        let (protocol, cipher) = seen.tls.map_or(("", ""), |tls| (tls.protocol, tls.cipher));
        if seen.is_https {
            // Without TLS it is not there: `isset` alone must not make a site take itself for encrypted.
            block.known(keys::HTTPS, b"on");
        }
        for (key, value) in
            [(keys::AUTH_TYPE, ""), (keys::SSL_PROTOCOL, protocol), (keys::SSL_CIPHER, cipher)]
        {
            block.known(key, value.as_bytes());
        }
        let local_port = seen.local_port.map(decimal).unwrap_or_default();
        Self { block: block.into_block(), local_address, local_port }
    }
}

/// The two ends of a connection, as a script is told of them.
struct Seen<'a> {
    remote: Option<IpAddr>,
    remote_port: Option<u16>,
    local: Option<SocketAddr>,
    /// Of a request whose `Host` names none.
    local_port: Option<u16>,
    is_https: bool,
    /// The server's own.
    tls: Option<&'a Tls>,
}

impl Variables {
    /// `hubs`: their numbers, by their ids.
    pub fn new(hubs: &[u64]) -> Self {
        let field = |name: &str| {
            let field = name.strip_prefix("HTTP_")?.replace('_', "-");
            HeaderName::try_from(field).ok().map(|field| (field, key(name)))
        };
        Self {
            fields: WELL_KNOWN.iter().filter_map(|name| field(name)).collect(),
            hubs: hubs.iter().map(u64::to_string).collect(),
        }
    }

    /// Writes all variables of a request. `body_length`: `None` if it is not known beforehand. `step`: what the engine does is one of a
    /// trace.
    pub fn write(
        &self,
        head: &mut HeadBuilder,
        exchange: &Exchange,
        target: &impl Target,
        peer: &Peer,
        body_length: Option<u64>,
        step: Option<&Step>,
    ) {
        for (name, value) in &target.delivery().env {
            head.named(name.as_bytes(), value.as_bytes());
        }
        head.end_environment();
        request_line(head, exchange);
        target.write(head, exchange);
        if let Some(hub) = target.hub().and_then(|hub| self.hubs.get(usize::from(hub.0))) {
            head.known(keys::REGENT_HUB, hub.as_bytes());
        }
        if let Some(scope) = target.cache_scope() {
            head.known(keys::REGENT_CACHE, scope.to_string().as_bytes());
        }
        let forwarded =
            exchange.forwarded().filter(|_| target.delivery().client_address == ClientAddress::Forwarded);
        match forwarded {
            Some(forwarded) => {
                let peer = Peer::forwarded(&exchange.connection, forwarded);
                let port = forwarded.server_port.map(decimal);
                connection(head, exchange, &peer, port.as_deref());
            }
            None => connection(head, exchange, peer, None),
        }
        for (name, value) in &target.delivery().env {
            if let Some((_, key)) = LEFT_TO_SITES.iter().find(|(own, _)| own == name) {
                head.known(*key, value.as_bytes());
            }
        }
        body(head, &exchange.headers, body_length);
        if let Some(trace) = exchange.trace() {
            head.named(b"REGENT_TRACE_ID", trace.context().trace.to_string().as_bytes());
        }
        self.fields(head, exchange, step.and_then(Step::field).as_ref());
    }

    /// `HTTP_*`: several fields of one name are joined (RFC 9110 §5.3; cookies: RFC 6265 §5.4 with "; "). `Proxy` is
    /// dropped (httpoxy, CVE-2016-5385).
    /// `traceparent`: what stands there for the client's.
    fn fields(&self, head: &mut HeadBuilder, exchange: &Exchange, traceparent: Option<&HeaderValue>) {
        let headers = &exchange.headers;
        let mut fields = headers.iter().peekable();
        while let Some((name, first)) = fields.next() {
            // Fields of one name follow one another in a `HeaderMap`.
            let more = std::iter::from_fn(|| fields.next_if(|(next, _)| *next == name));
            let mut joined = Vec::new();
            let value = joined_value(name, first, more.map(|(_, value)| value), &mut joined);
            match self.fields.get(name) {
                // CGI has these two without the prefix (RFC 3875 §4.1.18).
                Some(&(CONTENT_TYPE_FIELD | CONTENT_LENGTH_FIELD)) => {}
                Some(&key) => head.known(key, value),
                None if *name == "traceparent" => {
                    head.named(b"HTTP_TRACEPARENT", traceparent.map_or(value, HeaderValue::as_bytes));
                }
                None if *name == "proxy" => {}
                None => head.named(variable_name(name).as_bytes(), value),
            }
        }
    }
}

const CONTENT_TYPE_FIELD: u16 = key("HTTP_CONTENT_TYPE");
const CONTENT_LENGTH_FIELD: u16 = key("HTTP_CONTENT_LENGTH");
const _: () = assert!(CONTENT_TYPE_FIELD != OTHER && CONTENT_LENGTH_FIELD != OTHER);

fn address_text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => dotted(address),
        IpAddr::V6(address) => address.to_string(),
    }
}

/// As `Display` writes it, without the way through `fmt`, for each connection.
fn dotted(address: Ipv4Addr) -> String {
    let mut text = String::with_capacity("255.255.255.255".len());
    for octet in address.octets() {
        text.push_str(itoa::Buffer::new().format(octet));
        text.push('.');
    }
    text.pop();
    text
}

fn decimal(number: u16) -> String {
    itoa::Buffer::new().format(number).to_owned()
}

fn request_line(head: &mut HeadBuilder, exchange: &Exchange) {
    head.known(keys::REQUEST_METHOD, exchange.method.as_str().as_bytes());
    let original = exchange.original_uri.path_and_query().map_or("/", |uri| uri.as_str());
    head.known(keys::REQUEST_URI, original.as_bytes());
    head.known(keys::QUERY_STRING, exchange.uri.query().unwrap_or_default().as_bytes());
    let protocol: &[u8] = match exchange.version {
        Version::HTTP_10 => b"HTTP/1.0",
        Version::HTTP_2 => b"HTTP/2.0",
        Version::HTTP_3 => b"HTTP/3.0",
        _ => b"HTTP/1.1",
    };
    head.known(keys::SERVER_PROTOCOL, protocol);
}

/// `port`: where it is known better than from `Host`.
fn connection(head: &mut HeadBuilder, exchange: &Exchange, peer: &Peer, port: Option<&str>) {
    let name = if exchange.host.is_empty() { &peer.local_address } else { &exchange.host };
    head.known(keys::SERVER_NAME, regent_handlers::in_url(name).as_bytes());
    head.known(keys::SERVER_PORT, port.map_or_else(|| self::port(exchange, peer), str::as_bytes));
    head.block(&peer.block);
}

/// The port that the client named, or that of the listener.
fn port<'a>(exchange: &'a Exchange, peer: &'a Peer) -> &'a [u8] {
    let named = match exchange.original_uri.authority() {
        Some(authority) => authority.as_str().as_bytes(),
        None => exchange.headers.get(header::HOST).map_or(&[][..], |host| host.as_bytes()),
    };
    let port = named.iter().rposition(|byte| *byte == b':').map(|colon| &named[colon + 1..]);
    port.filter(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit))
        .unwrap_or(peer.local_port.as_bytes())
}

fn body(head: &mut HeadBuilder, headers: &HeaderMap, length: Option<u64>) {
    let content_type = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    head.known(keys::CONTENT_TYPE, content_type);
    match length {
        Some(0) if !headers.contains_key(header::CONTENT_LENGTH) => head.known(keys::CONTENT_LENGTH, b""),
        Some(length) => head.known(keys::CONTENT_LENGTH, length.to_string().as_bytes()),
        None => head.known(keys::CONTENT_LENGTH, b""),
    }
}

/// The value of a field; of several of one name, all of them, put together in `joined`.
fn joined_value<'a>(
    name: &HeaderName,
    first: &'a HeaderValue,
    more: impl Iterator<Item = &'a HeaderValue>,
    joined: &'a mut Vec<u8>,
) -> &'a [u8] {
    let separator: &[u8] = if *name == header::COOKIE { b"; " } else { b", " };
    for value in more {
        if joined.is_empty() {
            joined.extend_from_slice(first.as_bytes());
        }
        joined.extend_from_slice(separator);
        joined.extend_from_slice(value.as_bytes());
    }
    if joined.is_empty() { first.as_bytes() } else { joined }
}

/// `x-forwarded-for` → `HTTP_X_FORWARDED_FOR`.
fn variable_name(field: &HeaderName) -> String {
    let mut name = String::with_capacity(5 + field.as_str().len());
    name.push_str("HTTP_");
    // A dot too, as PHP's `php_register_variable_ex` has it.
    let letter = |c: char| if matches!(c, '-' | '.') { '_' } else { c.to_ascii_uppercase() };
    name.extend(field.as_str().chars().map(letter));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_everywhere() {
        for address in ["127.0.0.1", "0.0.0.0", "255.255.255.255", "10.20.3.4", "::1", "2001:db8::ff"] {
            assert_eq!(address_text(address.parse().unwrap()), address);
        }
    }
}
