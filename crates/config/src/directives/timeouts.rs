//! `timeouts [MATCHER] { … }`: how long clients of these requests may be silent, whatever [servers](#servers) says.
//!
//! | option | meaning |
//! |---|---|
//! | `read_timeout DURATION [MIN_RATE]` | longest silence within a request's body, and the bytes a second that it has to bring on average after half a minute (default: those of `servers`) |
//! | `max_write_chunk SIZE` | taken and not needed: a client that takes a part of a response is not silent |
//!
//! What is too slow is answered with 408; in Caddy the connection is aborted. There is no `write_timeout` of a route.
//!
//! ```caddyfile
//! timeouts /upload/* {
//!     read_timeout 10s 1000
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, RequestBody};
use crate::problems::{error, unknown_option};
use crate::values::{duration, integer, size};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("timeouts", parse);

const OPTIONS: &[&str] = &["max_write_chunk", "read_timeout"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("timeouts [MATCHER] { read_timeout DURATION [MIN_RATE] }")?;
    let mut body = RequestBody::default();
    for option in call.options() {
        let result = apply(&option, &mut body);
        cx.check(result);
    }
    Ok(Handler::RequestBody(body))
}

fn apply(option: &Call<'_>, body: &mut RequestBody) -> Result<(), Error> {
    match option.name() {
        "read_timeout" => {
            let syntax = "read_timeout DURATION [MIN_RATE]";
            let tokens = option.some(syntax)?;
            // 0 is none of its own, as in Caddy.
            body.silence = Some(duration(&tokens[0])?).filter(|silence| !silence.is_zero());
            body.min_rate = match &tokens[1..] {
                [] => None,
                [rate] => Some(integer(rate, 0..=u64::MAX, "MIN_RATE")?),
                _ => return Err(option.wrong_arguments(2, syntax)),
            };
            // It is about such a time-out in Caddy too.
            body.min_rate = body.min_rate.filter(|_| body.silence.is_some());
        }
        "max_write_chunk" => drop(size(option.one("max_write_chunk SIZE")?)?),
        "write_timeout" => {
            let message = "Regent has no `write_timeout` of a route; write \
                           `servers { timeouts { write DURATION } }` in the global options instead";
            return Err(error(option.name, message));
        }
        _ => return Err(unknown_option(option.name, "timeouts", OPTIONS, &[])),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, RequestBody};
    use std::time::Duration;

    fn body(options: &str) -> RequestBody {
        match handler(&format!("timeouts {{\n{options}\n}}")) {
            Handler::RequestBody(body) => body,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options() {
        let silence = Some(Duration::from_secs(10));
        let expected = RequestBody { silence, min_rate: Some(500), ..RequestBody::default() };
        assert_eq!(body("read_timeout 10s 500\nmax_write_chunk 64KiB"), expected);
        assert_eq!(body("read_timeout 10s"), RequestBody { min_rate: None, ..expected });
        assert_eq!(body("read_timeout 0 500"), RequestBody::default());
    }

    #[test]
    fn mistakes() {
        let found =
            errors("timeouts {\nwrite_timeout 1s\nread_timeout\nread_timeout 1s x\nread_timeut 1s\n}");
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].contains("servers { timeouts { write DURATION } }"), "{found:?}");
    }
}
