//! What becomes of an upstream's response: `replace_status` and `handle_response` of `reverse_proxy`.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::directives::Context;
use crate::error::BuildError;
use crate::filters::encode::ResponseMatcher;
use crate::routing::route::Routes;
use crate::templates::status::Status;
use http::StatusCode;
use regent_config::{ResponseAction, ResponseRule};

/// The compiled rules of one directive.
pub(super) struct Responses(Vec<Rule>);

struct Rule {
    /// `None`: every response.
    matcher: Option<ResponseMatcher>,
    action: Action,
}

enum Action {
    ReplaceStatus(Status),
    Routes(Routes),
}

impl Responses {
    pub(super) fn compile(rules: &[ResponseRule], context: &Context<'_>) -> Result<Self, BuildError> {
        let compile = |rule: &ResponseRule| {
            let matcher = rule.matcher.as_ref();
            Ok(Rule {
                matcher: matcher.map(|matcher| ResponseMatcher::compile(Some(matcher))).transpose()?,
                action: match &rule.action {
                    ResponseAction::ReplaceStatus(status) => {
                        Action::ReplaceStatus(Status::compile(status, StatusCode::OK)?)
                    }
                    ResponseAction::Routes(routes) => Action::Routes(Routes::compile(routes, context)?),
                },
            })
        };
        rules.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Takes the request through what is said of the response that it has.
    pub(super) fn handle(&self, exchange: &mut Exchange) -> Flow {
        let response = exchange.proxied.as_ref().and_then(|proxied| proxied.response.as_ref());
        let Some((status, fields)) = response else { return Flow::Relay(None) };
        let fits = |rule: &&Rule| rule.matcher.as_ref().is_none_or(|matcher| matcher.fits(*status, fields));
        match self.0.iter().find(fits).map(|rule| &rule.action) {
            None => Flow::Relay(None),
            Some(Action::ReplaceStatus(status)) => Flow::Relay(Some(status.of(exchange))),
            Some(Action::Routes(routes)) => routes.run(exchange),
        }
    }
}
