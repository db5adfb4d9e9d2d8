//! A request as PHP sees it: the variables of `$_SERVER` (RFC 3875, and what PHP servers add).

use http::{HeaderMap, HeaderName, Version, header};
use regent_handlers::{Exchange, PhpTarget};
use regent_wire::names::{OTHER, WELL_KNOWN, key};
use regent_wire::{HeadBlock, HeadBuilder};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// SERVER_SOFTWARE.
pub(crate) const SOFTWARE: &str = concat!("Regent/", env!("CARGO_PKG_VERSION"));

/// Keys of the variables that every request has.
macro_rules! keys {
    ($($name:ident)*) => { mod keys { $(pub const $name: u16 = regent_wire::names::key(stringify!($name));)* } };
}
keys! {
    REQUEST_METHOD REQUEST_URI QUERY_STRING CONTENT_TYPE CONTENT_LENGTH SCRIPT_FILENAME SCRIPT_NAME DOCUMENT_ROOT
    DOCUMENT_URI PATH_INFO PATH_TRANSLATED PHP_SELF SERVER_PROTOCOL SERVER_SOFTWARE SERVER_NAME SERVER_PORT
    SERVER_ADDR GATEWAY_INTERFACE REQUEST_SCHEME REMOTE_ADDR REMOTE_HOST REMOTE_PORT REMOTE_USER REMOTE_IDENT
    AUTH_TYPE HTTP_HOST
}

/// Writes requests' variables; made once for each I/O thread.
pub(crate) struct Variables {
    /// Keys of the request fields that have one.
    fields: HashMap<HeaderName, u16>,
}

/// What belongs to the connection: made once for each.
pub(crate) struct Peer {
    /// Everything that is the same for all of its requests, encoded.
    block: HeadBlock,
    local_address: String,
    local_port: String,
}

impl Peer {
    pub fn new(remote: Option<SocketAddr>, local: Option<SocketAddr>) -> Self {
        let address = |socket: Option<SocketAddr>| socket.map(|s| s.ip().to_canonical().to_string());
        let port = |socket: Option<SocketAddr>| socket.map(|s| s.port().to_string());
        let remote_address = address(remote).unwrap_or_default();
        let remote_port = port(remote).unwrap_or_default();
        let local_address = address(local).unwrap_or_default();
        let mut block = HeadBuilder::new();
        for (key, value) in [
            (keys::REQUEST_SCHEME, "http"),
            (keys::GATEWAY_INTERFACE, "CGI/1.1"),
            (keys::SERVER_SOFTWARE, SOFTWARE),
            (keys::SERVER_ADDR, &local_address),
            (keys::REMOTE_ADDR, &remote_address),
            (keys::REMOTE_HOST, &remote_address),
            (keys::REMOTE_PORT, &remote_port),
            (keys::REMOTE_USER, ""),
            (keys::REMOTE_IDENT, ""),
            (keys::AUTH_TYPE, ""),
        ] {
            block.known(key, value.as_bytes());
        }
        Self { block: block.into_block(), local_address, local_port: port(local).unwrap_or_default() }
    }
}

impl Variables {
    pub fn new() -> Self {
        let field = |name: &str| {
            let field = name.strip_prefix("HTTP_")?.replace('_', "-");
            HeaderName::try_from(field).ok().map(|field| (field, key(name)))
        };
        Self { fields: WELL_KNOWN.iter().filter_map(|name| field(name)).collect() }
    }

    /// Writes all variables of a request. `body_length`: `None` if it is not known beforehand.
    pub fn write(
        &self,
        head: &mut HeadBuilder,
        exchange: &Exchange,
        target: &PhpTarget,
        peer: &Peer,
        body_length: Option<u64>,
    ) {
        for (name, value) in &target.env {
            head.named(name.as_bytes(), value.as_bytes());
        }
        head.end_environment();
        request_line(head, exchange);
        script(head, target);
        connection(head, exchange, peer);
        body(head, &exchange.headers, body_length);
        self.fields(head, exchange);
    }

    /// `HTTP_*`: several fields of one name are joined (RFC 9110 §5.3; cookies: RFC 6265 §5.4 with "; "). Names with
    /// an underscore are dropped, since they would pass for the dashed ones; `Proxy` is (httpoxy, CVE-2016-5385).
    fn fields(&self, head: &mut HeadBuilder, exchange: &Exchange) {
        let headers = &exchange.headers;
        // A target in absolute form names the host, whatever the field says (RFC 9112 §3.2.2).
        let authority = exchange.original_uri.authority();
        if let Some(authority) = authority {
            head.known(keys::HTTP_HOST, authority.as_str().as_bytes());
        }
        for name in headers.keys() {
            let superseded = authority.is_some() && *name == header::HOST;
            if superseded || *name == "proxy" || name.as_str().contains('_') {
                continue;
            }
            let mut values = headers.get_all(name).iter();
            let Some(first) = values.next() else { continue };
            let mut joined = Vec::new();
            let value = match values.next() {
                None => first.as_bytes(),
                Some(second) => {
                    let separator: &[u8] = if *name == header::COOKIE { b"; " } else { b", " };
                    joined.extend_from_slice(first.as_bytes());
                    for value in std::iter::once(second).chain(values) {
                        joined.extend_from_slice(separator);
                        joined.extend_from_slice(value.as_bytes());
                    }
                    &joined
                }
            };
            match self.fields.get(name) {
                // CGI has these two without the prefix (RFC 3875 §4.1.18).
                Some(&key) if key == CONTENT_TYPE_FIELD || key == CONTENT_LENGTH_FIELD => {}
                Some(&key) => head.known(key, value),
                None => head.named(variable_name(name).as_bytes(), value),
            }
        }
    }
}

const CONTENT_TYPE_FIELD: u16 = key("HTTP_CONTENT_TYPE");
const CONTENT_LENGTH_FIELD: u16 = key("HTTP_CONTENT_LENGTH");
const _: () = assert!(CONTENT_TYPE_FIELD != OTHER && CONTENT_LENGTH_FIELD != OTHER);

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

fn script(head: &mut HeadBuilder, target: &PhpTarget) {
    let root = target.document_root.as_os_str().as_bytes();
    head.known(keys::DOCUMENT_ROOT, root);
    head.known(keys::SCRIPT_FILENAME, target.script_filename.as_os_str().as_bytes());
    head.known(keys::SCRIPT_NAME, target.script_name.as_bytes());
    head.known(keys::DOCUMENT_URI, target.script_name.as_bytes());
    if target.path_info.is_empty() {
        head.known(keys::PHP_SELF, target.script_name.as_bytes());
    } else {
        head.known(
            keys::PHP_SELF,
            [target.script_name.as_bytes(), target.path_info.as_bytes()].concat().as_slice(),
        );
        head.known(keys::PATH_INFO, target.path_info.as_bytes());
        let translated = translated(&target.document_root, &target.path_info);
        head.known(keys::PATH_TRANSLATED, &translated);
    }
}

/// RFC 3875 §4.1.6: the path info as if it were a path of its own.
fn translated(root: &Path, path_info: &str) -> Vec<u8> {
    [root.as_os_str().as_bytes(), path_info.as_bytes()].concat()
}

fn connection(head: &mut HeadBuilder, exchange: &Exchange, peer: &Peer) {
    let name = if exchange.host.is_empty() { &peer.local_address } else { &exchange.host };
    head.known(keys::SERVER_NAME, name.as_bytes());
    head.known(keys::SERVER_PORT, port(exchange, peer).as_bytes());
    head.block(&peer.block);
}

/// The port that the client named, or that of the listener.
fn port<'a>(exchange: &'a Exchange, peer: &'a Peer) -> &'a str {
    let named = match exchange.original_uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => exchange.headers.get(header::HOST).and_then(|host| host.to_str().ok()),
    };
    let port = named.and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
    match port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(port) => port,
        None => &peer.local_port,
    }
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

/// `x-forwarded-for` → `HTTP_X_FORWARDED_FOR`.
fn variable_name(field: &HeaderName) -> String {
    let mut name = String::with_capacity(5 + field.as_str().len());
    name.push_str("HTTP_");
    name.extend(field.as_str().chars().map(|c| if c == '-' { '_' } else { c.to_ascii_uppercase() }));
    name
}
