//! `request_body [MATCHER] { … }`: bounds of request bodies.
//!
//! | option | meaning |
//! |---|---|
//! | `max_size SIZE` | a larger body is answered with 413 |
//! | `read_timeout DURATION` | a client that takes longer for all of its body gets 408; the time in which nobody reads from it does not count |
//! | `set TEXT` | the body is this text, whatever the client sends |
//!
//! There is no `write_timeout` of a route: [servers](#servers) has one, which is about the silence of a client.
//!
//! ```caddyfile
//! request_body /upload/* {
//!     max_size 100MB
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, RequestBody, Template};
use crate::problems::{error, unknown_option};
use crate::values;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("request_body", parse);

const OPTIONS: &[&str] = &["max_size", "read_timeout", "set"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("request_body [MATCHER] { max_size SIZE }")?;
    let mut body = RequestBody::default();
    for option in call.options() {
        let result = apply(&option, &mut body);
        cx.check(result);
    }
    if call.options().next().is_none() {
        let missing = "`request_body` needs an option, for example: max_size 10MB";
        return Err(error(call.name, missing));
    }
    Ok(Handler::RequestBody(body))
}

fn apply(option: &Call<'_>, body: &mut RequestBody) -> Result<(), Error> {
    match option.name() {
        "max_size" => body.max_size = Some(values::size(option.one("max_size SIZE")?)?),
        "read_timeout" => {
            let timeout = option.one("read_timeout DURATION")?;
            body.read_timeout = Some(values::positive_duration(timeout)?);
        }
        "set" => body.set = Some(Template::parse(&option.one("set TEXT")?.text)),
        "write_timeout" => {
            let message = "Regent has no `write_timeout` of a route; write \
                           `servers { timeouts { write DURATION } }` in the global options instead";
            return Err(error(option.name, message));
        }
        _ => return Err(unknown_option(option.name, "request_body", OPTIONS, &[])),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, RequestBody, Template};
    use std::time::Duration;

    #[test]
    fn options() {
        let block = "request_body {\nmax_size 10MB\nread_timeout 5s\nset {path}\n}";
        let body = RequestBody {
            max_size: Some(10_000_000),
            read_timeout: Some(Duration::from_secs(5)),
            set: Some(Template::parse("{path}")),
            ..RequestBody::default()
        };
        assert_eq!(handler(block), Handler::RequestBody(body));
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "request_body {\nwrite_timeout 1s\nmax_size big\nread_timeout 0\nsett x\n}\nrequest_body {\n}",
        );
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found[0].contains("servers { timeouts { write DURATION } }"), "{found:?}");
    }
}
