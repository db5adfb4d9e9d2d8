//! `dynamic`: upstreams that DNS knows (Caddy's reverseproxy/upstreams.go).

use super::upstream::with_environment;
use crate::call::Call;
use crate::context::Context;
use crate::host_names;
use crate::model::{AddressFamilies, DnsServers, DynamicRecords, DynamicUpstreams, Template};
use crate::problems::{error, unknown, unknown_option};
use crate::resolvers;
use crate::values::{duration, integer, positive_duration};
use regent_caddyfile::{Error, Token};
use std::time::Duration;

/// As in Caddy.
const REFRESH: Duration = Duration::from_secs(60);
const MOST_SOURCES: usize = 16;

const COMMON: &[&str] = &["dial_fallback_delay", "dial_timeout", "name", "refresh", "resolvers"];
const OF_A: &[&str] = &["port", "versions"];
const OF_SRV: &[&str] = &["grace_period", "proto", "service"];

/// `dynamic SOURCE …`. `sources`: those that the directive has already.
pub(super) fn read(
    cx: &mut Context<'_>,
    option: &Call<'_>,
    sources: &mut Vec<DynamicUpstreams>,
) -> Result<(), Error> {
    if !sources.is_empty() {
        return Err(error(
            option.name,
            "there is a `dynamic` already; write several sources in `dynamic multi`",
        ));
    }
    let Some((kind, args)) = option.args.split_first() else {
        return Err(option.wrong_arguments(1, "dynamic a NAME PORT"));
    };
    let call = Call { name: kind, args, block: option.block };
    if kind.text != "multi" {
        sources.push(source(cx, &call)?);
        return Ok(());
    }
    call.no_arguments("dynamic multi { SOURCE… }")?;
    if call.options().next().is_none() {
        return Err(error(kind, "`dynamic multi` needs a source; write: dynamic multi { a NAME PORT }"));
    }
    for line in call.options() {
        if sources.len() == MOST_SOURCES {
            return Err(error(line.name, format!("a directive has at most {MOST_SOURCES} sources")));
        }
        let source = source(cx, &line);
        sources.extend(cx.check(source));
    }
    Ok(())
}

fn source(cx: &mut Context<'_>, call: &Call<'_>) -> Result<DynamicUpstreams, Error> {
    match call.name() {
        "a" => addresses(cx, call),
        "srv" => services(cx, call),
        _ => Err(unknown(call.name, "source of upstreams", &["a", "multi", "srv"])),
    }
}

fn addresses(cx: &mut Context<'_>, call: &Call<'_>) -> Result<DynamicUpstreams, Error> {
    let (mut name, mut port) = match call.args {
        [] => (None, None),
        [name] => (Some(name), None),
        [name, port] => (Some(name), Some(port)),
        _ => return Err(call.wrong_arguments(2, "a [NAME [PORT]]")),
    };
    let mut families = AddressFamilies::Both;
    let mut common = Common::default();
    for line in call.options() {
        match line.name() {
            "name" => name = Some(line.one("name NAME")?),
            "port" => port = Some(line.one("port PORT")?),
            "versions" => families = versions(line.some("versions ipv4 | ipv6")?)?,
            _ => common.read(cx, &line, OF_A)?,
        }
    }
    let name = named(call, name)?;
    let port = port.map_or(Ok(Template::text("80")), |token| port_of(cx, token))?;
    let name = with_environment(cx, host_names::pattern(name)?);
    Ok(common.finish(DynamicRecords::Addresses { name, port, families }))
}

fn services(cx: &mut Context<'_>, call: &Call<'_>) -> Result<DynamicUpstreams, Error> {
    let mut name = match call.args {
        [] => None,
        [name] => Some(name),
        _ => return Err(call.wrong_arguments(1, "srv [NAME]")),
    };
    let (mut service, mut protocol, mut grace_period) = (None, None, None);
    let mut common = Common::default();
    for line in call.options() {
        match line.name() {
            "name" => name = Some(line.one("name NAME")?),
            "service" => service = Some(line.one("service SERVICE")?),
            "proto" => protocol = Some(line.one("proto tcp | udp")?),
            "grace_period" => grace_period = Some(positive_duration(line.one("grace_period DURATION")?)?),
            _ => common.read(cx, &line, OF_SRV)?,
        }
    }
    let name = named(call, name)?;
    let text = match (service, protocol) {
        (None, None) => name.text.clone(),
        (Some(service), Some(protocol)) => format!("_{}._{}.{}", service.text, protocol.text, name.text),
        (Some(alone), None) | (None, Some(alone)) => {
            return Err(error(
                alone,
                "`service` and `proto` belong together: they make `_SERVICE._PROTO.NAME`",
            ));
        }
    };
    let name = with_environment(cx, host_names::pattern_of(name, &text)?);
    Ok(common.finish(DynamicRecords::Services { name, grace_period }))
}

fn named<'a>(call: &Call<'a>, name: Option<&'a Token>) -> Result<&'a Token, Error> {
    let kind = call.name();
    name.ok_or_else(|| error(call.name, format!("`{kind}` needs a name; write: dynamic {kind} NAME")))
}

/// A number, unless the request says it.
fn port_of(cx: &Context<'_>, token: &Token) -> Result<Template, Error> {
    let template = Template::parse(&token.text);
    let Some(text) = cx.fixed(&template) else { return Ok(with_environment(cx, template)) };
    let read = Token { text, ..token.clone() };
    integer(&read, 1..=u16::MAX, "port").map(|port: u16| Template::text(port.to_string()))
}

fn versions(tokens: &[Token]) -> Result<AddressFamilies, Error> {
    let unknown = tokens.iter().find(|token| !matches!(token.text.as_str(), "ipv4" | "ipv6"));
    if let Some(token) = unknown {
        return Err(self::unknown(token, "version of IP", &["ipv4", "ipv6"]));
    }
    let has = |version: &str| tokens.iter().any(|token| token.text == version);
    Ok(match (has("ipv4"), has("ipv6")) {
        (true, false) => AddressFamilies::Ipv4,
        (false, true) => AddressFamilies::Ipv6,
        _ => AddressFamilies::Both,
    })
}

/// What all sources say.
#[derive(Default)]
struct Common {
    refresh: Option<Duration>,
    dns: DnsServers,
}

impl Common {
    /// `own`: the other options of the source.
    fn read(&mut self, cx: &Context<'_>, line: &Call<'_>, own: &[&str]) -> Result<(), Error> {
        match line.name() {
            "refresh" => self.refresh = Some(positive_duration(line.one("refresh DURATION")?)?),
            "resolvers" => self.dns.servers = resolvers::parse(cx, line)?,
            "dial_timeout" => self.dns.timeout = Some(positive_duration(line.one("dial_timeout DURATION")?)?),
            // It is between the addresses of a DNS server, and each has one.
            "dial_fallback_delay" => drop(duration(line.one("dial_fallback_delay DURATION")?)?),
            _ => return Err(unknown_option(line.name, "dynamic", &[COMMON, own].concat(), &[])),
        }
        Ok(())
    }

    fn finish(self, records: DynamicRecords) -> DynamicUpstreams {
        DynamicUpstreams { records, refresh: self.refresh.unwrap_or(REFRESH), dns: self.dns }
    }
}
