//! The requests that a directive is for: `*` (all), `/path`, or `@name`, which is one condition, `@name path /a /b`, or a block of
//! them, of which all must match.
//!
//! ```caddyfile
//! @uploads {
//!     method POST PUT
//!     path /files/*
//!     not remote_ip 10.0.0.0/8
//! }
//! error @uploads 403
//! respond /ping pong
//! ```

use crate::call::Call;
use crate::conditions;
use crate::context::Context;
use crate::expression;
use crate::model::{Matcher, MatcherSet, Template};
use crate::problems::{error, unknown};
use regent_caddyfile::{Error, Line, Token};
use std::collections::BTreeMap;

/// The named matchers that are known in a block: its own and those of the blocks around it.
pub(crate) struct Scope<'a> {
    outer: Option<&'a Scope<'a>>,
    /// `None`: defined, but with a mistake that has been reported.
    matchers: BTreeMap<String, Option<MatcherSet>>,
}

impl<'a> Scope<'a> {
    /// Takes the definitions (`@name …`) from among `lines`.
    pub fn new(cx: &mut Context<'_>, outer: Option<&'a Scope<'a>>, lines: &[Line]) -> Self {
        let mut scope = Self { outer, matchers: BTreeMap::new() };
        for line in lines.iter().filter(|line| is_definition(line)) {
            let set = definition(cx, &Call::new(line));
            if scope.matchers.insert(line.name.text.clone(), set).is_some() {
                let error = error(&line.name, format!("the matcher `{}` is defined twice", line.name.text));
                cx.errors.push(error);
            }
        }
        scope
    }

    /// The alternatives that an argument stands for if it is a matcher; `*` has none, as it always matches.
    pub fn matcher(&self, token: &Token) -> Result<Option<Vec<MatcherSet>>, Error> {
        let text = token.text.as_str();
        if text == "*" {
            return Ok(Some(Vec::new()));
        }
        if text.starts_with('/') {
            return Ok(Some(vec![vec![Matcher::Path(vec![Template::parse(text)])]]));
        }
        if text.starts_with('@') {
            return self.named(token).map(|set| Some(vec![set]));
        }
        Ok(None)
    }

    fn named(&self, token: &Token) -> Result<MatcherSet, Error> {
        let mut scopes = std::iter::successors(Some(self), |scope| scope.outer);
        match scopes.find_map(|scope| scope.matchers.get(&token.text)) {
            Some(set) => Ok(set.clone().unwrap_or_default()),
            None => {
                let scopes = std::iter::successors(Some(self), |scope| scope.outer);
                let names: Vec<_> =
                    scopes.flat_map(|scope| scope.matchers.keys().map(String::as_str)).collect();
                Err(unknown(token, "matcher", &names))
            }
        }
    }
}

pub(crate) fn is_definition(line: &Line) -> bool {
    line.name.text.starts_with('@')
}

/// `@name` itself; `None` if there was a mistake, which is then noted.
fn definition(cx: &mut Context<'_>, call: &Call<'_>) -> Option<MatcherSet> {
    let before = cx.errors.len();
    let set = match call.args {
        [only] if only.quoted && call.block.is_none() => {
            expression::parse_quoted(cx, only, call.name()).map(|matcher| vec![matcher])
        }
        _ => conditions::parse(cx, call, call.name()),
    };
    let set = cx.check(set);
    set.filter(|_| cx.errors.len() == before)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, routes};
    use crate::model::Matcher;

    #[test]
    fn names_are_known_in_inner_blocks_and_wherever_they_are_defined() {
        let routes = routes("handle @a {\nrespond @b 1\n@b path /b\n}\n@a method get");
        assert_eq!(routes[0].matchers, [[Matcher::Method(vec!["GET".into()])]]);
        assert_eq!(errors("handle {\n@b path /b\n}\nrespond @b 1"), ["unknown matcher `@b`"]);
    }

    #[test]
    fn a_star_is_no_condition() {
        assert!(routes("respond * x")[0].matchers.is_empty());
        assert_eq!(routes("respond /a* x")[0].matchers.len(), 1);
    }

    #[test]
    fn mistakes() {
        let found =
            errors("@api path /a\n@api path /b\n@c\n@d `pth('/x')`\n@e pth /x\nrespond @apj 1\nrespond @e 2");
        assert_eq!(found[0], "the matcher `@api` is defined twice");
        assert!(found[1].contains("too few arguments for `@c`"), "{found:?}");
        assert!(found[2].starts_with("`pth` is no function"), "{found:?}");
        assert_eq!(found[3], "unknown condition `pth`; did you mean `path`?");
        assert_eq!(found[4], "unknown matcher `@apj`; did you mean `@api`?");
        assert_eq!(found.len(), 5);
    }
}
