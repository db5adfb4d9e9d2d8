//! A route of Caddy's JSON, as `regent-caddy-json` spells it; no Caddyfile has it.
//!
//! Its block has lines `match { CONDITION… }`, of which one must match, and `handle { DIRECTIVE… }`. The argument is the number
//! of its group.

use crate::call::Call;
use crate::conditions;
use crate::context::Context;
use crate::directives::{Directive, Matchers, Parse};
use crate::matchers::Scope;
use crate::model::{Handler, Route};
use crate::problems::error;
use crate::routes::{self, Sorting};
use regent_caddyfile::Error;

pub(crate) const DIRECTIVE: Directive = Directive {
    name: "json route",
    sorts_as: "json route",
    matchers: Matchers::None,
    parse: Parse::Routes(parse),
};

fn parse(cx: &mut Context<'_>, scope: &Scope<'_>, call: &Call<'_>) -> Result<Vec<Route>, Error> {
    let group = call.args.first().map(|token| token.text.parse::<u32>());
    let group = group.transpose().map_err(|_| error(call.name, "a group has a number"))?;
    let mut matchers = Vec::new();
    let mut inner = Vec::new();
    for line in call.options() {
        let lines = line.block.unwrap_or_default();
        match line.name() {
            "match" => {
                let owner = line.args.first().map_or("", |name| name.text.as_str());
                matchers.push(conditions::of_lines(cx, lines, owner));
            }
            _ => inner.append(&mut routes::parse(cx, Some(scope), lines, Sorting::AsWritten)),
        }
    }
    // A handler alone needs no list of its own.
    let handler = match inner.as_mut_slice() {
        [Route { group: None, matchers, handler }] if matchers.is_empty() => handler.clone(),
        _ => Handler::Subroute(inner),
    };
    Ok(vec![Route { group, matchers, handler }])
}
