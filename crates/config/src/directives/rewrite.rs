//! `rewrite [MATCHER] TO`: later handlers see this path and query.
//!
//! Without a `?`, the query stays as it is; a `TO` that begins with `?` leaves the path. With one argument there is no
//! matcher. Within a block only the first `rewrite` that matches is carried out.
//!
//! ```caddyfile
//! rewrite /old/* /new{path}?from=old
//! ```

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Rewrite, Template};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = Directive {
    name: "rewrite",
    sorts_as: "rewrite",
    matchers: Matchers::FirstOfTwo,
    parse: Parse::Handler(parse),
};

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let to = call.one("rewrite [MATCHER] TO")?;
    Ok(Handler::Rewrite(Rewrite::To(Template::parse(&to.text))))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, routes};
    use crate::model::{Handler, Rewrite, Template};

    #[test]
    fn one_argument_is_the_target() {
        let rewrite = |to: &str| Handler::Rewrite(Rewrite::To(Template::parse(to)));
        assert_eq!(handler("rewrite /index.php"), rewrite("/index.php"));
        assert_eq!(handler("rewrite /a ?x={path}"), rewrite("?x={path}"));
        assert_eq!(errors("rewrite a b c").len(), 1);
    }

    #[test]
    fn several_exclude_each_other() {
        let groups: Vec<_> =
            routes("rewrite /a /b\nrewrite /aa /c").iter().map(|route| route.group).collect();
        assert_eq!(groups, [Some(0), Some(0)]);
    }
}
