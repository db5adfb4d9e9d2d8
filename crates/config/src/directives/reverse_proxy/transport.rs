//! `transport http`; [`fastcgi`](super::fastcgi) has the other.

use super::{Scheme, UpstreamTls, UpstreamVersions, dynamic, fastcgi};
use crate::call::Call;
use crate::context::Context;
use crate::model::{FastCgi, ProxyTransport, UpstreamVerification};
use crate::problems::{error, not_built_as, unknown, unknown_option};
use crate::values::{duration, integer, size};
use regent_caddyfile::{Error, Token};
use std::path::PathBuf;

const OPTIONS: &[&str] = &[
    "compression",
    "dial_timeout",
    "keepalive",
    "keepalive_idle_conns_per_host",
    "keepalive_interval",
    "max_response_header",
    "read_timeout",
    "resolvers",
    "response_header_timeout",
    "tls",
    "tls_client_auth",
    "tls_insecure_skip_verify",
    "tls_server_name",
    "tls_timeout",
    "tls_trust_pool",
    "tls_trusted_ca_certs",
    "versions",
    "write_timeout",
];

/// What Caddy has besides.
const UNBUILT: &[&str] = &[
    "dial_fallback_delay",
    "expect_continue_timeout",
    "forward_proxy_url",
    "keepalive_idle_conns",
    "local_address",
    "max_conns_per_host",
    "max_idle_conns_per_host",
    "network_proxy",
    "proxy_protocol",
    "read_buffer",
    "tls_curves",
    "tls_except_ports",
    "tls_renegotiation",
    "write_buffer",
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
}

impl Written {
    /// That of a directive which is all about FastCGI.
    pub fn of(transport: ProxyTransport, place: &Token) -> Self {
        Self { transport, place: Some(place.clone()), versions: None }
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
        let fits = match (scheme, &self.transport.tls, self.transport.versions) {
            (Scheme::Http | Scheme::Https | Scheme::H2c, ..) if self.transport.fastcgi.is_some() => Err(
                "upstreams of FastCGI have no scheme: write `localhost:9000` or `unix//run/php/php-fpm.sock`",
            ),
            (Scheme::Http, Some(_), _) => Err("upstreams with `http://` have no TLS: write `https://`"),
            (Scheme::H2c, Some(_), _) => Err("upstreams with `h2c://` have no TLS: write `https://`"),
            (_, Some(_), UpstreamVersions::H2c) => Err("`h2c` is without TLS: write `versions 2`"),
            (_, None, UpstreamVersions::Http2) => Err("HTTP/2 without TLS: write `versions h2c`"),
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

    fn read_line(&mut self, cx: &Context<'_>, line: &Call<'_>) -> Result<(), Error> {
        let transport = &mut self.transport;
        match line.name() {
            "dial_timeout" => transport.dial_timeout = duration(line.one("dial_timeout DURATION")?)?,
            "response_header_timeout" => {
                transport.response_header_timeout = duration(line.one("response_header_timeout DURATION")?)?;
            }
            "read_timeout" => transport.read_timeout = duration(line.one("read_timeout DURATION")?)?,
            "write_timeout" => transport.write_timeout = duration(line.one("write_timeout DURATION")?)?,
            "max_response_header" => transport.max_response_header = head_size(line)?,
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
            "resolvers" => transport.dns.servers = dynamic::resolvers(cx, line)?,
            "versions" => {
                transport.versions = versions(line)?;
                self.versions = Some(line.name.clone());
            }
            // Nothing is compressed here that the client has not asked for.
            "compression" => match line.one("compression off")? {
                off if off.text == "off" => {}
                other => return Err(error(other, "write: compression off")),
            },
            _ => return self.read_tls(cx, line),
        }
        Ok(())
    }

    fn read_tls(&mut self, cx: &Context<'_>, line: &Call<'_>) -> Result<(), Error> {
        match line.name() {
            "tls" => {
                line.exactly::<0>("tls")?;
                self.tls();
            }
            "tls_insecure_skip_verify" => {
                line.exactly::<0>("tls_insecure_skip_verify")?;
                self.tls().verification = UpstreamVerification::None;
            }
            "tls_server_name" => {
                self.tls().server_name = Some(cx.fixed_text(line.one("tls_server_name NAME")?)?);
            }
            "tls_timeout" => self.tls().handshake_timeout = duration(line.one("tls_timeout DURATION")?)?,
            "tls_trust_pool" => self.tls().verification = UpstreamVerification::Roots(trust_pool(cx, line)?),
            "tls_trusted_ca_certs" => {
                let files = paths(cx, line.some("tls_trusted_ca_certs FILE…")?)?;
                self.tls().verification = UpstreamVerification::Roots(files);
            }
            "tls_client_auth" => {
                let files = paths(cx, line.exactly::<2>("tls_client_auth CERTIFICATE KEY")?)?;
                self.tls().client_certificate = <[PathBuf; 2]>::try_from(files).ok().map(Into::into);
            }
            _ => return Err(unknown_option(line.name, "transport http", OPTIONS, UNBUILT)),
        }
        Ok(())
    }

    fn tls(&mut self) -> &mut UpstreamTls {
        self.transport.tls.get_or_insert_default()
    }
}

fn head_size(line: &Call<'_>) -> Result<u32, Error> {
    let token = line.one("max_response_header SIZE")?;
    let bytes = size(token)?;
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

/// `tls_trust_pool file PATH…`, or a block of lines `pem_file PATH…`, as Caddy has it.
fn trust_pool(cx: &Context<'_>, line: &Call<'_>) -> Result<Vec<PathBuf>, Error> {
    const SYNTAX: &str = "tls_trust_pool file PATH…";
    let Some((source, files)) = line.args.split_first() else { return Err(line.wrong_arguments(1, SYNTAX)) };
    if source.text != "file" {
        return Err(not_built_as(source, &format!("tls_trust_pool {}", source.text)));
    }
    let mut found = paths(cx, files)?;
    for option in line.options() {
        match option.name() {
            "pem_file" => found.extend(paths(cx, option.some("pem_file PATH…")?)?),
            _ => return Err(unknown_option(option.name, "tls_trust_pool", &["pem_file"], &[])),
        }
    }
    if found.is_empty() { Err(line.wrong_arguments(2, SYNTAX)) } else { Ok(found) }
}

/// Relative ones are to the working directory, as with `tls`.
fn paths(cx: &Context<'_>, tokens: &[Token]) -> Result<Vec<PathBuf>, Error> {
    let path = |token: &Token| Ok(cx.environment.absolute(std::path::Path::new(&cx.fixed_text(token)?)));
    tokens.iter().map(path).collect()
}
