//! `timeouts { … }`: how long a client may be silent, or take nothing.

use crate::call::Call;
use crate::context::Context;
use crate::model::ServerOptions;
use crate::problems::unknown_option;
use crate::values::{duration, size};
use regent_caddyfile::{Error, Token};
use std::time::Duration;

const OPTIONS: &[&str] = &[
    "idle",
    "last_request",
    "read_body",
    "read_body_idle",
    "read_header",
    "write",
    "write_idle",
    "write_max_chunk",
];

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>, server: &mut ServerOptions) -> Result<(), Error> {
    call.no_arguments("timeouts { read_header | read_body | write | idle | last_request DURATION }")?;
    for option in call.options() {
        let read = apply(&option, server);
        cx.check(read);
    }
    Ok(())
}

fn apply(option: &Call<'_>, server: &mut ServerOptions) -> Result<(), Error> {
    let timeouts = &mut server.timeouts;
    let one = || option.one(&format!("{} DURATION", option.name())).and_then(limit);
    match option.name() {
        "read_header" => timeouts.read_header = one()?,
        "read_body" => timeouts.read_body = one()?,
        "write" => timeouts.write = one()?,
        "idle" => timeouts.idle = one()?,
        "last_request" => timeouts.last_request = one()?,
        // What these are in Caddy, `read_body` and `write` are here.
        "read_body_idle" => {
            let tokens = option.some("read_body_idle DURATION [MIN_BODY_RATE]")?;
            timeouts.read_body = limit(&tokens[0])?;
            match &tokens[1..] {
                [] => {}
                [rate] => server.limits.min_body_rate = size(rate)?,
                _ => return Err(option.wrong_arguments(2, "read_body_idle DURATION [MIN_BODY_RATE]")),
            }
        }
        "write_idle" => timeouts.write = one()?,
        // A client that takes a part of an answer is not silent, however large the answer.
        "write_max_chunk" => drop(size(option.one("write_max_chunk SIZE")?)?),
        _ => return Err(unknown_option(option.name, "timeouts", OPTIONS, &[])),
    }
    Ok(())
}

/// Less than 0 is no limit, as in Caddy.
fn limit(token: &Token) -> Result<Duration, Error> {
    if token.text.starts_with('-') { Ok(Duration::ZERO) } else { duration(token) }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use std::time::Duration;

    #[test]
    fn names_of_the_newest_caddy() {
        let text = "{\nservers {\ntimeouts {\nread_body_idle 2s 500\nwrite_idle -1\nwrite_max_chunk 64KiB\n}\n}\n}\n:80 {\n}";
        let options = config(text).servers.remove(0).options;
        assert_eq!(
            (options.timeouts.read_body, options.timeouts.write),
            (Duration::from_secs(2), Duration::ZERO)
        );
        assert_eq!(options.limits.min_body_rate, 500);
        let errors = file_errors(
            "{\nservers {\ntimeouts {\nread_body_idle\nread_body_idle 1s 2 3\nwrite_idle 1s 2\nidel 1s\n}\n}\n}\n:80 {\n}",
        );
        assert_eq!(errors.len(), 4, "{errors:?}");
    }
}
