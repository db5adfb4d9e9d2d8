//! `log_skip [MATCHER]`: no access log of the site has these requests. `skip_log` is its old name.
//!
//! ```caddyfile
//! log_skip /up
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("log_skip", parse);
pub(super) const OLD_DIRECTIVE: Directive = super::handler("skip_log", parse);

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.exactly::<0>("log_skip [MATCHER]").map(|_| Handler::LogSkip)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::Handler;

    #[test]
    fn both_names() {
        assert_eq!(handler("log_skip /up"), Handler::LogSkip);
        assert_eq!(handler("skip_log"), Handler::LogSkip);
        assert_eq!(errors("log_skip /a b\nlog_skip {\n}").len(), 2);
    }
}
