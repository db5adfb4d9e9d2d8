//! `vars [MATCHER] NAME VALUE`, or a block of such pairs: sets `{vars.NAME}`.
//!
//! Of several that match, the most specific wins.
//!
//! ```caddyfile
//! vars /api/* {
//!     kind api
//!     version 2
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("vars", parse);

const SYNTAX: &str = "vars [MATCHER] NAME VALUE, or vars [MATCHER] { NAME VALUE … }";

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    if call.block.is_none() {
        let [name, value] = call.exactly(SYNTAX)?;
        return Ok(Handler::Vars(vec![(name.text.clone(), Template::parse(&value.text))]));
    }
    call.no_arguments(SYNTAX)?;
    let mut pairs = Vec::new();
    for option in call.options() {
        let value = option.one(SYNTAX);
        let value = cx.check(value);
        pairs.extend(value.map(|value| (option.name().to_owned(), Template::parse(&value.text))));
    }
    Ok(Handler::Vars(pairs))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Template};

    #[test]
    fn one_or_several() {
        let expected =
            Handler::Vars(vec![("a".into(), Template::text("1")), ("b".into(), Template::parse("{path}"))]);
        assert_eq!(handler("vars {\na 1\nb {path}\n}"), expected);
        assert_eq!(handler("vars /x a 1"), Handler::Vars(vec![("a".into(), Template::text("1"))]));
        assert_eq!(errors("vars a\nvars {\na\nb\n}").len(), 3);
    }
}
