//! `log_name [MATCHER] NAME…`: of the access logs at the site's address, only those with these names have the request.
//!
//! ```caddyfile
//! log api {
//!     no_hostname
//!     output file /var/log/api.log
//! }
//! log_name /api/* api
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("log_name", parse);

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let names = call.some("log_name [MATCHER] NAME…")?;
    Ok(Handler::LogName(names.iter().map(|token| Template::parse(&token.text)).collect()))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Template};

    #[test]
    fn names() {
        let names = vec![Template::text("a"), Template::parse("{vars.b}")];
        assert_eq!(handler("log_name /x a {vars.b}"), Handler::LogName(names));
        assert_eq!(errors("log_name").len(), 1);
    }
}
