//! `deadline [MATCHER] DURATION`: soft real-time limit of the requests to PHP and to native modules that follow.
//!
//! From the first byte of the request's head to the last byte of the answer. A request that cannot meet it any more when
//! it arrives is answered with 503 at once; one that misses it is counted. Of several in a block, only the first that
//! matches is carried out, the most specific path first.
//!
//! ```caddyfile
//! deadline 500ms
//! deadline /reports/* 10s
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use crate::values;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("deadline", parse);

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.one("deadline [MATCHER] DURATION").and_then(values::positive_duration).map(Handler::Deadline)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, routes};
    use crate::model::Handler;
    use std::time::Duration;

    #[test]
    fn times() {
        assert_eq!(handler("deadline 500ms"), Handler::Deadline(Duration::from_millis(500)));
        assert_eq!(errors("deadline 0s\ndeadline 5\ndeadline /x\ndeadline 1s 2s").len(), 4);
    }

    #[test]
    fn the_most_specific_counts_and_php_sees_it() {
        let routes = routes("php\ndeadline 1s\ndeadline /slow/* 1m");
        let seconds = [60, 1].map(|seconds| Handler::Deadline(Duration::from_secs(seconds)));
        assert_eq!([&routes[0].handler, &routes[1].handler], [&seconds[0], &seconds[1]]);
        assert!(routes[..2].iter().all(|route| route.group == Some(0)));
        assert!(matches!(routes[2].handler, Handler::Php(_)));
    }
}
