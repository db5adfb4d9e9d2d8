//! `copy_response [STATUS]`: gives the client the response of the upstream after all; only in
//! [handle_response](#reverse_proxy).
//!
//! ```caddyfile
//! reverse_proxy 127.0.0.1:9000 {
//!     handle_response {
//!         header X-From upstream
//!         copy_response
//!     }
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::{Context, ResponseBlock};
use crate::matchers::Scope;
use crate::model::{Handler, Template};
use crate::problems::{error, unknown_option};
use crate::values::is_status;
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("copy_response", parse);

const SYNTAX: &str = "copy_response [MATCHER] [STATUS]";

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    check_place(cx, call)?;
    let mut status = match call.args {
        [] => None,
        [token] => Some(parse_status(token)?),
        _ => return Err(call.wrong_arguments(1, SYNTAX)),
    };
    for option in call.options() {
        match option.name() {
            "status" => status = Some(parse_status(option.one("status STATUS")?)?),
            _ => return Err(unknown_option(option.name, "copy_response", &["status"], &[])),
        }
    }
    Ok(Handler::CopyResponse(status.unwrap_or_default()))
}

fn parse_status(token: &Token) -> Result<Template, Error> {
    let template = Template::parse(&token.text);
    match template.as_text().is_none() || is_status(&token.text) {
        true => Ok(template),
        false => Err(error(token, format!("`{}` is no status; write: {SYNTAX}", token.text))),
    }
}

/// There is a response to copy only within the block of `handle_response`.
pub(super) fn check_place(cx: &Context<'_>, call: &Call<'_>) -> Result<(), Error> {
    let message =
        || format!("`{}` has to stand in the block of a `handle_response` of `reverse_proxy`", call.name());
    if cx.response_block == Some(ResponseBlock::Upstream) { Ok(()) } else { Err(error(call.name, message())) }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, errors};
    use crate::model::{CopiedFields, Handler, ResponseAction, ResponseRule, Template};

    fn rules(options: &str) -> Vec<ResponseRule> {
        config(&format!(":80 {{\nreverse_proxy a {{\n{options}\n}}\n}}")).proxies.remove(0).responses
    }

    #[test]
    fn responses_have_rules_and_those_for_all_go_last() {
        let rules = rules(
            "@bad status 5xx\nhandle_response {\ncopy_response_headers {\nexclude X-A\n}\ncopy_response 201\n}\n\
             replace_status @bad 404",
        );
        assert_eq!(rules[0].action, ResponseAction::ReplaceStatus(Template::text("404")));
        assert_eq!(rules[0].matcher.as_ref().map(|matcher| matcher.statuses.clone()), Some(vec![(500, 599)]));
        let ResponseAction::Routes(routes) = &rules[1].action else { panic!("{rules:?}") };
        let fields = CopiedFields { include: vec![], exclude: vec!["X-A".into()] };
        assert_eq!(routes[0].handler, Handler::CopyResponseHeaders(fields));
        assert_eq!(routes[1].handler, Handler::CopyResponse(Template::text("201")));
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "copy_response\nreverse_proxy a {\nreplace_status @no 200\nreplace_status x\nhandle_response\n\
             @a status 200\n@a status 201\nhandle_response {\ncopy_response x\nreverse_proxy b {\n\
             handle_response {\nrespond x\n}\n}\n}\n}\nintercept {\nhandle_response {\nreverse_proxy c {\nhandle_response {\n}\n}\n}\n}",
        );
        for part in [
            "`copy_response` has to stand in the block of a `handle_response` of `reverse_proxy`",
            "unknown matcher of responses `@no`",
            "`x` is no status",
            "needs a block",
            "defined twice",
            "is not built yet in Regent within `intercept`",
        ] {
            assert!(found.iter().any(|message| message.contains(part)), "{part}: {found:?}");
        }
        assert_eq!(found.len(), 7, "{found:?}");
    }
}
