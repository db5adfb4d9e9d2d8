//! Routes: a list of conditions and handlers, and a request's way through it.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::place::{Frame, Place};
use crate::context::target::{Action, Target};
use crate::directives::Context;
use crate::directives::intercept::Run;
use crate::error::BuildError;
use crate::matchers::matcher::{self, Matcher};
use crate::routing::handler::Handler;
use regent_config as config;

/// A compiled list of routes.
pub(crate) struct Routes(Vec<Route>);

struct Route {
    group: Option<u32>,
    matchers: Vec<Vec<Matcher>>,
    handler: Handler,
}

impl Run for Routes {
    fn run(&self, exchange: &mut Exchange) -> Flow {
        self.run(exchange)
    }
}

impl Routes {
    pub(crate) fn compile(routes: &[config::Route], context: &Context<'_>) -> Result<Self, BuildError> {
        let compile = |route: &config::Route| {
            Ok(Route {
                group: route.group,
                matchers: matcher::compile_sets(&route.matchers)?,
                handler: Handler::compile(&route.handler, context)?,
            })
        };
        routes.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a request through the list until a route answers it.
    pub(crate) fn run(&self, exchange: &mut Exchange) -> Flow {
        self.run_from(exchange, Frame { index: 0, groups_taken: Vec::new() })
    }

    /// Goes on where the request has left the list for an upstream, which has responded.
    pub(crate) fn resume(&self, exchange: &mut Exchange, mut place: Place) -> Flow {
        let Some(frame) = place.enter() else { return Flow::Next };
        let Some(route) = self.0.get(frame.index) else { return Flow::Next };
        match route.handler.resume(exchange, place) {
            Flow::Next => self.run_from(exchange, Frame { index: frame.index + 1, ..frame }),
            end => note_place(end, exchange, frame),
        }
    }

    fn run_from(&self, exchange: &mut Exchange, frame: Frame) -> Flow {
        let Frame { index: first, mut groups_taken } = frame;
        for (index, route) in self.0.iter().enumerate().skip(first) {
            if route.group.is_some_and(|group| groups_taken.contains(&group)) {
                continue;
            }
            match matcher::any_set(&route.matchers, exchange) {
                Err(status) => return Flow::error(status),
                Ok(false) => continue,
                Ok(true) => groups_taken.extend(route.group),
            }
            match route.handler.handle(exchange) {
                Flow::Next => {}
                end => return note_place(end, exchange, Frame { index, groups_taken }),
            }
        }
        Flow::Next
    }
}

/// A request that leaves for an upstream may come back.
pub(super) fn note_place(flow: Flow, exchange: &mut Exchange, frame: Frame) -> Flow {
    if let Flow::Answer(Action::Forward(Target::Proxy(target))) = &flow
        && target.rules.handles_responses()
    {
        exchange.place.is_within(frame);
    }
    flow
}
