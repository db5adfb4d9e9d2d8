//! `vars [MATCHER] NAME VALUE`, or a block of such pairs: sets `{vars.NAME}`.
//!
//! Of several that match, the most specific wins, and of equals the last.
//!
//! ```caddyfile
//! vars /api/* {
//!     kind api
//!     version 2
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::conditions::check_name;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("vars", parse);

const SYNTAX: &str = "vars [MATCHER] NAME VALUE, or vars [MATCHER] { NAME VALUE … }";

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    if call.block.is_none() {
        let [name, value] = call.exactly(SYNTAX)?;
        check_name(name, &name.text)?;
        return Ok(Handler::Vars(vec![(name.text.clone(), Template::parse(&value.text))]));
    }
    call.no_arguments(SYNTAX)?;
    let mut pairs = Vec::new();
    for option in call.options() {
        let value = check_name(option.name, option.name()).and_then(|()| option.one(SYNTAX));
        let value = cx.check(value);
        pairs.extend(value.map(|value| (option.name().to_owned(), Template::parse(&value.text))));
    }
    Ok(Handler::Vars(pairs))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, load};
    use crate::model::{Handler, Template};

    fn differences(directives: &str) -> usize {
        load(&format!(":80 {{\n{directives}\n}}")).unwrap().differences.len()
    }

    #[test]
    fn one_or_several() {
        let expected =
            Handler::Vars(vec![("a".into(), Template::text("1")), ("b".into(), Template::parse("{path}"))]);
        assert_eq!(handler("vars {\na 1\nb {path}\n}"), expected);
        assert_eq!(handler("vars /x a 1"), Handler::Vars(vec![("a".into(), Template::text("1"))]));
        assert_eq!(differences("vars x 1\nvars x 2"), 1);
        assert_eq!(differences("@a method GET\nvars @a x 1\n@b host b\nvars @b x 2"), 1);
        assert_eq!(differences("vars x 1\nvars y 2\nvars /p x 3\nvars /p/q x 4"), 0);
        assert_eq!(
            differences("route {\nvars x 1\nvars x 2\n}"),
            0,
            "they are carried out as they are written"
        );
        assert_eq!(errors("vars a\nvars {\na\nb\n}\nvars {path} x").len(), 4);
    }
}
