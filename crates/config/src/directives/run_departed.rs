//! `run_departed [MATCHER]`: requests to PHP and to native modules that follow run although their clients have left.
//!
//! Without it a request whose client leaves while it waits is taken out of the queue, and a script whose client leaves is ended at its
//! next output. This is for what is asked for and not waited for: the loopback request of WordPress's cron, `fsockopen()` and
//! `fclose()`. A request counts from when it has come with its whole body; it waits, within `max_wait_time` and its lane, and runs as
//! if its client were there. What it answers goes nowhere, and into the access log. A stop of the server does not wait for those that
//! no thread has taken.
//!
//! ```caddyfile
//! run_departed /wp-cron.php
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("run_departed", parse);

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("run_departed [MATCHER]").map(|()| Handler::RunDeparted)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, routes};
    use crate::model::Handler;

    #[test]
    fn it_has_a_matcher_and_nothing_else() {
        assert_eq!(handler("run_departed"), Handler::RunDeparted);
        assert_eq!(handler("run_departed /wp-cron.php"), Handler::RunDeparted);
        assert_eq!(errors("run_departed always\nrun_departed /x y").len(), 2);
    }

    #[test]
    fn it_comes_before_what_it_is_about() {
        let routes = routes("php\nrun_departed /cron");
        assert_eq!(routes[0].handler, Handler::RunDeparted);
    }
}
