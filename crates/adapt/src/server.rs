//! A server: where it listens, what it allows clients, and its sites.

use crate::Writer;
use crate::object::{Object, nanoseconds};
use crate::tls::is_redirect;
use crate::words::{self, Line};
use regent_config::{
    ClientIpReading, ExpectedFields, HttpProtocol, IpRange, Keepalive, Limits, Listen, LogCredentials,
    PlainHttp, ProxyPolicy, ProxyProtocol, Server, ServerOptions, ServerTls, SniHost, Timeouts,
    TrustedProxies, UdpPort, UnixSocket,
};
use serde_json::Value;
use std::net::Ipv6Addr;

impl Writer<'_> {
    /// Servers that differ in their addresses alone. Never empty.
    pub(crate) fn server(&self, alike: &[&Server]) -> Object {
        let Server { listen: _, tls, options, sites, purpose: _ } = alike[0];
        // What only redirects to HTTPS follows from the sites with HTTPS.
        let sites: Vec<_> = sites.iter().filter(|site| !is_redirect(site)).collect();
        let mut server = Object::new();
        server.set_list("listen", alike.iter().map(|server| listen(&server.listen)));
        set_options(&mut server, options);
        if let Some(tls) = tls {
            let asks_clients =
                sites.iter().any(|site| site.tls.as_ref().is_some_and(|tls| tls.client_auth.is_some()));
            set_sni_host(&mut server, tls, asks_clients);
        }
        self.set_https(&mut server, alike, &sites);
        self.set_logs(&mut server, &sites, options.log_credentials == LogCredentials::Shown);
        self.set_sites(&mut server, &sites);
        server
    }
}

/// As `listen` has it.
pub(crate) fn listen(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) if address.ip().is_unspecified() && address.is_ipv6() => {
            format!(":{}", address.port())
        }
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(UnixSocket { path, mode: 0o200 }) => format!("unix/{}", path.display()),
        Listen::Unix(UnixSocket { path, mode }) => format!("unix/{}|{mode:04o}", path.display()),
        Listen::Descriptor(number) => format!("fd/{number}"),
    }
}

/// A range of addresses; one address alone has no length.
pub(crate) fn range((address, bits): &IpRange) -> String {
    let all = if address.is_ipv4() { 32 } else { 128 };
    match *bits == all {
        true => address.to_string(),
        false => format!("{address}/{bits}"),
    }
}

pub(crate) fn ranges(ranges: &[IpRange]) -> Vec<String> {
    ranges.iter().map(range).collect()
}

fn set_options(server: &mut Object, options: &ServerOptions) {
    // The name is the server's key.
    let ServerOptions {
        name: _,
        protocols,
        udp_port,
        timeouts,
        limits,
        trusted_proxies,
        proxy_protocol,
        log_credentials: _,
        expected_fields: ExpectedFields { with_underscore, with_dot },
        plain_http,
        keepalive,
    } = options;
    let usual = ServerOptions::default();
    if *protocols != usual.protocols || *udp_port == UdpPort::Required {
        server.set_list("protocols", protocols.iter().map(|protocol| protocol_name(*protocol)));
    }
    set_timeouts(server, timeouts, limits);
    if let Some(proxies) = trusted_proxies {
        set_trusted_proxies(server, proxies);
    }
    set_wrappers(server, proxy_protocol.as_ref(), *plain_http);
    set_keepalive(server, *keepalive);
    server.set_list("expected_underscore_headers", with_underscore.iter().map(String::as_str));
    server.set_list("expected_dot_headers", with_dot.iter().map(String::as_str));
}

fn protocol_name(protocol: HttpProtocol) -> &'static str {
    match protocol {
        HttpProtocol::H1 => "h1",
        HttpProtocol::H2 => "h2",
        HttpProtocol::H2c => "h2c",
        HttpProtocol::H3 => "h3",
    }
}

fn set_timeouts(server: &mut Object, timeouts: &Timeouts, limits: &Limits) {
    let Timeouts { read_header, read_body, write, idle, last_request } = *timeouts;
    // No option of a file sets a size of bodies for a whole server.
    let Limits { max_header_size, max_body_size: _, min_body_rate } = *limits;
    let (usual, usual_limits) = (Timeouts::default(), Limits::default());
    server.set_duration("read_header_timeout", read_header, usual.read_header);
    if min_body_rate == usual_limits.min_body_rate {
        server.set_duration("read_timeout", read_body, usual.read_body);
    } else {
        server.set("read_idle_timeout", nanoseconds(read_body));
        server.set("read_min_rate", min_body_rate);
    }
    server.set_duration("write_timeout", write, usual.write);
    server.set_duration("idle_timeout", idle, usual.idle);
    if last_request != usual.last_request {
        let line = Line::new(["last_request"]).word(words::duration(last_request));
        server.set_list("regent", [Line::new(["timeouts"]).block(vec![line]).build()]);
    }
    server.set_unless("max_header_bytes", max_header_size, usual_limits.max_header_size);
}

fn set_trusted_proxies(server: &mut Object, proxies: &TrustedProxies) {
    let TrustedProxies { ranges: trusted, unix, reading, headers } = proxies;
    if !trusted.is_empty() {
        let mut source = Object::of_kind("source", "static");
        source.set_list("ranges", ranges(trusted));
        server.set("trusted_proxies", source);
    }
    server.set_if("trusted_proxies_unix", *unix);
    if *reading == ClientIpReading::RightMostUntrusted {
        server.set("trusted_proxies_strict", 1);
    }
    if *headers != ["x-forwarded-for"] {
        server.set_list("client_ip_headers", headers.iter().map(|header| field_name(header)));
    }
}

/// A name in lower case, as it looks in a header.
pub(crate) fn field_name(name: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        letters
            .next()
            .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
            .unwrap_or_default()
    };
    name.split('-').map(capital).collect::<Vec<_>>().join("-")
}

fn set_wrappers(server: &mut Object, proxy_protocol: Option<&ProxyProtocol>, plain_http: PlainHttp) {
    let mut wrappers: Vec<Value> =
        proxy_protocol.map(|protocol| wrapper(protocol).build()).into_iter().collect();
    if plain_http == PlainHttp::Redirected {
        wrappers.push(Object::of_kind("wrapper", "http_redirect").build());
    }
    if !wrappers.is_empty() {
        wrappers.push(Object::of_kind("wrapper", "tls").build());
    }
    server.set_list("listener_wrappers", wrappers);
}

fn wrapper(protocol: &ProxyProtocol) -> Object {
    let ProxyProtocol { timeout, allow, deny, fallback } = protocol;
    let mut wrapper = Object::of_kind("wrapper", "proxy_protocol");
    wrapper.set_duration("timeout", *timeout, ProxyProtocol::default().timeout);
    wrapper.set_list("allow", ranges(allow));
    wrapper.set_list("deny", ranges(deny));
    wrapper.set_unless("fallback_policy", policy(*fallback), policy(ProxyPolicy::default()));
    wrapper
}

fn policy(policy: ProxyPolicy) -> &'static str {
    match policy {
        ProxyPolicy::Ignore => "IGNORE",
        ProxyPolicy::Use => "USE",
        ProxyPolicy::Reject => "REJECT",
        ProxyPolicy::Require => "REQUIRE",
        ProxyPolicy::Skip => "SKIP",
    }
}

fn set_keepalive(server: &mut Object, keepalive: Option<Keepalive>) {
    let Some(Keepalive { idle, interval, count }) = keepalive else {
        server.set("keepalive_interval", -1);
        return;
    };
    let usual = Keepalive::default();
    server.set_duration("keepalive_interval", interval, usual.interval);
    server.set_duration("keepalive_idle", idle, usual.idle);
    server.set_unless("keepalive_count", count, usual.count);
}

fn set_sni_host(server: &mut Object, tls: &ServerTls, asks_clients: bool) {
    let ServerTls { sni_host } = tls;
    let usual = if asks_clients { SniHost::Strict } else { SniHost::Free };
    if *sni_host != usual {
        server.set("strict_sni_host", *sni_host == SniHost::Strict);
    }
}

/// An address as it stands beside a port.
pub(crate) fn with_port(host: &str, port: u16) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(_) => format!("[{host}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    }
}
