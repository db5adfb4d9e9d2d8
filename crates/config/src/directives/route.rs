//! `route [MATCHER] { … }`: directives that are carried out in the order in which they are written.
//!
//! ```caddyfile
//! route {
//!     header X-First 1
//!     php_server
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use crate::routes::{self, Sorting};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("route", parse);

fn parse(cx: &mut Context<'_>, scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("route [MATCHER] { DIRECTIVE… }")?;
    let lines = call.block.unwrap_or_default();
    Ok(Handler::Subroute(routes::parse(cx, Some(scope), lines, Sorting::AsWritten)))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::handler;
    use crate::model::Handler;

    #[test]
    fn the_order_stays() {
        let Handler::Subroute(inner) = handler("route /a {\nrespond x\nroot /y\n}") else {
            panic!("no block")
        };
        assert!(matches!(
            (&inner[0].handler, &inner[1].handler),
            (Handler::Respond { .. }, Handler::Root(_))
        ));
    }
}
