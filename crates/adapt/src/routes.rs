//! Lists of routes.

use crate::Writer;
use crate::handlers::{proxy, rewrite};
use crate::object::Object;
use regent_config::{Handler, Rewrite, Route};
use serde_json::Value;
use std::collections::HashMap;

impl Writer<'_> {
    /// Handlers that follow each other without a condition are one route, as in Caddy.
    pub(crate) fn routes(&self, routes: &[Route]) -> Vec<Value> {
        let mut names = HashMap::new();
        let mut written: Vec<Value> = Vec::new();
        let mut open: Vec<Value> = Vec::new();
        for Route { group, matchers, handler } in routes {
            if matchers.is_empty() && group.is_none() {
                match self.routes_of_handler(handler) {
                    Some(routes) => {
                        written.extend(unconditional(std::mem::take(&mut open)));
                        written.extend(routes);
                    }
                    None => open.append(&mut self.handlers(handler)),
                }
                continue;
            }
            written.extend(unconditional(std::mem::take(&mut open)));
            let handlers = self.handlers(handler);
            let mut route = Object::new();
            route.set_some(
                "group",
                group.map(|group| names.entry(group).or_insert_with(|| self.next_group()).clone()),
            );
            route.set_list("match", matchers.iter().map(|set| self.matcher_set(set)));
            route.set("handle", handlers);
            written.push(route.build());
        }
        written.extend(unconditional(open));
        written
    }

    /// What is several routes with conditions in Caddy.
    fn routes_of_handler(&self, handler: &Handler) -> Option<Vec<Value>> {
        match handler {
            Handler::Rewrite(Rewrite::TryFiles(files)) => Some(rewrite::try_files(self, files)),
            Handler::CopyToRequest(fields) => Some(proxy::copied_to_request(fields)),
            _ => None,
        }
    }

    pub(crate) fn subroute(&self, routes: &[Route]) -> Object {
        Object::subroute(self.routes(routes))
    }
}

fn unconditional(handlers: Vec<Value>) -> Option<Value> {
    let mut route = Object::new();
    route.set_list("handle", handlers);
    (!route.is_empty()).then(|| route.build())
}
