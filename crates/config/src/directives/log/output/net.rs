//! `output net ADDRESS { dial_timeout DURATION; soft_start }` (modules/logging/netwriter.go of Caddy).

use crate::call::Call;
use crate::context::Context;
use crate::host_names::ascii_host;
use crate::model::{LogAddress, LogNet, LogNetStart};
use crate::problems::{error, not_built_as, unknown_option};
use crate::{unix_socket, values};
use regent_caddyfile::{Error, Token};
use std::path::Path;
use std::time::Duration;

/// As in Caddy.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>, token: &Token) -> Result<LogNet, Error> {
    let address = address(cx, token);
    let mut net = LogNet {
        address: LogAddress::Unix("".into()),
        dial_timeout: DIAL_TIMEOUT,
        start: LogNetStart::Fails,
    };
    for option in call.options() {
        let result = match option.name() {
            "dial_timeout" => option
                .one("dial_timeout DURATION")
                .and_then(values::positive_duration)
                .map(|timeout| net.dial_timeout = timeout),
            "soft_start" => option.exactly::<0>("soft_start").map(|_| net.start = LogNetStart::GoesOn),
            _ => Err(unknown_option(option.name, "output net", &["dial_timeout", "soft_start"], &[])),
        };
        cx.check(result);
    }
    Ok(LogNet { address: address?, ..net })
}

/// `HOST:PORT`, which is of TCP, `tcp/HOST:PORT`, `udp/HOST:PORT` or `unix/PATH`.
fn address(cx: &Context<'_>, token: &Token) -> Result<LogAddress, Error> {
    let text = cx.fixed_text(token)?;
    if let Some(path) = text.strip_prefix(unix_socket::PREFIX) {
        return unix(cx, token, path);
    }
    let (network, place) = text.split_once('/').unwrap_or(("tcp", &text));
    if !["tcp", "udp"].contains(&network) {
        return Err(not_built_as(token, &format!("output net {network}/…")));
    }
    let (host, port) = host_and_port(place).ok_or_else(|| {
        let message = format!(
            "`{text}` is no address of a collector; write `HOST:PORT`, `udp/HOST:PORT` or `unix//run/collector.sock`"
        );
        error(token, message)
    })?;
    Ok(match network {
        "udp" => LogAddress::Udp { host, port },
        _ => LogAddress::Tcp { host, port },
    })
}

fn unix(cx: &Context<'_>, token: &Token, path: &str) -> Result<LogAddress, Error> {
    if path.is_empty() || path.ends_with('/') {
        let message =
            format!("`{}` names no socket; write a path such as `unix//run/collector.sock`", token.text);
        return Err(error(token, message));
    }
    Ok(LogAddress::Unix(cx.environment.absolute(Path::new(path))))
}

/// No host is this machine, as everywhere in Go.
fn host_and_port(place: &str) -> Option<(String, u16)> {
    let (host, port) = place.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok())?,
        None => host,
    };
    let is_bracketed = bare.len() != host.len();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name = ascii_host(bare)?;
    match bare {
        "" => Some(("localhost".to_owned(), port)),
        _ if is_bracketed || name.chars().all(is_name) => Some((name, port)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{config, errors};
    use crate::model::LogOutput;

    fn net(written: &str) -> LogNet {
        let text = format!(":80 {{\nlog {{\noutput net {written}\n}}\n}}");
        match config(&text).servers.remove(0).sites.remove(0).access_logs.remove(0).output {
            LogOutput::Net(net) => net,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn addresses_are_those_of_caddy() {
        let tcp = |host: &str, port| LogAddress::Tcp { host: host.into(), port };
        for (written, expected, shown) in [
            ("logs.example:514", tcp("logs.example", 514), "tcp/logs.example:514"),
            ("tcp/[::1]:514", tcp("::1", 514), "tcp/[::1]:514"),
            (":514", tcp("localhost", 514), "tcp/localhost:514"),
            (
                "udp/127.0.0.1:514",
                LogAddress::Udp { host: "127.0.0.1".into(), port: 514 },
                "udp/127.0.0.1:514",
            ),
            ("unix//run/x.sock", LogAddress::Unix("/run/x.sock".into()), "unix//run/x.sock"),
            ("unix/x.sock", LogAddress::Unix("/srv/x.sock".into()), "unix//srv/x.sock"),
        ] {
            let found = net(written);
            assert_eq!((&found.address, found.address.to_string().as_str()), (&expected, shown), "{written}");
            assert_eq!((found.dial_timeout, found.start), (DIAL_TIMEOUT, LogNetStart::Fails));
        }
    }

    #[test]
    fn options() {
        let found = net("x:1 {\ndial_timeout 2s\nsoft_start\n}");
        assert_eq!((found.dial_timeout, found.start), (Duration::from_secs(2), LogNetStart::GoesOn));
    }

    #[test]
    fn mistakes() {
        for (written, part) in [
            ("x", "no address of a collector"),
            ("x:0", "no address of a collector"),
            ("x:1-3", "no address of a collector"),
            ("a:b:1", "no address of a collector"),
            ("[x]:1", "no address of a collector"),
            ("unix/", "names no socket"),
            ("unixgram//x", "not built yet"),
            ("{path}", "cannot depend on the request"),
            ("", "output stderr | stdout"),
            ("x:1 {\ndial_timeout 0\n}", "too short"),
            ("x:1 {\nsoft_start off\n}", "soft_start"),
            ("x:1 {\nsoft_strat\n}", "did you mean `soft_start`?"),
        ] {
            let found = errors(&format!("log {{\noutput net {written}\n}}"));
            assert_eq!(found.len(), 1, "{written}: {found:?}");
            assert!(found[0].contains(part), "{written}: {found:?}");
        }
    }
}
