//! `request_body [MATCHER] { max_size SIZE }`: a larger body is answered with 413.
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
use crate::model::Handler;
use crate::problems::{error, unknown_option};
use crate::values;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("request_body", parse);

const UNBUILT: &[&str] = &["read_timeout", "set", "write_timeout"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("request_body [MATCHER] { max_size SIZE }")?;
    let mut max_size = None;
    for option in call.options() {
        match option.name() {
            "max_size" => max_size = Some(values::size(option.one("max_size SIZE")?)?),
            _ => cx.errors.push(unknown_option(option.name, "request_body", &["max_size"], UNBUILT)),
        }
    }
    let missing = "`request_body` needs the option `max_size`, for example: max_size 10MB";
    max_size.map(|max_size| Handler::RequestBody { max_size }).ok_or_else(|| error(call.name, missing))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::Handler;

    #[test]
    fn sizes() {
        assert_eq!(
            handler("request_body {\nmax_size 10MB\n}"),
            Handler::RequestBody { max_size: 10_000_000 }
        );
        assert_eq!(errors("request_body {\nset x\nmax_size big\n}\nrequest_body {\n}").len(), 3);
    }
}
