//! `root [MATCHER] PATH`: the directory that files and PHP scripts are served from.
//!
//! A relative path starts from the working directory. Of several that match, the most specific counts. With one
//! argument there is no matcher, so `root /srv/app` is a path.
//!
//! ```caddyfile
//! root public/
//! root /admin/* /srv/admin
//! ```

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = Directive {
    name: "root",
    sorts_as: "root",
    matchers: Matchers::FirstOfTwo,
    parse: Parse::Handler(parse),
};

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let path = call.one("root [MATCHER] PATH")?;
    Ok(Handler::Root(Template::parse(&path.text)))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, routes};
    use crate::model::{Handler, Template};

    #[test]
    fn one_argument_is_the_path() {
        assert_eq!(handler("root /srv/app"), Handler::Root(Template::text("/srv/app")));
        assert_eq!(handler("root * public/"), Handler::Root(Template::text("public/")));
    }

    #[test]
    fn only_the_most_specific_counts() {
        let routes = routes("root /srv\nroot /admin/* /srv/admin");
        assert_eq!(routes[0].handler, Handler::Root(Template::text("/srv/admin")));
        assert_eq!((routes[0].group, routes[1].group), (Some(0), Some(0)));
    }

    #[test]
    fn a_path_is_needed() {
        assert_eq!(errors("root")[0], "too few arguments for `root`; write: root [MATCHER] PATH");
    }
}
