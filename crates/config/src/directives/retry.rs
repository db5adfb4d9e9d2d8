//! `retry [MATCHER] [METHOD…] | off`: which of the requests to PHP and to native modules that follow are run once more when
//! their engine dies while it runs them.
//!
//! Without a method: GET, HEAD and OPTIONS, which change nothing. PUT and DELETE can be named too, if scripts keep to what they
//! mean: the same once and twice. `off`: none, as where nothing is said; the option of the same name in the
//! [global options](#frankenphp) is for all sites. Of several in a block, only the first that matches is carried out,
//! the most specific path first. What is never run again, and why: [run again what was lost](crashes.md#run-again-what-was-lost).
//!
//! ```caddyfile
//! retry
//! retry /api/* GET HEAD PUT DELETE
//! retry /exports/* off
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use crate::values;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("retry", parse);

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    values::retry(call, "retry [MATCHER] [METHOD…] | off").map(Handler::Retry)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, errors, handler, routes};
    use crate::model::{Handler, RetryMethods};

    fn methods(names: &[&str]) -> RetryMethods {
        names.iter().fold(RetryMethods::NONE, |methods, name| methods.with(name).expect("it may be repeated"))
    }

    #[test]
    fn methods_that_are_named() {
        assert_eq!(handler("retry"), Handler::Retry(RetryMethods::SAFE));
        assert_eq!(handler("retry off"), Handler::Retry(RetryMethods::NONE));
        assert_eq!(handler("retry GET PUT"), Handler::Retry(methods(&["PUT", "GET"])));
    }

    #[test]
    fn the_most_specific_counts() {
        let routes = routes("retry\nretry /x/* off\nrespond x");
        let expected = [RetryMethods::NONE, RetryMethods::SAFE].map(Handler::Retry);
        assert_eq!([&routes[0].handler, &routes[1].handler], [&expected[0], &expected[1]]);
        assert!(routes[..2].iter().all(|route| route.group == Some(0)));
    }

    #[test]
    fn the_whole_server_and_a_block() {
        let config = config("{\nregent {\nretry GET\n}\n}\n:80 {\nphp {\nretry DELETE\n}\n}");
        assert_eq!(config.global.php.retry, methods(&["GET"]));
        let Handler::Php(php) = &config.servers[0].sites[0].routes[0].handler else { panic!("no PHP") };
        assert_eq!(php.delivery.retry, Some(methods(&["DELETE"])));
    }

    #[test]
    fn what_is_not_idempotent_is_refused() {
        let found = errors("retry POST\nretry get\nretry off GET\nretry {\nGET\n}\nphp {\nretry PATCH\n}");
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found[0].contains("`POST` cannot be run twice"), "{found:?}");
    }
}
