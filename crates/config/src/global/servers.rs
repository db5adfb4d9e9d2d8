//! `servers [ADDRESS] { … }`: protocols, time-outs and limits of client connections.
//!
//! With an address such as `:443`, `127.0.0.1:80` or `unix//run/site.sock`, the block is for the sites that listen there, and what
//! stands in a block without an address is not for them. A port alone stands for all addresses that have no block of their own.
//!
//! | option | default |
//! |---|---|
//! | `timeouts { read_header D }` | 10s |
//! | `timeouts { read_body D }`, or `read_body_idle D [MIN_BODY_RATE]` | 60s |
//! | `timeouts { write D }`, or `write_idle D` | 60s |
//! | `timeouts { idle D }` | 5m |
//! | `timeouts { last_request D }` | 2s: see below |
//! | `timeouts { write_max_chunk SIZE }` | taken and not needed: what the client takes of an answer counts at once |
//! | `max_header_size SIZE` | 64KiB |
//! | `min_body_rate SIZE` \| `off` | 240 |
//! | `protocols h1 [h2] [h2c] [h3]` | h1 h2 h3 |
//! | `strict_sni_host [on` \| `insecure_off]` | on where a site asks for client certificates |
//! | `trusted_proxies static RANGE…` | none |
//! | `trusted_proxies_strict` | off |
//! | `trusted_proxies_unix` | off |
//! | `client_ip_headers FIELD…` | X-Forwarded-For |
//! | `listener_wrappers { proxy_protocol { … }; http_redirect; tls }` | none |
//! | `keepalive_idle D` | 15s: the silence of a connection before its other end is probed, so that one that is gone is found out |
//! | `keepalive_interval D` | 15s between two probes; less than 0: there are none |
//! | `keepalive_count N` | 9 probes that are not answered are the end |
//! | `enable_full_duplex` | in any case: a script can answer before a body with `request_buffering off` has come |
//! | `expected_underscore_headers NAME…`, `expected_dot_headers NAME…` | none: fields of requests with an underscore or a dot in their names are dropped |
//! | `0rtt off` | in any case: no request is taken that others could send again |
//! | `log_credentials` | off: access logs have `REDACTED` for Cookie, Set-Cookie, Authorization and Proxy-Authorization |
//! | `name TEXT` | `srv0`, `srv1`, … in the order of the addresses: what metrics call it |
//! | `metrics { per_host }` | as the global option of this name, for all servers |
//!
//! `min_body_rate`: bytes a second that a request body brings on average, or else it is answered with 408. A body may be
//! slower for its first 30 seconds (or its `read_body`, if that is shorter), and only the time in which the client is
//! awaited counts.
//!
//! `last_request`: when a stop or a reload ends connections, one that has just been made has this time, from its beginning, for its
//! first request, and one that has sent a part of a request's head for the rest. In an upgrade, one that is kept has it for another
//! request. A client whose connection is closed while its request is on the way would see a reset.
//!
//! `protocols`: h2 is HTTP/2 over TLS, h2c without; h3 is [HTTP/3](https.md#http3), where there is TLS. An address whose UDP port
//! cannot be had goes without it; where `h3` is written, that is an error.
//!
//! `strict_sni_host`: the `Host` of a request over TLS has to be the name of the handshake, or else it is answered with 421.
//!
//! `expected_underscore_headers`, `expected_dot_headers`: PHP has `HTTP_REMOTE_USER` for the field `Remote-User`, and for
//! `Remote_User` and `Remote.User` too, so that a client could say by those what only a proxy or
//! [forward_auth](#forward_auth) may say by the other. So such fields are dropped, as by Caddy and nginx, before anything looks
//! at a request, but for those that are named here, of which a `*` at the end stands for anything: `webhook_*`. Then the same
//! name with hyphens is dropped instead, and so is a field that comes several times. One with both an underscore and a dot
//! has to be named whole.
//!
//! `trusted_proxies`: who is believed about the client: addresses and ranges, and `private_ranges` for all private and loopback
//! ones. With `trusted_proxies_unix` it is also whoever connects to a Unix socket. Behind such a proxy the client's address is
//! the first in the fields of `client_ip_headers`; with `trusted_proxies_strict`, for proxies that append to what a client sends,
//! it is the last that is not a trusted proxy's. The client's address is in `{client_ip}`, in the condition `client_ip` and in the
//! `client_ip` of access logs. PHP is told of it by the option `trust_client_address` of [php_server](#php_server), [php](#php)
//! and [native](#native), behind a trusted proxy alone: REMOTE_ADDR and REMOTE_HOST are the client's address, REMOTE_PORT is empty
//! unless the field has it, HTTPS and REQUEST_SCHEME are as `X-Forwarded-Proto` says, and SERVER_PORT is that of
//! `X-Forwarded-Port`, of `Host`, or of the scheme. Without it `$_SERVER` is about the connection, as in FrankenPHP, and frameworks
//! find the fields themselves.
//!
//! `proxy_protocol`: a balancer that passes connections on tells the client's address before anything else, in version 1 or 2 of the
//! PROXY protocol. Everything takes it for the connection's, PHP too.
//!
//! | option of `proxy_protocol` | default | meaning |
//! |---|---|---|
//! | `timeout DURATION` | 5s | how long a header may take to come |
//! | `allow RANGE…` | | whose header is believed, if there is one |
//! | `deny RANGE…` | | who may send no header |
//! | `fallback_policy POLICY` | ignore | for everybody else: `ignore` the header, `use` it, `reject` who sends one, `require` it, or `skip`: do not look for it |
//!
//! On a Unix socket a header is always believed. `tls` stands behind it, or can be left out.
//!
//! `http_redirect`: who speaks HTTP without TLS where there is TLS, as a browser does that was given `example.com:8443`, is led to the
//! same place with `https://` instead of being told what is wrong.
//!
//! ```caddyfile
//! {
//!     servers {
//!         trusted_proxies static 10.0.0.0/8
//!         client_ip_headers CF-Connecting-IP X-Forwarded-For
//!     }
//! }
//! ```
//!
//! A time-out of 0 is none: whoever holds a connection open then can hold it for ever.

mod keepalive;
mod listener_wrappers;
mod timeouts;
mod trusted_proxies;

use super::metrics;
use crate::call::Call;
use crate::context::Context;
use crate::directives::bind;
use crate::model::{HttpMetrics, HttpProtocol, Listen, LogCredentials, ServerOptions, SniHost, UdpPort};
use crate::problems::{error, unknown, unknown_option};
use crate::unix_socket;
use crate::values;
use regent_caddyfile::{Error, Token};
use trusted_proxies::Proxies;

const OPTIONS: &[&str] = &[
    "0rtt",
    "client_ip_headers",
    "enable_full_duplex",
    "expected_dot_headers",
    "expected_underscore_headers",
    "keepalive_count",
    "keepalive_idle",
    "keepalive_interval",
    "listener_wrappers",
    "log_credentials",
    "max_header_size",
    "metrics",
    "min_body_rate",
    "name",
    "protocols",
    "strict_sni_host",
    "timeouts",
    "trace",
    "trusted_proxies",
    "trusted_proxies_strict",
    "trusted_proxies_unix",
];

const UNBUILT: &[&str] = &["packet_conn_wrappers"];

/// 1 KiB must fit, as a plain request's head does; 16 MiB is beyond any that is meant well.
const HEADER_SIZES: std::ops::RangeInclusive<u64> = 1024..=16 * 1024 * 1024;

/// All `servers` options.
#[derive(Default)]
pub(crate) struct Servers {
    /// Without an address.
    others: ServerBlock,
    /// By address.
    own: Vec<(Token, Listen, ServerBlock)>,
}

/// What one of them says.
#[derive(Clone, Default)]
pub(crate) struct ServerBlock {
    pub options: ServerOptions,
    /// `None`: strict where a site asks for certificates of clients.
    pub sni_host: Option<SniHost>,
    metrics: Option<HttpMetrics>,
}

impl Servers {
    pub(super) fn parse(&mut self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<(), Error> {
        match call.args {
            [] => block(cx, call, &mut self.others),
            [token] => {
                let listen = address(cx, token)?;
                if let Some((first, ..)) = self.own.iter().find(|(_, own, _)| *own == listen) {
                    let message = format!("`servers` for this address is there already ({})", first.span);
                    return Err(error(token, message));
                }
                let mut own = ServerBlock::default();
                block(cx, call, &mut own)?;
                self.own.push((token.clone(), listen, own));
                Ok(())
            }
            _ => Err(call.wrong_arguments(1, "servers [ADDRESS] { OPTION… }")),
        }
    }

    /// What counts at this address: the block for it, the one for its port on all addresses, or the one for all others.
    pub fn of(&self, listen: &Listen) -> &ServerBlock {
        let exact = self.own.iter().find(|(_, own, _)| is_same(own, listen));
        let found = exact.or_else(|| self.own.iter().find(|(_, own, _)| is_port_of(own, listen)));
        found.map_or(&self.others, |(_, _, block)| block)
    }

    /// What any block says, since it counts for all.
    pub(super) fn metrics(&self) -> Option<HttpMetrics> {
        let blocks = std::iter::once(&self.others).chain(self.own.iter().map(|(_, _, block)| block));
        blocks.filter_map(|block| block.metrics).fold(None, |all, own| metrics::merge(all, Some(own)))
    }

    /// Warns of blocks for addresses at which nothing listens.
    pub fn check(&self, cx: &mut Context<'_>, listeners: &[&Listen]) {
        for (token, own, _) in &self.own {
            if !listeners.iter().any(|listen| is_same(own, listen) || is_port_of(own, listen)) {
                cx.warn(token, format!("no site listens at `{}`: this block has no effect", token.text));
            }
        }
    }
}

fn is_same(one: &Listen, other: &Listen) -> bool {
    match (one, other) {
        (Listen::Unix(one), Listen::Unix(other)) => one.path == other.path,
        _ => one == other,
    }
}

/// Whether `own` is the port of `listen` on all addresses.
fn is_port_of(own: &Listen, listen: &Listen) -> bool {
    match (own, listen) {
        (Listen::Tcp(own), Listen::Tcp(listen)) => own.ip().is_unspecified() && own.port() == listen.port(),
        _ => false,
    }
}

fn address(cx: &Context<'_>, token: &Token) -> Result<Listen, Error> {
    if let Some(socket) = token.text.strip_prefix(unix_socket::PREFIX) {
        let socket = unix_socket::parse(socket, cx.environment).map_err(|message| error(token, message))?;
        return Ok(Listen::Unix(socket));
    }
    if let Some(number) = token.text.strip_prefix("fd/") {
        return bind::descriptor(token, number).map(Listen::Descriptor);
    }
    super::listen(&token.text).map(Listen::Tcp).ok_or_else(|| {
        error(
            token,
            format!(
                "`{}` is no address to listen on; write `:443`, `127.0.0.1:80` or `unix//run/site.sock`",
                token.text
            ),
        )
    })
}

fn block(cx: &mut Context<'_>, call: &Call<'_>, block: &mut ServerBlock) -> Result<(), Error> {
    let server = &mut block.options;
    let mut proxies = Proxies::default();
    let mut keepalive = keepalive::Written::default();
    for option in call.options() {
        let result = match option.name() {
            "timeouts" => timeouts::parse(cx, &option, server),
            "max_header_size" => {
                max_header_size(cx, &option).map(|size| server.limits.max_header_size = size)
            }
            "min_body_rate" => min_body_rate(&option).map(|rate| server.limits.min_body_rate = rate),
            "protocols" => protocols(&option).map(|protocols| {
                let asks = protocols.contains(&HttpProtocol::H3);
                server.udp_port = if asks { UdpPort::Required } else { UdpPort::Optional };
                server.protocols = protocols;
            }),
            "strict_sni_host" => sni_host(&option).map(|checked| block.sni_host = Some(checked)),
            "listener_wrappers" => listener_wrappers::parse(cx, &option, server),
            "log_credentials" => {
                option.exactly::<0>("log_credentials").map(|_| server.log_credentials = LogCredentials::Shown)
            }
            name if keepalive::OPTIONS.contains(&name) => keepalive.read(&option),
            "expected_underscore_headers" => {
                expected_fields(&option, '_').map(|names| server.expected_fields.with_underscore = names)
            }
            "expected_dot_headers" => {
                expected_fields(&option, '.').map(|names| server.expected_fields.with_dot = names)
            }
            "enable_full_duplex" => option.exactly::<0>("enable_full_duplex").map(|_| ()),
            "metrics" => metrics::of_server(cx, &option).map(|found| block.metrics = Some(found)),
            "trace" => option.exactly::<0>("trace").map(|_| {
                cx.warn(option.name, "`trace` has no effect: `debug` in the global options shows more");
            }),
            // Nobody's is taken.
            "0rtt" => off(&option, "0rtt off"),
            "name" => option.one("name TEXT").map(|name| server.name = Some(name.text.clone())),
            _ if proxies.takes(&option) => proxies.apply(cx, &option),
            _ => Err(unknown_option(option.name, "servers", OPTIONS, UNBUILT)),
        };
        cx.check(result);
    }
    server.keepalive = keepalive.finish(server.keepalive);
    if let Some(found) = proxies.finish(cx) {
        server.trusted_proxies = Some(found);
    }
    Ok(())
}

/// Memory for it is taken for each connection, so that more than a bound is not given, whatever is written.
fn max_header_size(cx: &mut Context<'_>, option: &Call<'_>) -> Result<usize, Error> {
    let token = option.one("max_header_size SIZE")?;
    let written = values::size(token)?;
    if written < *HEADER_SIZES.start() {
        return Err(error(token, "`max_header_size` must be from 1KiB to 16MiB"));
    }
    let size = written.min(*HEADER_SIZES.end());
    if size < written {
        cx.warn(token, "heads of more than 16MiB are refused all the same");
    }
    usize::try_from(size).map_err(|_| error(token, "`max_header_size` is too large for this machine"))
}

fn min_body_rate(option: &Call<'_>) -> Result<u64, Error> {
    let token = option.one("min_body_rate SIZE | off")?;
    if token.text == "off" { Ok(0) } else { values::size(token) }
}

pub(crate) fn protocols(option: &Call<'_>) -> Result<Vec<HttpProtocol>, Error> {
    let mut protocols = Vec::new();
    for token in option.some("protocols h1 [h2] [h2c] [h3]")? {
        let protocol = protocol(token)?;
        if protocols.contains(&protocol) {
            return Err(error(token, format!("`{}` is written twice", token.text)));
        }
        protocols.push(protocol);
    }
    // As in Caddy (modules/caddyhttp/app.go).
    if !protocols.contains(&HttpProtocol::H1) {
        return Err(error(option.name, "`protocols` cannot be without HTTP/1.1; add `h1`"));
    }
    Ok(protocols)
}

pub(crate) fn protocol(token: &Token) -> Result<HttpProtocol, Error> {
    match token.text.as_str() {
        "h1" => Ok(HttpProtocol::H1),
        "h2" => Ok(HttpProtocol::H2),
        "h2c" => Ok(HttpProtocol::H2c),
        "h3" => Ok(HttpProtocol::H3),
        _ => Err(unknown(token, "protocol", &["h1", "h2", "h2c", "h3"])),
    }
}

fn off(option: &Call<'_>, syntax: &str) -> Result<(), Error> {
    let token = option.one(syntax)?;
    if token.text == "off" { Ok(()) } else { Err(error(token, format!("write: {syntax}"))) }
}

/// As Caddy's `provisionHeaderAliasAllowlist`.
fn expected_fields(option: &Call<'_>, sign: char) -> Result<Vec<String>, Error> {
    let name = |token: &Token| {
        let text = token.text.to_ascii_lowercase();
        let whole = text.strip_suffix('*').unwrap_or(&text);
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'+-.^_`|~".contains(c);
        if !whole.chars().all(is_token) {
            let message = format!("`{}` is no name of a field; a `*` can stand at its end alone", token.text);
            return Err(error(token, message));
        }
        if !whole.contains(sign) {
            return Err(error(
                token,
                format!("there is no `{sign}` in `{}`: such fields are taken", token.text),
            ));
        }
        Ok(text)
    };
    option.some(&format!("{} NAME…", option.name()))?.iter().map(name).collect()
}

fn sni_host(option: &Call<'_>) -> Result<SniHost, Error> {
    let syntax = "strict_sni_host [on | insecure_off]";
    option.without_block(syntax)?;
    match option.args {
        [] => Ok(SniHost::Strict),
        [token] if token.text == "on" => Ok(SniHost::Strict),
        [token] if token.text == "insecure_off" => Ok(SniHost::Free),
        [token] => Err(unknown(token, "value of `strict_sni_host`", &["on", "insecure_off"])),
        _ => Err(option.wrong_arguments(1, syntax)),
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors, load};
    use crate::model::Timeouts;
    use std::time::Duration;

    #[test]
    fn names_of_fields_that_are_expected() {
        let expected = |lines: &str| {
            let text = format!("{{\nservers {{\n{lines}\n}}\n}}\n:80 {{\n}}");
            config(&text).servers[0].options.expected_fields.clone()
        };
        let found = expected("expected_underscore_headers X_A webhook_*\nexpected_dot_headers y.b");
        assert_eq!(found.with_underscore, ["x_a", "webhook_*"]);
        assert_eq!(found.with_dot, ["y.b"]);
        for (line, message) in [
            ("expected_underscore_headers", "too few arguments"),
            ("expected_underscore_headers x-a", "there is no `_` in `x-a`"),
            ("expected_dot_headers x_a", "there is no `.` in `x_a`"),
            ("expected_dot_headers x.*a", "no name of a field"),
            ("expected_dot_headers x.ä", "no name of a field"),
        ] {
            let found = file_errors(&format!("{{\nservers {{\n{line}\n}}\n}}\n:80 {{\n}}"));
            assert!(found.len() == 1 && found[0].contains(message), "{line}: {found:?}");
        }
    }

    #[test]
    fn options() {
        let text = "{\nservers {\ntimeouts {\nread_header 1s\nread_body 2s\nwrite 3s\nidle 4s\nlast_request 5s\n}\nmax_header_size 8KiB\n}\n}";
        let config = config(&format!("{text}\n:80 {{\n}}"));
        let Timeouts { read_header, read_body, write, idle, last_request } =
            config.servers[0].options.timeouts;
        assert_eq!(
            [read_header, read_body, write, idle, last_request],
            [1, 2, 3, 4, 5].map(Duration::from_secs)
        );
        assert_eq!(config.servers[0].options.limits.max_header_size, 8192);
    }

    #[test]
    fn the_rate_of_a_body() {
        let rate = |option: &str| {
            config(&format!("{{\nservers {{\n{option}\n}}\n}}\n:80 {{\n}}")).servers[0]
                .options
                .limits
                .min_body_rate
        };
        assert_eq!(rate("min_body_rate 1KiB"), 1024);
        assert_eq!((rate("min_body_rate off"), rate("min_body_rate 0")), (0, 0));
        assert_eq!(rate("max_header_size 8KiB"), 240);
        let large =
            crate::directives::testing::load("{\nservers {\nmax_header_size 100MB\n}\n}\n:80 {\n}").unwrap();
        assert_eq!(large.config.servers[0].options.limits.max_header_size, 16 << 20);
        assert!(large.warnings[0].to_string().contains("16MiB"), "{:?}", large.warnings);
    }

    #[test]
    fn an_address_can_have_a_block_of_its_own() {
        let text = "{\nservers :81 {\nmax_header_size 8KiB\n}\nservers {\nmax_header_size 9KiB\n}\nservers 127.0.0.1:82 {\n\
                    name x\nenable_full_duplex\n}\nservers unix//a {\n}\n}\n\
                    :81 {\n}\n:83 {\n}\n:82 {\nbind 127.0.0.1 ::1\n}\nhttp://127.0.0.1:81 {\nbind ::1\n}";
        let loaded = load(text).unwrap();
        let size = |listen: &str| {
            let listen = crate::Listen::Tcp(listen.parse().unwrap());
            let server = loaded.config.servers.iter().find(|server| server.listen == listen);
            server.unwrap().options.limits.max_header_size / 1024
        };
        assert_eq!([size("[::]:81"), size("[::1]:81"), size("[::]:83")], [8, 8, 9]);
        assert_eq!([size("127.0.0.1:82"), size("[::1]:82")], [64, 9]);
        let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert!(warnings[0].contains("no site listens at `unix//a`"), "{warnings:?}");
        let names = loaded.config.servers.iter().filter_map(|server| server.options.name.as_deref());
        assert_eq!(names.collect::<Vec<_>>(), ["x"]);
        assert_eq!(file_errors("{\nservers :80 {\n}\nservers :80 {\n}\nservers :81 :82 {\n}\n}").len(), 2);
    }

    #[test]
    fn mistakes() {
        let found = file_errors(
            "{\nservers x {\n}\nservers {\ntimeouts {\nread_hedder 1s\nidle x\n}\nmax_header_size 1\nprotocols h2\n}\n}",
        );
        assert!(found[0].contains("`x` is no address to listen on"), "{found:?}");
        assert_eq!(found.len(), 5, "{found:?}");
    }
}
