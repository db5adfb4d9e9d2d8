//! How upstreams are talked to.

use super::dynamic::resolver;
use crate::Writer;
use crate::object::{Object, nanoseconds};
use crate::server::with_port;
use crate::text::text;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regent_config::{
    Curve, FastCgi, ForwardProxy, ProxyProtocolVersion, ProxyTransport, UpstreamAddress, UpstreamTls,
    UpstreamVerification, UpstreamVersions,
};
use std::path::PathBuf;

impl Writer<'_> {
    /// `None`: nothing is said.
    pub(super) fn transport(&self, transport: &ProxyTransport) -> Option<Object> {
        if let Some(fastcgi) = &transport.fastcgi {
            return Some(self::fastcgi(fastcgi, transport));
        }
        let http = self.http_transport(transport);
        let is_usual = *transport == ProxyTransport::default();
        (!is_usual).then_some(http)
    }

    fn http_transport(&self, transport: &ProxyTransport) -> Object {
        let ProxyTransport {
            fastcgi: _,
            tls,
            versions,
            dns,
            dial_timeout,
            response_header_timeout,
            read_timeout,
            write_timeout,
            max_response_header,
            keepalive: _,
            keepalive_interval: _,
            keepalive_idle_conns_per_host: _,
            keepalive_idle_conns: _,
            head_start,
            local_address,
            proxy_protocol,
            forward_proxy,
            max_conns_per_host,
        } = transport;
        let usual = ProxyTransport::default();
        let mut object = Object::of_kind("protocol", "http");
        object.set_some("tls", tls.as_ref().map(upstream_tls));
        object.set_some("versions", version_names(*versions));
        object.non_empty("resolver", resolver(dns));
        object.set_some_duration(
            "dial_timeout",
            Some(*dial_timeout).filter(|time| *time != usual.dial_timeout),
        );
        object.set_duration(
            "response_header_timeout",
            *response_header_timeout,
            usual.response_header_timeout,
        );
        object.set_duration("read_timeout", *read_timeout, usual.read_timeout);
        object.set_duration("write_timeout", *write_timeout, usual.write_timeout);
        object.set_unless("max_response_header_size", *max_response_header, usual.max_response_header);
        object.non_empty("keep_alive", keepalive(transport));
        if *head_start != usual.head_start {
            object.set("dial_fallback_delay", head_start.map_or(-1_000_000_000, nanoseconds));
        }
        object.set_some("local_address", local_address.map(|address| address.to_string()));
        object.set_some("proxy_protocol", proxy_protocol.map(protocol_version));
        object.set_some("network_proxy", forward_proxy.as_ref().map(|proxy| self.network_proxy(proxy)));
        object.set_some("max_conns_per_host", *max_conns_per_host);
        object
    }

    fn network_proxy(&self, proxy: &ForwardProxy) -> Object {
        let ForwardProxy { address, authorization } = proxy;
        let place = match address {
            UpstreamAddress::Tcp { host, port } => with_port(host, *port),
            UpstreamAddress::Unix(path) => path.display().to_string(),
        };
        let login = authorization.as_ref().map(|authorization| login(&authorization.0)).unwrap_or_default();
        let mut object = Object::of_kind("from", "url");
        object.set("url", format!("http://{login}{place}"));
        object
    }
}

fn fastcgi(fastcgi: &FastCgi, transport: &ProxyTransport) -> Object {
    let FastCgi { root, split, env, resolve_root_symlink, capture_stderr } = fastcgi;
    let usual = ProxyTransport::default();
    let mut object = Object::of_kind("protocol", "fastcgi");
    object.set_some("root", root.as_ref().map(text));
    object.set_list("split_path", split.iter().cloned());
    let mut variables = Object::new();
    env.iter().for_each(|(name, value)| variables.set(name, text(value)));
    object.non_empty("env", variables);
    object.set_if("resolve_root_symlink", *resolve_root_symlink);
    object.set_if("capture_stderr", *capture_stderr);
    object.set_duration("dial_timeout", transport.dial_timeout, usual.dial_timeout);
    object.set_duration("read_timeout", transport.read_timeout, usual.read_timeout);
    object.set_duration("write_timeout", transport.write_timeout, usual.write_timeout);
    object
}

fn keepalive(transport: &ProxyTransport) -> Object {
    let usual = ProxyTransport::default();
    let mut object = Object::new();
    match transport.keepalive {
        None => object.set("enabled", false),
        some if some != usual.keepalive => object.set_some_duration("idle_timeout", some),
        Some(_) => {}
    }
    object.set_duration("probe_interval", transport.keepalive_interval, usual.keepalive_interval);
    object.set_unless("max_idle_conns", transport.keepalive_idle_conns, usual.keepalive_idle_conns);
    let (per_host, usual) = (transport.keepalive_idle_conns_per_host, usual.keepalive_idle_conns_per_host);
    object.set_unless("max_idle_conns_per_host", per_host, usual);
    object
}

fn version_names(versions: UpstreamVersions) -> Option<Vec<&'static str>> {
    match versions {
        UpstreamVersions::Either => None,
        UpstreamVersions::Http1 => Some(vec!["1.1"]),
        UpstreamVersions::Http2 => Some(vec!["2"]),
        UpstreamVersions::H2c => Some(vec!["h2c", "2"]),
    }
}

fn protocol_version(version: ProxyProtocolVersion) -> &'static str {
    match version {
        ProxyProtocolVersion::V1 => "v1",
        ProxyProtocolVersion::V2 => "v2",
    }
}

fn upstream_tls(tls: &UpstreamTls) -> Object {
    let UpstreamTls {
        verification,
        server_name,
        client_certificate,
        handshake_timeout,
        except_ports,
        curves,
    } = tls;
    let mut object = Object::new();
    match verification {
        UpstreamVerification::SystemRoots => {}
        UpstreamVerification::Roots(files) => object.set("ca", pem_files(files)),
        UpstreamVerification::None => object.set("insecure_skip_verify", true),
    }
    object.set_some("server_name", server_name.as_deref());
    if let Some((certificate, key)) = client_certificate {
        object.set("client_certificate_file", certificate.display().to_string());
        object.set("client_certificate_key_file", key.display().to_string());
    }
    object.set_duration("handshake_timeout", *handshake_timeout, UpstreamTls::default().handshake_timeout);
    object.set_list("except_ports", except_ports.iter().map(u16::to_string));
    object.set_list("curves", curves.iter().map(|curve: &Curve| curve.name()));
    object
}

/// Certificates that are trusted.
pub(crate) fn pem_files(files: &[PathBuf]) -> Object {
    let mut object = Object::of_kind("provider", "file");
    object.set_list("pem_files", files.iter().map(|file| file.display().to_string()));
    object
}

/// What stands before the host of a URL for a value of `Proxy-Authorization`: name and password (RFC 7617).
fn login(authorization: &str) -> String {
    let encoded = authorization.strip_prefix("Basic ").unwrap_or_default();
    let pair = STANDARD.decode(encoded).unwrap_or_default();
    match pair.iter().position(|byte| *byte == b':') {
        Some(at) => format!("{}:{}@", percent_encoded(&pair[..at]), percent_encoded(&pair[at + 1..])),
        None => String::new(),
    }
}

fn percent_encoded(bytes: &[u8]) -> String {
    let encoded = |byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    bytes.iter().map(encoded).collect()
}
