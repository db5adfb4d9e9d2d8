//! `method [MATCHER] VERB`: later handlers see this method.
//!
//! ```caddyfile
//! method /form POST
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Rewrite, Template};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("method", parse);

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let verb = call.one("method [MATCHER] VERB")?;
    Ok(Handler::Rewrite(Rewrite::Method(Template::parse(&verb.text))))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, Rewrite, Template};

    #[test]
    fn one_verb() {
        assert_eq!(handler("method /a POST"), Handler::Rewrite(Rewrite::Method(Template::text("POST"))));
        assert_eq!(errors("method A B").len(), 1);
    }
}
