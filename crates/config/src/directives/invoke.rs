//! `invoke [MATCHER] NAME`: carries out the directives of a named route, `&(NAME) { … }`, which stands beside the sites.
//!
//! Whoever invokes a route shares the upstreams and workers in it, where `import` of a snippet makes new ones.
//!
//! ```caddyfile
//! &(app) {
//!     reverse_proxy 127.0.0.1:9000
//! }
//! http://:8080 {
//!     invoke /api/* app
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use crate::named_routes;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("invoke", parse);

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let name = call.one("invoke [MATCHER] NAME")?;
    named_routes::of_name(cx, name).map(Handler::Subroute)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors, load};
    use crate::model::Handler;

    #[test]
    fn those_who_invoke_a_route_share_what_is_in_it() {
        let text = "&(app) {\nreverse_proxy a:1\n}\n:80 {\ninvoke app\n}\n:81 {\ninvoke /x* app\n}";
        let config = config(text);
        assert_eq!(config.proxies.len(), 1);
        let routes = |index: usize| config.servers[index].sites[0].routes.clone();
        assert_eq!(routes(0)[0].handler, routes(1)[0].handler);
        assert!(matches!(&routes(0)[0].handler, Handler::Subroute(inner) if inner.len() == 1));
        assert_eq!(routes(1)[0].matchers.len(), 1);
    }

    #[test]
    fn a_route_may_invoke_others_but_not_itself() {
        let text = "&(a) {\ninvoke b\n}\n&(b) {\nrespond 1\n}\n:80 {\ninvoke a\n}";
        assert!(load(text).is_ok());
        let found = file_errors("&(a) {\ninvoke b\n}\n&(b) {\ninvoke a\n}\n:80 {\ninvoke a\n}");
        assert_eq!(found, ["the named route `a` invokes itself"]);
    }

    #[test]
    fn mistakes() {
        let found = file_errors("&(app) {\nnonsense\n}\n:80 {\ninvoke app\ninvoke apq\ninvoke\n}");
        assert!(found.iter().any(|message| message.contains("did you mean `app`?")), "{found:?}");
        assert_eq!(found.len(), 3, "{found:?}");
        let warnings = load("&(app) {\nrespond 1\n}\n:80 {\n}").unwrap().warnings;
        assert_eq!(warnings[0].to_string(), "Caddyfile:1:1: no site invokes this route, so it has no effect");
        let found = file_errors("&(app) {\nrespond {resp.status_code}\n}\n:80 {\ninvoke app\n}");
        assert!(found[0].contains("not built yet"), "{found:?}");
    }
}
