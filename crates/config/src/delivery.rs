//! The options of directives whose requests are handed to an engine: `php`, `php_server` and `native`.

use crate::call::Call;
use crate::context::Context;
use crate::model::{ClientAddress, Delivery, RequestBuffering, Template};
use crate::problems::error;
use crate::{values, workers};
use regent_caddyfile::{Error, Token};

/// Takes an option in; false if there is none of this name.
pub(crate) fn option(cx: &mut Context<'_>, option: &Call<'_>, delivery: &mut Delivery) -> bool {
    let result = match option.name() {
        "env" => {
            let env = workers::pairs(cx, option, "env NAME VALUE");
            delivery.env.extend(env.into_iter().map(|(name, value)| (name, Template::parse(&value.text))));
            Ok(())
        }
        "request_body_timeout" => option
            .one("request_body_timeout DURATION")
            .and_then(values::duration)
            .map(|timeout| delivery.request_body_timeout = Some(timeout)),
        "request_buffering" => option
            .one("request_buffering on | off")
            .and_then(buffering)
            .map(|buffering| delivery.request_buffering = buffering),
        "deadline" => option
            .one("deadline DURATION")
            .and_then(values::positive_duration)
            .map(|deadline| delivery.deadline = Some(deadline)),
        "retry" => {
            values::retry(option, "retry [METHOD…] | off").map(|methods| delivery.retry = Some(methods))
        }
        "lane" => option.one("lane NAME | off").and_then(values::lane).map(|lane| delivery.lane = Some(lane)),
        "trust_client_address" => option.exactly::<0>("trust_client_address").map(|_| {
            cx.trusting.get_or_insert_with(|| option.name.clone());
            delivery.client_address = ClientAddress::Forwarded;
        }),
        _ => return false,
    };
    cx.check(result);
    true
}

fn buffering(token: &Token) -> Result<RequestBuffering, Error> {
    match token.text.as_str() {
        "on" => Ok(RequestBuffering::Complete),
        "off" => Ok(RequestBuffering::Streaming),
        _ => Err(error(token, format!("`request_buffering` must be `on` or `off`, not `{}`", token.text))),
    }
}
