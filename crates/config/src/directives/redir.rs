//! `redir [MATCHER] TO [CODE]`: redirects the client.
//!
//! The code is a 3xx number, a placeholder, `temporary` (302, the default) or `permanent` (301).
//!
//! ```caddyfile
//! redir /old/* /new{uri} permanent
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template};
use crate::problems::{error, not_built_as};
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("redir", parse);

const SYNTAX: &str = "redir [MATCHER] TO [permanent | temporary | CODE]";

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.without_block(SYNTAX)?;
    let (to, status) = match call.args {
        [to] => (to, Template::text("302")),
        [to, code] => (to, status(code)?),
        [] => {
            let message =
                format!("`redir` has no target (a first argument with `/` is a matcher); write: {SYNTAX}");
            return Err(error(call.name, message));
        }
        _ => return Err(call.wrong_arguments(2, SYNTAX)),
    };
    Ok(Handler::Redirect { to: Template::parse(&to.text), status })
}

fn status(token: &Token) -> Result<Template, Error> {
    let number = token.text.parse::<u16>().is_ok_and(|code| (300..400).contains(&code) || code == 401);
    let template = Template::parse(&token.text);
    match token.text.as_str() {
        "permanent" => Ok(Template::text("301")),
        "temporary" => Ok(Template::text("302")),
        "html" => Err(not_built_as(token, "redir html")),
        // 401 as in Caddy, where it makes a client log in by a `Location`.
        _ if number || template.as_text().is_none() => Ok(template),
        other => Err(error(
            token,
            format!(
                "`{other}` is no code for a redirect; write `permanent`, `temporary` or a number from 300 to 399"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Template};

    #[test]
    fn codes() {
        let redirect = |to: &str, status: &str| Handler::Redirect {
            to: Template::parse(to),
            status: Template::parse(status),
        };
        assert_eq!(handler("redir https://x{uri}"), redirect("https://x{uri}", "302"));
        assert_eq!(handler("redir /a /b permanent"), redirect("/b", "301"));
        assert_eq!(handler("redir * /b 308"), redirect("/b", "308"));
        assert_eq!(handler("redir x {vars.code}"), redirect("x", "{vars.code}"));
    }

    #[test]
    fn mistakes() {
        let found = errors("redir /a\nredir a b 200\nredir a html\nredir a 200");
        assert!(found[0].contains("has no target"), "{found:?}");
        assert_eq!(found[2], "`redir html` is not built yet in Regent");
        assert_eq!(found.len(), 4);
    }
}
