//! Routes: a list of conditions and handlers, and a request's way through it.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::directives::Context;
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
        let mut groups_taken: Vec<u32> = Vec::new();
        for route in &self.0 {
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
                end => return end,
            }
        }
        Flow::Next
    }
}
