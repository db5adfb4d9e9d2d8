//! `transport http`; [`fastcgi`](super::fastcgi) has the other.

mod forward_proxy;
mod tls;

use super::{Scheme, UpstreamTls, UpstreamVersions, fastcgi};
use crate::call::Call;
use crate::context::Context;
use crate::model::{FastCgi, ProxyProtocolVersion, ProxyTransport};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use crate::resolvers;
use crate::values::{duration, integer, size};
use regent_caddyfile::{Error, Token};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Without those of TLS.
const OPTIONS: &[&str] = &[
    "compression",
    "dial_fallback_delay",
    "dial_timeout",
    "expect_continue_timeout",
    "forward_proxy_url",
    "keepalive",
    "keepalive_idle_conns",
    "keepalive_idle_conns_per_host",
    "keepalive_interval",
    "local_address",
    "max_conns_per_host",
    "max_response_header",
    "network_proxy",
    "proxy_protocol",
    "read_buffer",
    "read_timeout",
    "resolvers",
    "response_header_timeout",
    "versions",
    "write_buffer",
    "write_timeout",
];

/// Bytes of a head: hyper's buffer has no less, and one of megabytes is no head.
const HEAD_SIZES: std::ops::RangeInclusive<u64> = 8 * 1024..=16 * 1024 * 1024;

/// What the directive says of the transport.
#[derive(Default)]
pub(in crate::directives) struct Written {
    transport: ProxyTransport,
    /// Where it stands.
    place: Option<Token>,
    versions: Option<Token>,
    /// `versions h2c 2`: HTTP/2 in any case.
    is_http2_either_way: bool,
}

impl Written {
    /// That of a directive which is all about FastCGI.
    pub fn of(transport: ProxyTransport, place: &Token) -> Self {
        Self { transport, place: Some(place.clone()), ..Self::default() }
    }

    pub fn read(&mut self, cx: &mut Context<'_>, option: &Call<'_>) {
        if self.place.is_some() {
            cx.errors.push(error(option.name, "there is a `transport` already"));
        }
        self.place = Some(option.name.clone());
        match option.args {
            [kind] if kind.text == "http" => {}
            [kind] if kind.text == "fastcgi" => self.transport.fastcgi = Some(FastCgi::default()),
            [kind] => cx.errors.push(unknown(kind, "transport", &["fastcgi", "http"])),
            _ => cx.errors.push(option.wrong_arguments(1, "transport http { … }")),
        }
        for line in option.options() {
            let read = match self.transport.fastcgi {
                Some(_) => fastcgi::option(cx, &line, &mut self.transport),
                None => self.read_line(cx, &line),
            };
            cx.check(read);
        }
    }

    /// With what the scheme of the upstreams says.
    pub(super) fn finish(mut self, cx: &mut Context<'_>, scheme: Scheme) -> ProxyTransport {
        if scheme == Scheme::Https && self.transport.fastcgi.is_none() {
            self.tls();
        }
        if self.is_http2_either_way && self.transport.tls.is_some() {
            self.transport.versions = UpstreamVersions::Http2;
        }
        let fits = match (scheme, &self.transport.tls, self.transport.versions) {
            (Scheme::Http | Scheme::Https | Scheme::H2c, ..) if self.transport.fastcgi.is_some() => Err(
                "upstreams of FastCGI have no scheme: write `localhost:9000` or `unix//run/php/php-fpm.sock`",
            ),
            (Scheme::Http, Some(_), _) => Err("upstreams with `http://` have no TLS: write `https://`"),
            (Scheme::H2c, Some(_), _) => Err("upstreams with `h2c://` have no TLS: write `https://`"),
            (_, Some(_), UpstreamVersions::H2c) => Err("`h2c` is without TLS: write `versions 2`"),
            (_, None, UpstreamVersions::Http2) => Err("HTTP/2 without TLS: write `versions h2c`"),
            (Scheme::H2c, ..) | (_, _, UpstreamVersions::H2c) if self.transport.forward_proxy.is_some() => {
                Err(
                    "what goes through a proxy without TLS goes by HTTP/1.1: leave `h2c` or `network_proxy` out",
                )
            }
            _ if self.transport.forward_proxy.is_some() && self.transport.proxy_protocol.is_some() => {
                Err("what `proxy_protocol` sends would reach the proxy of `network_proxy`, and no upstream")
            }
            _ => Ok(()),
        };
        if let (Err(message), Some(place)) = (fits, self.versions.as_ref().or(self.place.as_ref())) {
            cx.errors.push(error(place, message));
        }
        if scheme == Scheme::H2c {
            self.transport.versions = UpstreamVersions::H2c;
        }
        self.transport
    }

    fn read_line(&mut self, cx: &mut Context<'_>, line: &Call<'_>) -> Result<(), Error> {
        let transport = &mut self.transport;
        match line.name() {
            "dial_timeout" => transport.dial_timeout = duration(line.one("dial_timeout DURATION")?)?,
            "response_header_timeout" => {
                transport.response_header_timeout = duration(line.one("response_header_timeout DURATION")?)?;
            }
            "read_timeout" => transport.read_timeout = duration(line.one("read_timeout DURATION")?)?,
            "write_timeout" => transport.write_timeout = duration(line.one("write_timeout DURATION")?)?,
            "max_response_header" => transport.max_response_header = head_size(cx, line)?,
            "keepalive" => {
                let token = line.one("keepalive DURATION | off")?;
                transport.keepalive = if token.text == "off" { None } else { Some(duration(token)?) };
            }
            "keepalive_interval" => {
                transport.keepalive_interval = duration(line.one("keepalive_interval DURATION")?)?;
            }
            "keepalive_idle_conns_per_host" => {
                let token = line.one("keepalive_idle_conns_per_host COUNT")?;
                transport.keepalive_idle_conns_per_host = integer(token, 1..=u16::MAX, line.name())?;
            }
            "keepalive_idle_conns" => {
                let token = line.one("keepalive_idle_conns COUNT")?;
                transport.keepalive_idle_conns = integer(token, 0..=u16::MAX, line.name())?;
            }
            "dial_fallback_delay" => {
                transport.head_start = head_start(line.one("dial_fallback_delay DURATION")?)?;
            }
            "local_address" => transport.local_address = Some(local_address(line.one("local_address IP")?)?),
            "proxy_protocol" => {
                transport.proxy_protocol = Some(proxy_protocol(line.one("proxy_protocol v1 | v2")?)?);
            }
            "resolvers" => transport.dns.servers = resolvers::parse(cx, line)?,
            "versions" => {
                transport.versions = versions(line)?;
                let has = |version: &str| line.args.iter().any(|token| token.text == version);
                self.is_http2_either_way = has("h2c") && has("2");
                self.versions = Some(line.name.clone());
            }
            // Nothing is compressed here that the client has not asked for.
            "compression" => match line.one("compression off")? {
                off if off.text == "off" => {}
                other => return Err(error(other, "write: compression off")),
            },
            // An expectation of the client is met here.
            "expect_continue_timeout" => drop(duration(line.one("expect_continue_timeout DURATION")?)?),
            // Buffers grow as they are needed.
            "read_buffer" | "write_buffer" => drop(size(line.one(&format!("{} SIZE", line.name()))?)?),
            // That of the environment is used by nobody.
            "network_proxy" => transport.forward_proxy = forward_proxy::option(cx, line)?,
            "forward_proxy_url" => transport.forward_proxy = forward_proxy::old_option(cx, line)?,
            "max_conns_per_host" => {
                let count: u16 = integer(line.one("max_conns_per_host COUNT")?, 0..=u16::MAX, line.name())?;
                transport.max_conns_per_host = Some(count).filter(|count| *count > 0);
            }
            name if tls::OPTIONS.contains(&name) => tls::option(cx, line, self.tls())?,
            _ => {
                let known = [OPTIONS, tls::OPTIONS].concat();
                return Err(unknown_option(line.name, "transport http", &known, &[]));
            }
        }
        Ok(())
    }

    fn tls(&mut self) -> &mut UpstreamTls {
        self.transport.tls.get_or_insert_default()
    }
}

/// Less than 0: each address has all the time that there is. 0: as much as if nothing were said.
fn head_start(token: &Token) -> Result<Option<Duration>, Error> {
    if token.text.starts_with('-') {
        return Ok(None);
    }
    let delay = duration(token)?;
    Ok(if delay.is_zero() { ProxyTransport::default().head_start } else { Some(delay) })
}

/// An address, with a port only if that is 0: one port is one connection.
fn local_address(token: &Token) -> Result<IpAddr, Error> {
    let text = token.text.strip_prefix("tcp/").unwrap_or(&token.text);
    let with_port = |text: &str| text.parse().ok().filter(|address: &SocketAddr| address.port() == 0);
    let ip = text.parse().ok().or_else(|| with_port(text).map(|address| address.ip()));
    ip.ok_or_else(|| {
        error(token, format!("`{}` is no IP address of this machine, such as 10.0.0.2", token.text))
    })
}

fn proxy_protocol(token: &Token) -> Result<ProxyProtocolVersion, Error> {
    match token.text.as_str() {
        "v1" => Ok(ProxyProtocolVersion::V1),
        "v2" => Ok(ProxyProtocolVersion::V2),
        _ => Err(unknown(token, "version of the PROXY protocol", &["v1", "v2"])),
    }
}

fn head_size(cx: &mut Context<'_>, line: &Call<'_>) -> Result<u32, Error> {
    let token = line.one("max_response_header SIZE")?;
    let written = size(token)?;
    let bytes = written.min(*HEAD_SIZES.end());
    if bytes < written {
        cx.warn(token, "heads of more than 16MiB are refused all the same");
    }
    let fits = u32::try_from(bytes).ok().filter(|_| HEAD_SIZES.contains(&bytes));
    fits.ok_or_else(|| error(token, format!("`{}` must be from 8KiB to 16MiB", token.text)))
}

fn versions(line: &Call<'_>) -> Result<UpstreamVersions, Error> {
    let tokens = line.some("versions VERSION…")?;
    for token in tokens {
        match token.text.as_str() {
            "1.1" | "2" | "h2c" => {}
            "3" => return Err(not_built_as(token, "versions 3")),
            _ => return Err(unknown(token, "version", &["1.1", "2", "h2c"])),
        }
    }
    let has = |version: &str| tokens.iter().any(|token| token.text == version);
    Ok(match (has("1.1"), has("2"), has("h2c")) {
        (_, _, true) => UpstreamVersions::H2c,
        (true, true, false) => UpstreamVersions::Either,
        (false, true, false) => UpstreamVersions::Http2,
        _ => UpstreamVersions::Http1,
    })
}
