//! `lane [MATCHER] NAME | off`: the lane of the requests to PHP and to native modules that follow.
//!
//! A slow lane holds a part of the threads only, so that the others are for fast routes. Without this directive each
//! route is a lane of its own; a name puts routes together, `off` lifts the bound. What the bound of a lane is can be set
//! in the global options; see `lanes.rs`. Of several in a block, only the first that matches is carried out, the most
//! specific path first.
//!
//! ```caddyfile
//! lane /reports/* reports
//! lane /health off
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use crate::values;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("lane", parse);

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.one("lane [MATCHER] NAME | off").and_then(values::lane).map(Handler::Lane)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, routes};
    use crate::model::{Handler, LaneChoice};

    #[test]
    fn names() {
        assert_eq!(handler("lane reports"), Handler::Lane(LaneChoice::Named("reports".into())));
        assert_eq!(handler("lane /health off"), Handler::Lane(LaneChoice::Off));
        assert_eq!(errors("lane\nlane a b\nlane {path}\nlane /x\nlane \"\"").len(), 5);
    }

    #[test]
    fn the_most_specific_counts() {
        let routes = routes("lane a\nlane /b/* b\nrespond x");
        assert_eq!(routes[0].handler, Handler::Lane(LaneChoice::Named("b".into())));
        assert_eq!((routes[0].group, routes[1].group), (Some(0), Some(0)));
    }
}
