//! `abort [MATCHER]`: closes the connection without a response; of HTTP/2, the stream.
//!
//! Access logs have the status 444 for it, as those of nginx.
//!
//! ```caddyfile
//! @probes path *.env /wp-login.php
//! abort @probes
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("abort", parse);

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.exactly::<0>("abort [MATCHER]").map(|_| Handler::Abort)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::Handler;

    #[test]
    fn it_takes_a_matcher_alone() {
        assert_eq!(handler("abort /x"), Handler::Abort);
        assert_eq!(errors("abort /x 1\nabort {\n}").len(), 2);
    }
}
