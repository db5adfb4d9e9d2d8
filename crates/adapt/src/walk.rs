//! What has to be known of all routes before any is written.

use regent_config::{Config, Handler, InterceptAction, ResponseAction, Route, WorkerRef};

/// Of each handler of PHP, the workers that it can use.
pub(crate) fn worker_lists(config: &Config) -> Vec<Vec<WorkerRef>> {
    let mut lists = Vec::new();
    for site in config.servers.iter().flat_map(|server| &server.sites) {
        walk(config, &site.routes, &mut lists);
        walk(config, &site.error_routes, &mut lists);
    }
    lists
}

fn walk(config: &Config, routes: &[Route], lists: &mut Vec<Vec<WorkerRef>>) {
    for route in routes {
        match &route.handler {
            Handler::Php(php) => lists.push(php.workers.clone()),
            Handler::PhpServer(server) => lists.push(server.php.workers.clone()),
            Handler::Subroute(routes) => walk(config, routes, lists),
            Handler::Intercept(rules) => {
                for rule in rules {
                    if let InterceptAction::Routes(routes) = &rule.action {
                        walk(config, routes, lists);
                    }
                }
            }
            Handler::ReverseProxy(id) => {
                for rule in &config.proxies[usize::from(id.0)].responses {
                    if let ResponseAction::Routes(routes) = &rule.action {
                        walk(config, routes, lists);
                    }
                }
            }
            _ => {}
        }
    }
}
