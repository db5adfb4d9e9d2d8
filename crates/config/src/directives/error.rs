//! `error [MATCHER] STATUS | MESSAGE [STATUS] { message TEXT }`: ends the request with an error, 500 by default.
//!
//! ```caddyfile
//! error /private/* "Not for you" 403
//! ```

use super::{Directive, respond};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template};
use crate::problems::unknown_option;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("error", parse);

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let (text, code) = respond::text_and_status(call, "error [MATCHER] STATUS | MESSAGE [STATUS]")?;
    let (mut message, status) = (text.unwrap_or_default(), code.unwrap_or_else(|| Template::text("500")));
    for option in call.options() {
        let value = match option.name() {
            "message" => option.one("message TEXT"),
            _ => Err(unknown_option(option.name, "error", &["message"], &[])),
        };
        message = cx.check(value).map_or(message, |value| Template::parse(&value.text));
    }
    Ok(Handler::Error { status, message })
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Template};

    #[test]
    fn forms() {
        let error = |status: &str, message: &str| Handler::Error {
            status: Template::text(status),
            message: Template::text(message),
        };
        assert_eq!(handler("error 404"), error("404", ""));
        assert_eq!(handler("error /a Oops"), error("500", "Oops"));
        assert_eq!(handler("error 403 {\nmessage No\n}"), error("403", "No"));
        assert_eq!(errors("error a b c\nerror {\nx\n}").len(), 2);
    }
}
