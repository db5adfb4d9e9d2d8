//! `intercept`: responses that are made anew, by what they say themselves.

use crate::context::exchange::Exchange;
use crate::context::interceptor::{Interception, Interceptor};
use crate::error::BuildError;
use crate::filters::encode::matching::ResponseMatcher;
use crate::templates::status::Status;
use http::StatusCode;
use regent_config::{InterceptAction, InterceptRule};

/// The compiled directive. `R`: compiled routes, which run a request.
pub(crate) struct Intercept<R> {
    rules: Vec<Rule<R>>,
}

struct Rule<R> {
    matcher: Option<ResponseMatcher>,
    action: Action<R>,
}

enum Action<R> {
    Routes(R),
    Status(Status),
}

/// Routes that a request can be taken through.
pub(crate) trait Run: Send + Sync {
    fn run(&self, exchange: &mut Exchange) -> crate::context::flow::Flow;
}

impl<R> Intercept<R> {
    pub(crate) fn compile(
        rules: &[InterceptRule],
        routes: impl Fn(&[regent_config::Route]) -> Result<R, BuildError>,
    ) -> Result<Self, BuildError> {
        let rule = |rule: &InterceptRule| {
            let matcher = rule.matcher.as_ref().map(|matcher| ResponseMatcher::compile(Some(matcher)));
            let action = match &rule.action {
                InterceptAction::Routes(inner) => Action::Routes(routes(inner)?),
                InterceptAction::Status(status) => Action::Status(Status::compile(status, StatusCode::OK)?),
            };
            Ok(Rule { matcher: matcher.transpose()?, action })
        };
        Ok(Self { rules: rules.iter().map(rule).collect::<Result<_, _>>()? })
    }
}

impl<R: Run> Interceptor for Intercept<R> {
    fn intercept(&self, exchange: &mut Exchange) -> Option<Interception> {
        let head = exchange.response_head()?;
        let fits = |rule: &&Rule<R>| {
            rule.matcher.as_ref().is_none_or(|matcher| matcher.fits(head.status, &head.headers))
        };
        let rule = self.rules.iter().find(fits)?;
        Some(match &rule.action {
            Action::Routes(routes) => Interception::Flow(routes.run(exchange)),
            Action::Status(status) => Interception::Status(status.of(exchange)),
        })
    }
}
