//! `respond [MATCHER] STATUS | BODY [STATUS] { body TEXT; close }`: a fixed answer.
//!
//! A single argument of three digits is a status, any other one the body. Without a status it is 200, or that of the
//! error in [handle_errors](#handle_errors). `close` ends the connection.
//!
//! ```caddyfile
//! respond /health 200
//! respond "Gone fishing" 503
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template};
use crate::problems::{error, unknown_option};
use crate::values::is_status;
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("respond", parse);

const SYNTAX: &str = "respond [MATCHER] STATUS | BODY [STATUS]";

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let (text, code) = text_and_status(call, SYNTAX)?;
    let (mut body, status) = (text.unwrap_or_default(), code.unwrap_or_default());
    let mut close = false;
    for option in call.options() {
        match option.name() {
            "body" => {
                let value = cx.check(option.one("body TEXT"));
                body = value.map_or(body, |value| Template::parse(&value.text));
            }
            "close" => close |= cx.check(option.exactly::<0>("close")).is_some(),
            _ => cx.errors.push(unknown_option(option.name, "respond", &["body", "close"], &[])),
        }
    }
    Ok(Handler::Respond { status, body, close })
}

/// The arguments of `respond` and `error`: a status, or a text with or without one.
pub(super) fn text_and_status(
    call: &Call<'_>,
    syntax: &str,
) -> Result<(Option<Template>, Option<Template>), Error> {
    match call.args {
        [] => Ok((None, None)),
        [only] if is_status(&only.text) => Ok((None, Some(Template::text(&only.text)))),
        [only] => Ok((Some(Template::parse(&only.text)), None)),
        [text, code] => Ok((Some(Template::parse(&text.text)), Some(status(code)?))),
        _ => Err(call.wrong_arguments(2, syntax)),
    }
}

fn status(token: &Token) -> Result<Template, Error> {
    let template = Template::parse(&token.text);
    if is_status(&token.text) || template.as_text().is_none() {
        return Ok(template);
    }
    Err(error(token, format!("`{}` is no status; write a number from 100 to 999", token.text)))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Template};

    fn respond(status: &str, body: &str, close: bool) -> Handler {
        Handler::Respond { status: Template::parse(status), body: Template::parse(body), close }
    }

    #[test]
    fn forms() {
        assert_eq!(handler("respond 204"), respond("204", "", false));
        assert_eq!(handler("respond hello"), respond("", "hello", false));
        assert_eq!(handler("respond /a \"{path}\" 503"), respond("503", "{path}", false));
        assert_eq!(handler("respond x {vars.code}"), respond("{vars.code}", "x", false));
        assert_eq!(handler("respond 200 {\nbody <<E\n\tx\n\tE\nclose\n}"), respond("200", "x", true));
        assert_eq!(handler("respond"), respond("", "", false));
    }

    #[test]
    fn mistakes() {
        assert_eq!(errors("respond a b\nrespond a 200 c\nrespond {\nbdy x\n}").len(), 3);
        assert!(errors("respond {\nbdy x\n}")[0].contains("did you mean `body`?"));
    }
}
