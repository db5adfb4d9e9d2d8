//! `intercept [MATCHER] { … }`: changes responses of what follows, by what they say themselves.
//!
//! | option | meaning |
//! |---|---|
//! | `@name status CODE…`, `@name header FIELD [VALUE]`, or a block of such lines | a condition on a response, as in [encode](#encode) |
//! | `handle_response [@name] { DIRECTIVE… }` | the response is made anew by these directives; its fields stay unless they are set again |
//! | `replace_status [@name] CODE` | the response has this status |
//!
//! The first that fits is carried out: those with a condition before those without one, and of either `replace_status` before
//! `handle_response`. In the directives, `{resp.status_code}` and `{resp.header.FIELD}` tell of the response that
//! was there. An error of the site is none: see [handle_errors](#handle_errors).
//!
//! ```caddyfile
//! intercept {
//!     @accel header X-Accel-Redirect *
//!     handle_response @accel {
//!         root private-files/
//!         rewrite {resp.header.X-Accel-Redirect}
//!         method GET
//!         header -X-Accel-Redirect
//!         file_server
//!     }
//! }
//! ```

use super::Directive;
use super::basic_auth;
use super::encode::response_matcher;
use crate::call::Call;
use crate::context::{Context, Notation, ResponseBlock};
use crate::matchers::{self, Scope};
use crate::model::{Handler, InterceptAction, InterceptRule, ResponseMatcher, Template};
use crate::problems::{error, unknown, unknown_option};
use crate::routes::{self, Sorting};
use regent_caddyfile::{Error, Token};
use std::collections::BTreeMap;

pub(super) const DIRECTIVE: Directive = super::handler("intercept", parse);

fn parse(cx: &mut Context<'_>, scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("intercept [MATCHER] { handle_response [@NAME] { … } }")?;
    let mut named = BTreeMap::new();
    for line in call.block.unwrap_or_default().iter().filter(|line| matchers::is_definition(line)) {
        let matcher = response_matcher(cx, &Call::new(line));
        named.insert(line.name.text.as_str(), cx.check(matcher).unwrap_or_default());
    }
    let mut rules = Vec::new();
    for option in call.options().filter(|option| !option.name().starts_with('@')) {
        let rule = rule(cx, scope, &option, &named);
        rules.extend(cx.check(rule));
    }
    if rules.is_empty() && call.options().all(|option| option.name().starts_with('@')) {
        cx.warn(call.name, "`intercept` without `handle_response` and `replace_status` does nothing");
    }
    if cx.notation == Notation::Caddyfile {
        rules.sort_by_key(rank);
    }
    Ok(Handler::Intercept(rules))
}

/// When a rule is tried: those for every response last, and `replace_status` first, as in Caddy (intercept.go,
/// `FinalizeUnmarshalCaddyfile`).
fn rank(rule: &InterceptRule) -> (bool, bool) {
    (rule.matcher.is_none(), matches!(rule.action, InterceptAction::Routes(_)))
}

fn rule(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    option: &Call<'_>,
    named: &BTreeMap<&str, ResponseMatcher>,
) -> Result<InterceptRule, Error> {
    match option.name() {
        "handle_response" => {
            let matcher = match option.args {
                [] => None,
                [name] => Some(matcher(name, named)?),
                _ => return Err(option.wrong_arguments(1, "handle_response [@NAME] { DIRECTIVE… }")),
            };
            let lines = option.block.unwrap_or_default();
            basic_auth::refuse_within(cx, lines, "intercept");
            let outer = cx.response_block.replace(ResponseBlock::Intercept);
            let routes = routes::parse(cx, Some(scope), lines, Sorting::ByDirective);
            cx.response_block = outer;
            Ok(InterceptRule { matcher, action: InterceptAction::Routes(routes) })
        }
        "replace_status" => {
            let syntax = "replace_status [@NAME] CODE";
            option.without_block(syntax)?;
            let (matcher, status) = match option.args {
                [status] => (None, status),
                [name, status] => (Some(matcher(name, named)?), status),
                args => return Err(option.wrong_arguments(if args.is_empty() { 1 } else { 2 }, syntax)),
            };
            let status = Template::parse(&status.text);
            Ok(InterceptRule { matcher, action: InterceptAction::Status(status) })
        }
        _ => Err(unknown_option(option.name, "intercept", &["handle_response", "replace_status"], &[])),
    }
}

fn matcher(token: &Token, named: &BTreeMap<&str, ResponseMatcher>) -> Result<ResponseMatcher, Error> {
    if !token.text.starts_with('@') {
        return Err(error(token, format!("`{}` is no condition of this block; write `@NAME`", token.text)));
    }
    let names: Vec<_> = named.keys().copied().collect();
    named.get(token.text.as_str()).cloned().ok_or_else(|| unknown(token, "condition of this block", &names))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, load};
    use crate::model::{Handler, InterceptAction, InterceptRule, Template};

    #[test]
    fn rules_in_their_order() {
        let text = "intercept {\n@accel header X-Accel-Redirect *\n@bad {\nstatus 5xx\nheader !X\n}\n\
                    handle_response @accel {\nrewrite {resp.header.X-Accel-Redirect}\nfile_server\n}\n\
                    replace_status @bad 503\nreplace_status {vars.s}\n}";
        let Handler::Intercept(rules) = handler(text) else { panic!() };
        assert!(matches!(&rules[1].action, InterceptAction::Routes(routes) if routes.len() == 2));
        assert_eq!(rules[1].matcher.as_ref().unwrap().fields.len(), 1);
        assert_eq!(rules[0].matcher.as_ref().unwrap().statuses, [(500, 599)]);
        assert_eq!(rules[0].action, InterceptAction::Status(Template::text("503")));
        assert_eq!(rules[2].matcher, None);
    }

    #[test]
    fn a_rule_for_every_response_does_not_take_those_of_the_others() {
        let text = "intercept {\n@s status 401\n@t status 402\nhandle_response {\nrespond any\n}\nreplace_status 418\n\
                    handle_response @s {\nrespond s\n}\nreplace_status @t 500\n}";
        let Handler::Intercept(rules) = handler(text) else { panic!() };
        let statuses = |rule: &InterceptRule| rule.matcher.as_ref().map(|matcher| matcher.statuses.clone());
        let found: Vec<_> = rules.iter().map(statuses).collect();
        assert_eq!(found, [Some(vec![(402, 402)]), Some(vec![(401, 401)]), None, None]);
        assert_eq!(rules[2].action, InterceptAction::Status(Template::text("418")));
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "intercept x {\n}\nintercept {\n@a sttus 200\nhandle_response @b {\n}\nreplace_status\nhandle_respons\n}\n\
             respond {resp.status_code}",
        );
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(
            found.iter().any(|message| message.contains("`{resp.status_code}` is not built yet")),
            "{found:?}"
        );
        assert_eq!(load(":80 {\nintercept {\n}\n}").unwrap().warnings.len(), 1);
    }
}
