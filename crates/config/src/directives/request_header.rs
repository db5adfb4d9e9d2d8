//! `request_header [MATCHER] FIELD [VALUE | SEARCH REPLACEMENT]`: changes the header that later handlers and PHP see.
//!
//! The signs are those of `header`: `+Field` adds, `-Field` deletes, `?Field` sets if it is not there.
//!
//! ```caddyfile
//! request_header -X-Forwarded-User
//! ```

use super::{Directive, header};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, HeaderOp};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("request_header", parse);

const SYNTAX: &str = "request_header [MATCHER] [+|-|?]FIELD [VALUE | SEARCH REPLACEMENT]";

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let [field, values @ ..] = call.some(SYNTAX)? else { return Err(call.wrong_arguments(1, SYNTAX)) };
    let op = header::operation(field, values, SYNTAX)?;
    // There is nothing to defer to: the request is at hand.
    Ok(Handler::RequestHeader(vec![HeaderOp { deferred: false, ..op }]))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, HeaderOp, HeaderOpKind, Template};

    #[test]
    fn operations_are_never_deferred() {
        let op = HeaderOp {
            kind: HeaderOpKind::Delete,
            name: Template::text("X"),
            value: Template::default(),
            deferred: false,
        };
        assert_eq!(handler("request_header -X"), Handler::RequestHeader(vec![op]));
        assert_eq!(errors("request_header").len(), 1);
    }
}
