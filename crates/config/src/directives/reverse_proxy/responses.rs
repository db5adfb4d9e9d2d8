//! What becomes of responses: `@name`, `replace_status`, `handle_response`.

use crate::call::Call;
use crate::context::{Context, Notation, ResponseBlock};
use crate::directives::basic_auth;
use crate::directives::encode::response_matcher;
use crate::matchers::Scope;
use crate::model::{ResponseAction, ResponseMatcher, ResponseRule, Template};
use crate::problems::{error, unknown};
use crate::routes::{self, Sorting};
use crate::values::is_status;
use regent_caddyfile::{Error, Token};
use std::collections::BTreeMap;

pub(super) const OPTIONS: &[&str] = &["handle_response", "replace_status"];

/// Whether it is one of these options, or a definition.
pub(super) fn are_meant_by(name: &str) -> bool {
    OPTIONS.contains(&name) || name.starts_with('@')
}

/// What the directive says of that.
pub(super) struct Written {
    matchers: BTreeMap<String, ResponseMatcher>,
    /// They go before all others.
    preset: Vec<ResponseRule>,
    rules: Vec<ResponseRule>,
}

impl Written {
    /// With rules that go before all others.
    pub fn of(preset: Vec<ResponseRule>) -> Self {
        Self { matchers: BTreeMap::new(), preset, rules: Vec::new() }
    }

    pub fn read(&mut self, cx: &mut Context<'_>, scope: &Scope<'_>, option: &Call<'_>) -> Result<(), Error> {
        match option.name() {
            "replace_status" => self.replace_status(option),
            "handle_response" => self.handle_response(cx, scope, option),
            name => {
                let matcher = response_matcher(cx, option)?;
                match self.matchers.insert(name.to_owned(), matcher) {
                    Some(_) => Err(error(option.name, format!("the matcher `{name}` is defined twice"))),
                    None => Ok(()),
                }
            }
        }
    }

    /// In a Caddyfile those for every response go last, and `replace_status` first, as in Caddy (reverseproxy/caddyfile.go,
    /// `FinalizeUnmarshalCaddyfile`). JSON has them in their order.
    pub fn finish(mut self, notation: Notation) -> Vec<ResponseRule> {
        if notation == Notation::Caddyfile {
            self.rules.sort_by_key(rank);
        }
        self.preset.into_iter().chain(self.rules).collect()
    }

    fn replace_status(&mut self, option: &Call<'_>) -> Result<(), Error> {
        const SYNTAX: &str = "replace_status [@NAME] STATUS";
        option.without_block(SYNTAX)?;
        let (matcher, status) = match option.args {
            [status] => (None, status),
            [matcher, status] => (Some(self.named(matcher)?), status),
            args => return Err(option.wrong_arguments(if args.is_empty() { 1 } else { 2 }, SYNTAX)),
        };
        let template = Template::parse(&status.text);
        if template.as_text().is_some() && !is_status(&status.text) {
            return Err(error(status, format!("`{}` is no status", status.text)));
        }
        self.rules.push(ResponseRule { matcher, action: ResponseAction::ReplaceStatus(template) });
        Ok(())
    }

    fn handle_response(
        &mut self,
        cx: &mut Context<'_>,
        scope: &Scope<'_>,
        option: &Call<'_>,
    ) -> Result<(), Error> {
        const SYNTAX: &str = "handle_response [@NAME] { DIRECTIVE… }";
        let matcher = match option.args {
            [] => None,
            [matcher] => Some(self.named(matcher)?),
            _ => return Err(option.wrong_arguments(1, SYNTAX)),
        };
        let Some(lines) = option.block else {
            return Err(error(option.name, format!("`handle_response` needs a block; write: {SYNTAX}")));
        };
        basic_auth::refuse_within(cx, lines, "handle_response");
        let outer = cx.response_block.replace(ResponseBlock::Upstream);
        let routes = routes::parse(cx, Some(scope), lines, Sorting::ByDirective);
        cx.response_block = outer;
        self.rules.push(ResponseRule { matcher, action: ResponseAction::Routes(routes) });
        Ok(())
    }

    fn named(&self, token: &Token) -> Result<ResponseMatcher, Error> {
        let names: Vec<&str> = self.matchers.keys().map(String::as_str).collect();
        let found = self.matchers.get(&token.text).cloned();
        found.ok_or_else(|| unknown(token, "matcher of responses", &names))
    }
}

fn rank(rule: &ResponseRule) -> (bool, bool) {
    (rule.matcher.is_none(), matches!(rule.action, ResponseAction::Routes(_)))
}
