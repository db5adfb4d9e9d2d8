//! `handle [MATCHER] { … }`: a block of directives of its own. Of all `handle` and `handle_path` blocks of a block,
//! only the first that matches is carried out, the most specific path first.
//!
//! ```caddyfile
//! handle /api/* {
//!     php_server
//! }
//! handle {
//!     file_server
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use crate::routes::{self, Sorting};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("handle", parse);

fn parse(cx: &mut Context<'_>, scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("handle [MATCHER] { DIRECTIVE… }")?;
    let lines = call.block.unwrap_or_default();
    Ok(Handler::Subroute(routes::parse(cx, Some(scope), lines, Sorting::ByDirective)))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, routes};
    use crate::model::{Handler, Matcher, Template};

    #[test]
    fn blocks_exclude_each_other_and_the_most_specific_goes_first() {
        let routes = routes("handle {\n}\nhandle_path /a/* {\n}\nhandle /a/b/* {\n}");
        let paths: Vec<_> = routes.iter().map(|route| route.matchers.clone()).collect();
        let path = |text: &str| vec![vec![Matcher::Path(vec![Template::text(text)])]];
        assert_eq!(paths, [path("/a/b/*"), path("/a/*"), vec![]]);
        assert!(routes.iter().all(|route| route.group == Some(0)));
    }

    #[test]
    fn its_directives_are_sorted_and_see_the_matchers_around() {
        let routes = routes("@a path /a\nhandle {\nrespond @a 1\nroot /x\n}");
        let Handler::Subroute(inner) = &routes[0].handler else { panic!("{routes:?}") };
        assert!(matches!(inner[0].handler, Handler::Root(_)));
        assert_eq!(inner[1].matchers.len(), 1);
    }

    #[test]
    fn mistakes_inside_are_found() {
        assert_eq!(errors("handle {\nrespnd x\n}\nhandle x {\n}").len(), 2);
    }
}
