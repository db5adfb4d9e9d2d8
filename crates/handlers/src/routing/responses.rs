//! What becomes of an upstream's response: `replace_status` and `handle_response` of `reverse_proxy`.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::place::{Frame, Place};
use crate::directives::Context;
use crate::error::BuildError;
use crate::filters::encode::ResponseMatcher;
use crate::routing::route::{Routes, note_place};
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
        let fits = |rule: &Rule| rule.matcher.as_ref().is_none_or(|matcher| matcher.fits(*status, fields));
        let Some(index) = self.0.iter().position(fits) else { return Flow::Relay(None) };
        match &self.0[index].action {
            Action::ReplaceStatus(status) => Flow::Relay(Some(status.of(exchange))),
            Action::Routes(routes) => note_rule(routes.run(exchange), exchange, index),
        }
    }

    /// Goes on with a request that has left the routes of a rule for another upstream.
    pub(super) fn resume(&self, exchange: &mut Exchange, mut place: Place) -> Flow {
        let Some(frame) = place.enter() else { return self.handle(exchange) };
        match self.0.get(frame.index).map(|rule| &rule.action) {
            Some(Action::Routes(routes)) => note_rule(routes.resume(exchange, place), exchange, frame.index),
            _ => Flow::Next,
        }
    }
}

/// Of a place within the routes of a rule, which rule it is.
fn note_rule(flow: Flow, exchange: &mut Exchange, index: usize) -> Flow {
    note_place(flow, exchange, Frame { index, groups_taken: Vec::new() })
}
