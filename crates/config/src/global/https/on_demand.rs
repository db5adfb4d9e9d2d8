//! `on_demand_tls`: what bounds the certificates that handshakes cause.

use crate::call::Call;
use crate::context::Context;
use crate::model::{GlobalTls, OrderLimit};
use crate::problems::{error, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};

const SYNTAX: &str = "on_demand_tls { ask URL }";

/// `interval` and `burst` are Caddy's until 2.8, which refuses them since.
pub(super) fn apply(cx: &Context<'_>, call: &Call<'_>, tls: &mut GlobalTls) -> Result<(), Error> {
    call.no_arguments(SYNTAX)?;
    let (mut ask, mut interval, mut burst) = (None, None, None);
    for option in call.options() {
        match option.name() {
            "ask" => ask = Some(url(cx, option.one("ask URL")?)?),
            "interval" => interval = Some(values::positive_duration(option.one("interval DURATION")?)?),
            "burst" => burst = Some(values::integer(option.one("burst N")?, 1..=u32::MAX, "burst")?),
            _ => {
                let known = ["ask", "burst", "interval"];
                return Err(unknown_option(option.name, "on_demand_tls", &known, &["permission"]));
            }
        }
    }
    tls.on_demand_limit = match (interval, burst) {
        (Some(interval), Some(orders)) => Some(OrderLimit { orders, interval }),
        (None, None) => None,
        _ => {
            let message = "`interval` and `burst` say together how many certificates are ordered in how much time; write both, or none";
            return Err(error(call.name, message));
        }
    };
    if ask.is_none() {
        return Err(error(call.name, format!("`on_demand_tls` needs `ask`; write: {SYNTAX}")));
    }
    tls.on_demand_ask = ask;
    Ok(())
}

fn url(cx: &Context<'_>, token: &Token) -> Result<String, Error> {
    let text = cx.host_and_more(token)?;
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')) {
        return Ok(text);
    }
    Err(error(token, format!("`{text}` is no URL; write one such as `http://localhost:5555/check`")))
}
