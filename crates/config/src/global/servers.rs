//! `servers { … }`: time-outs and limits of client connections.
//!
//! | option | default |
//! |---|---|
//! | `timeouts { read_header D }` | 10s |
//! | `timeouts { read_body D }` | 60s |
//! | `timeouts { write D }` | 60s |
//! | `timeouts { idle D }` | 5m |
//! | `max_header_size SIZE` | 64KiB |
//! | `min_body_rate SIZE` \| `off` | 240 |
//!
//! `min_body_rate`: bytes a second that a request body brings on average, or else it is answered with 408. A body may be
//! slower for its first 30 seconds (or its `read_body`, if that is shorter), and only the time in which the client is
//! awaited counts.
//!
//! A time-out of 0 is none: whoever holds a connection open then can hold it for ever.

use crate::call::Call;
use crate::context::Context;
use crate::model::{Global, Timeouts};
use crate::problems::{error, not_built_as, unknown_option};
use crate::values;
use regent_caddyfile::Error;

const UNBUILT: &[&str] = &[
    "0rtt",
    "client_ip_headers",
    "enable_full_duplex",
    "keepalive_count",
    "keepalive_idle",
    "keepalive_interval",
    "listener_wrappers",
    "log_credentials",
    "metrics",
    "name",
    "packet_conn_wrappers",
    "protocols",
    "strict_sni_host",
    "trace",
    "trusted_proxies",
    "trusted_proxies_strict",
    "trusted_proxies_unix",
];

/// 1 KiB must fit, as a plain request's head does; 16 MiB is beyond any that is meant well.
const HEADER_SIZES: std::ops::RangeInclusive<u64> = 1024..=16 * 1024 * 1024;

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>, global: &mut Global) -> Result<(), Error> {
    if let Some(address) = call.args.first() {
        return Err(not_built_as(address, "servers ADDRESS"));
    }
    for option in call.options() {
        let result = match option.name() {
            "timeouts" => timeouts(cx, &option, &mut global.timeouts),
            "max_header_size" => max_header_size(&option).map(|size| global.limits.max_header_size = size),
            "min_body_rate" => min_body_rate(&option).map(|rate| global.limits.min_body_rate = rate),
            _ => {
                let options = ["max_header_size", "min_body_rate", "timeouts"];
                Err(unknown_option(option.name, "servers", &options, UNBUILT))
            }
        };
        cx.check(result);
    }
    Ok(())
}

fn timeouts(cx: &mut Context<'_>, call: &Call<'_>, timeouts: &mut Timeouts) -> Result<(), Error> {
    call.no_arguments("timeouts { read_header | read_body | write | idle DURATION }")?;
    for option in call.options() {
        let target = match option.name() {
            "read_header" => &mut timeouts.read_header,
            "read_body" => &mut timeouts.read_body,
            "write" => &mut timeouts.write,
            "idle" => &mut timeouts.idle,
            _ => {
                cx.errors.push(unknown_option(
                    option.name,
                    "timeouts",
                    &["idle", "read_body", "read_header", "write"],
                    &[],
                ));
                continue;
            }
        };
        let value = option.one("NAME DURATION").and_then(values::duration);
        *target = cx.check(value).unwrap_or(*target);
    }
    Ok(())
}

fn max_header_size(option: &Call<'_>) -> Result<usize, Error> {
    let token = option.one("max_header_size SIZE")?;
    let size = values::size(token)?;
    if !HEADER_SIZES.contains(&size) {
        return Err(error(token, "`max_header_size` must be from 1KiB to 16MiB"));
    }
    usize::try_from(size).map_err(|_| error(token, "`max_header_size` is too large for this machine"))
}

fn min_body_rate(option: &Call<'_>) -> Result<u64, Error> {
    let token = option.one("min_body_rate SIZE | off")?;
    if token.text == "off" { Ok(0) } else { values::size(token) }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use std::time::Duration;

    #[test]
    fn options() {
        let text = "{\nservers {\ntimeouts {\nread_header 1s\nread_body 2s\nwrite 3s\nidle 4s\n}\nmax_header_size 8KiB\n}\n}";
        let global = config(text).global;
        let timeouts = [
            global.timeouts.read_header,
            global.timeouts.read_body,
            global.timeouts.write,
            global.timeouts.idle,
        ];
        assert_eq!(timeouts, [1, 2, 3, 4].map(Duration::from_secs));
        assert_eq!(global.limits.max_header_size, 8192);
    }

    #[test]
    fn the_rate_of_a_body() {
        let rate =
            |option: &str| config(&format!("{{\nservers {{\n{option}\n}}\n}}")).global.limits.min_body_rate;
        assert_eq!(rate("min_body_rate 1KiB"), 1024);
        assert_eq!((rate("min_body_rate off"), rate("min_body_rate 0")), (0, 0));
        assert_eq!(rate("max_header_size 8KiB"), 240);
    }

    #[test]
    fn mistakes() {
        let found = file_errors(
            "{\nservers :80 {\n}\nservers {\ntimeouts {\nread_hedder 1s\nidle x\n}\nmax_header_size 1\nprotocols h1\n}\n}",
        );
        assert_eq!(found[0], "`servers ADDRESS` is not built yet in Regent");
        assert_eq!(found.len(), 5, "{found:?}");
    }
}
