//! `handle_path /PREFIX/* { … }`: as `handle`, and the prefix is taken off the path for the directives in the block.
//!
//! ```caddyfile
//! handle_path /static/* {
//!     file_server
//! }
//! ```

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Matcher, Rewrite, Route, Template};
use crate::problems::error;
use crate::routes::{self, Sorting};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = Directive {
    name: "handle_path",
    sorts_as: "handle",
    matchers: Matchers::None,
    parse: Parse::Routes(parse),
};

fn parse(cx: &mut Context<'_>, scope: &Scope<'_>, call: &Call<'_>) -> Result<Vec<Route>, Error> {
    let syntax = "handle_path /PREFIX/* { DIRECTIVE… }";
    let [path] = call.args else { return Err(call.wrong_arguments(1, syntax)) };
    if !path.text.starts_with('/') {
        return Err(error(path, format!("the path of `handle_path` has to begin with `/`; write: {syntax}")));
    }
    let prefix = path.text.strip_suffix("/*").or_else(|| path.text.strip_suffix('*')).unwrap_or(&path.text);
    let strip = Handler::Rewrite(Rewrite::StripPrefix(Template::parse(prefix)));
    let mut inner = vec![Route { group: None, matchers: Vec::new(), handler: strip }];
    inner.extend(routes::parse(cx, Some(scope), call.block.unwrap_or_default(), Sorting::ByDirective));
    let matchers = vec![vec![Matcher::Path(vec![Template::parse(&path.text)])]];
    Ok(vec![Route { group: None, matchers, handler: Handler::Subroute(inner) }])
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Rewrite, Template};

    fn prefix(directive: &str) -> Template {
        let Handler::Subroute(mut inner) = handler(directive) else { panic!("no block") };
        match inner.remove(0).handler {
            Handler::Rewrite(Rewrite::StripPrefix(prefix)) => prefix,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_prefix_has_no_star() {
        for (path, expected) in [("/a/*", "/a"), ("/a*", "/a"), ("/a", "/a")] {
            assert_eq!(prefix(&format!("handle_path {path} {{\nrespond x\n}}")), Template::text(expected));
        }
        assert_eq!(errors("handle_path a {\n}\nhandle_path {\n}").len(), 2);
    }
}
