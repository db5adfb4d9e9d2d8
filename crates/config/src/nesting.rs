//! Every handler of a site, however deep its route is nested.
//!
//! Whoever asks what a site has somewhere walks by these iterators, so that one place alone knows what nests routes.

use crate::model::{
    Caching, Config, Handler, HubId, InterceptAction, ResponseAction, ReverseProxy, Route, ScriptPurge, Site,
};
use std::slice;

impl Config {
    /// The handlers of all sites.
    pub fn handlers(&self) -> impl Iterator<Item = &Handler> {
        let sites = self.servers.iter().flat_map(|server| &server.sites);
        sites.flat_map(|site| site.handlers(&self.proxies))
    }
}

impl Site {
    /// Its handlers: each before those of the routes that it nests, those of `handle_errors` last. `proxies`:
    /// [`Config::proxies`].
    pub fn handlers<'a>(&'a self, proxies: &'a [ReverseProxy]) -> impl Iterator<Item = &'a Handler> {
        Walk { proxies, lists: vec![self.error_routes.iter(), self.routes.iter()] }
    }

    /// Its hub: the first that stands there.
    pub fn hub(&self, proxies: &[ReverseProxy]) -> Option<HubId> {
        self.handlers(proxies).find_map(|handler| match handler {
            Handler::Mercure(hub) => Some(*hub),
            _ => None,
        })
    }

    /// What its scripts may purge: the first `cache` that stands there says it.
    pub fn script_purge(&self, proxies: &[ReverseProxy]) -> ScriptPurge {
        let said = self.handlers(proxies).find_map(|handler| match handler {
            Handler::Cache(Caching::On(cache)) => Some(cache.script_purge),
            _ => None,
        });
        said.unwrap_or(ScriptPurge::Off)
    }
}

struct Walk<'a> {
    proxies: &'a [ReverseProxy],
    /// What is left of each list of routes that the walk is in, the innermost last.
    lists: Vec<slice::Iter<'a, Route>>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = &'a Handler;

    fn next(&mut self) -> Option<&'a Handler> {
        loop {
            match self.lists.last_mut()?.next() {
                Some(Route { handler, .. }) => {
                    let nested = nested(handler, self.proxies);
                    self.lists.extend(nested.into_iter().rev().map(<[Route]>::iter));
                    return Some(handler);
                }
                None => self.lists.pop(),
            };
        }
    }
}

/// The lists of routes within a handler. No arm is for "all others": a new handler has to say whether it nests routes.
fn nested<'a>(handler: &'a Handler, proxies: &'a [ReverseProxy]) -> Vec<&'a [Route]> {
    match handler {
        Handler::Subroute(routes) => vec![routes],
        Handler::Intercept(rules) => {
            let routes = rules.iter().filter_map(|rule| match &rule.action {
                InterceptAction::Routes(routes) => Some(&**routes),
                InterceptAction::Status(_) => None,
            });
            routes.collect()
        }
        Handler::ReverseProxy(id) => {
            let rules = proxies.get(usize::from(id.0)).into_iter().flat_map(|proxy| &proxy.responses);
            let routes = rules.filter_map(|rule| match &rule.action {
                ResponseAction::Routes(routes) => Some(&**routes),
                ResponseAction::ReplaceStatus(_) => None,
            });
            routes.collect()
        }
        Handler::Tracing(_)
        | Handler::ServerTiming(_)
        | Handler::Root(_)
        | Handler::Vars(_)
        | Handler::Map(_)
        | Handler::LogSkip
        | Handler::LogAppend { .. }
        | Handler::LogName(_)
        | Handler::Header(_)
        | Handler::HeaderMatch(..)
        | Handler::RequestHeader(_)
        | Handler::Rewrite(_)
        | Handler::Redirect { .. }
        | Handler::Respond { .. }
        | Handler::Abort
        | Handler::Error { .. }
        | Handler::RequestBody(_)
        | Handler::Deadline(_)
        | Handler::Retry(_)
        | Handler::Lane(_)
        | Handler::RunDeparted
        | Handler::Encode(_)
        | Handler::Templates(_)
        | Handler::Cache(_)
        | Handler::BasicAuth(_)
        | Handler::RateLimit(_)
        | Handler::Mercure(_)
        | Handler::Metrics
        | Handler::FileServer(_)
        | Handler::Php(_)
        | Handler::PhpServer(_)
        | Handler::Native(_)
        | Handler::CopyResponse(_)
        | Handler::CopyResponseHeaders(_)
        | Handler::CopyToRequest(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::config;
    use crate::model::{Handler, HubId, ScriptPurge};

    /// A site for each kind of block that nests routes, with `lines` in it.
    fn nesting(lines: &str) -> Vec<String> {
        let blocks = [
            "LINES",
            "handle /a* {\nLINES\n}\nrespond x",
            "handle_path /a* {\nLINES\n}\nrespond x",
            "route {\nroute {\nLINES\n}\n}",
            "handle_errors {\nLINES\n}",
            "handle_errors 404 {\nhandle {\nLINES\n}\n}",
            "intercept {\nhandle_response {\nLINES\n}\n}\nrespond x",
            "reverse_proxy 127.0.0.1:1 {\nhandle_response {\nLINES\n}\n}",
            "php_fastcgi 127.0.0.1:1 {\nhandle_response {\nLINES\n}\n}",
            "forward_auth 127.0.0.1:1 {\nuri /\nhandle_response {\nLINES\n}\n}",
            "reverse_proxy 127.0.0.1:1 {\nhandle_response {\nreverse_proxy 127.0.0.1:2 {\nhandle_response {\nintercept {\n\
             handle_response {\nLINES\n}\n}\n}\n}\n}\n}",
            "invoke named",
        ];
        let of_block = |block: &&str| match *block {
            "invoke named" => format!("&(named) {{\n{lines}\n}}\n:80 {{\ninvoke named\n}}"),
            block => format!(":80 {{\n{}\n}}", block.replace("LINES", lines)),
        };
        let by_path = format!(":80/a {{\n{lines}\n}}\n:80 {{\nrespond x\n}}");
        blocks.iter().map(of_block).chain([by_path]).collect()
    }

    #[test]
    fn a_handler_is_found_in_every_block_that_nests_routes() {
        for text in nesting("php") {
            let config = config(&text);
            let found = config.handlers().filter(|handler| matches!(handler, Handler::Php(_))).count();
            assert_eq!(found, 1, "{text}");
        }
    }

    #[test]
    fn a_hub_and_a_rule_of_purges_are_found_there_too() {
        for text in nesting("mercure {\nanonymous\n}\ncache {\nscript_purge server\n}\nrespond x") {
            let config = config(&text);
            let site = &config.servers[0].sites[0];
            assert_eq!(site.hub(&config.proxies), Some(HubId(0)), "{text}");
            assert_eq!(site.script_purge(&config.proxies), ScriptPurge::Server, "{text}");
        }
    }

    #[test]
    fn handlers_come_in_the_order_of_the_file() {
        let text = ":80 {\nroute {\nrespond 1\nroute {\nrespond 2\n}\nrespond 3\n}\nhandle_errors {\nrespond 4\n}\n}";
        let config = config(text);
        let bodies: Vec<_> = config
            .handlers()
            .filter_map(|handler| match handler {
                Handler::Respond { body, .. } => body.as_text(),
                _ => None,
            })
            .collect();
        assert_eq!(bodies, ["1", "2", "3", "4"]);
    }
}
