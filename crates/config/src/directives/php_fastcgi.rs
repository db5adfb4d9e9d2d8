//! `php_fastcgi [MATCHER] ADDRESS… { OPTION… }`: hands PHP scripts to a php-fpm, as in Caddy: for sites that are moved to
//! the server's own PHP one after the other.
//!
//! In order: a redirect to the path with `/` when `{path}/INDEX` exists; a rewrite to the first of `try_files` that
//! exists, or to its last; scripts to php-fpm. What is no script then is for the directives behind it, such as
//! `file_server`. Files are looked for here: both servers need the site, though not at the same place.
//!
//! Options are those of [reverse_proxy](#reverse_proxy) but `transport`, those of its `transport fastcgi`, and
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `split TEXT…` | .php | endings of scripts |
//! | `index FILE` \| `off` | index.php | the script of a directory, and of what no file is there for |
//! | `try_files FILE…` | {path} {path}/INDEX INDEX | |
//!
//! ```caddyfile
//! root /srv/shop/public
//! php_fastcgi unix//run/php/php8.4-fpm.sock
//! file_server
//! ```

use super::reverse_proxy::{self, Preset, fastcgi, transport::Written};
use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{
    FastCgi, FileMatcher, Handler, Matcher, ProxyTransport, Rewrite, Route, Template, TryPolicy,
};
use crate::problems::error;
use regent_caddyfile::{Error, Line};

pub(super) const DIRECTIVE: Directive = Directive {
    name: "php_fastcgi",
    sorts_as: "php_fastcgi",
    matchers: Matchers::First,
    parse: Parse::Handler(parse),
};

/// What the directive has beside the options of `reverse_proxy`.
struct Options {
    index: Option<String>,
    try_files: Vec<String>,
    transport: ProxyTransport,
}

fn parse(cx: &mut Context<'_>, scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let mut options = Options::default();
    let mut rest: Vec<Line> = Vec::new();
    for line in call.block.unwrap_or_default() {
        let option = Call::new(line);
        match option.name() {
            "transport" => {
                let message = "`php_fastcgi` has no `transport`: write its options beside the others";
                cx.errors.push(error(option.name, message));
            }
            "index" | "try_files" => {
                let read = options.read(&option);
                cx.check(read);
            }
            name if fastcgi::OPTIONS.contains(&name) => {
                let read = fastcgi::option(cx, &option, &mut options.transport);
                cx.check(read);
            }
            _ => rest.push(line.clone()),
        }
    }
    let mut routes = options.routes();
    let scripts = scripts(&options.transport);
    let preset = Preset { transport: Written::of(options.transport, call.name), ..Preset::default() };
    let handler = reverse_proxy::parse_with(cx, scope, &Call { block: Some(&rest), ..*call }, preset)?;
    routes.push(Route { group: None, matchers: vec![vec![scripts]], handler });
    Ok(Handler::Subroute(routes))
}

impl Default for Options {
    fn default() -> Self {
        let fastcgi = FastCgi { split: vec![".php".into()], ..FastCgi::default() };
        Self {
            index: Some("index.php".into()),
            try_files: Vec::new(),
            transport: ProxyTransport { fastcgi: Some(fastcgi), ..ProxyTransport::default() },
        }
    }
}

impl Options {
    fn read(&mut self, option: &Call<'_>) -> Result<(), Error> {
        if option.name() == "index" {
            let index = option.one("index FILE | off")?;
            self.index = (index.text != "off").then(|| index.text.clone());
        } else {
            let files = option.some("try_files FILE…")?;
            self.try_files = files.iter().map(|file| file.text.clone()).collect();
        }
        Ok(())
    }

    /// What comes before the scripts (Caddy's fastcgi/caddyfile.go, `parsePHPFastCGI`).
    fn routes(&self) -> Vec<Route> {
        let Some(index) = &self.index else { return Vec::new() };
        let of_directory = format!("{{path}}/{index}");
        let files = match self.try_files.is_empty() {
            true => vec!["{path}".to_owned(), of_directory.clone(), index.clone()],
            false => self.try_files.clone(),
        };
        let is_script = files.last().is_some_and(|last| last.ends_with(".php"));
        let policy = if is_script { TryPolicy::FirstExistFallback } else { TryPolicy::FirstExist };
        let mut routes = Vec::new();
        if files.contains(&of_directory) {
            routes.push(redirect_directories(&of_directory));
        }
        let split_path = self.transport.fastcgi.as_ref().map(|own| own.split.clone()).unwrap_or_default();
        let files = files.iter().map(|file| Template::parse(file)).collect();
        let files = FileMatcher { try_files: files, policy, split_path, ..FileMatcher::default() };
        routes.push(Route {
            group: None,
            matchers: vec![vec![Matcher::File(files)]],
            handler: Handler::Rewrite(Rewrite::To(Template::parse("{file_match.relative}"))),
        });
        routes
    }
}

/// `/dir` to `/dir/`, if the directory has an index.
fn redirect_directories(index: &str) -> Route {
    let exists = FileMatcher { try_files: vec![Template::parse(index)], ..FileMatcher::default() };
    let is_canonical = Matcher::Path(vec![Template::text("*/")]);
    Route {
        group: None,
        matchers: vec![vec![Matcher::File(exists), Matcher::Not(vec![vec![is_canonical]])]],
        handler: Handler::Redirect {
            to: Template::parse("{http.request.orig_uri.path}/{http.request.orig_uri.prefixed_query}"),
            status: Template::text("308"),
        },
    }
}

fn scripts(transport: &ProxyTransport) -> Matcher {
    let endings = transport.fastcgi.iter().flat_map(|own| &own.split);
    Matcher::Path(endings.map(|ending| Template::text(format!("*{ending}"))).collect())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, errors, handler};
    use crate::model::{
        FastCgi, Handler, LbPolicy, Matcher, Rewrite, Route, Template, TryPolicy, UpstreamAddress,
    };
    use std::time::Duration;

    fn routes(directive: &str) -> Vec<Route> {
        match handler(directive) {
            Handler::Subroute(routes) => routes,
            other => panic!("{other:?}"),
        }
    }

    fn tried(route: &Route) -> (Vec<Template>, TryPolicy) {
        let Matcher::File(files) = &route.matchers[0][0] else { panic!("{route:?}") };
        (files.try_files.clone(), files.policy)
    }

    fn templates(texts: &[&str]) -> Vec<Template> {
        texts.iter().map(|text| Template::parse(text)).collect()
    }

    #[test]
    fn it_is_a_redirect_a_rewrite_and_a_proxy() {
        let routes = routes("php_fastcgi /app/* a:9000 unix//run/fpm.sock");
        assert_eq!(tried(&routes[0]), (templates(&["{path}/index.php"]), TryPolicy::FirstExist));
        assert!(matches!(routes[0].handler, Handler::Redirect { .. }));
        let files = templates(&["{path}", "{path}/index.php", "index.php"]);
        assert_eq!(tried(&routes[1]), (files, TryPolicy::FirstExistFallback));
        assert!(matches!(routes[1].handler, Handler::Rewrite(Rewrite::To(_))));
        assert_eq!(routes[2].matchers, [[Matcher::Path(templates(&["*.php"]))]]);
        assert!(matches!(routes[2].handler, Handler::ReverseProxy(_)));
        assert_eq!(routes.len(), 3);
    }

    #[test]
    fn options_are_its_own_or_those_of_the_proxy() {
        let text = "php_fastcgi a:1 {\nroot /app\nsplit .php .phtml\nenv A 1\nenv {\nB {host}\n}\n\
                    resolve_root_symlink\ncapture_stderr\nread_timeout 9s\nlb_policy first\nto unix//x\n}";
        let config = config(&format!(":80 {{\n{text}\n}}"));
        let proxy = &config.proxies[0];
        let expected = FastCgi {
            root: Some(Template::text("/app")),
            split: vec![".php".into(), ".phtml".into()],
            env: vec![("A".into(), Template::text("1")), ("B".into(), Template::parse("{host}"))],
            resolve_root_symlink: true,
            capture_stderr: true,
        };
        assert_eq!(proxy.transport.fastcgi, Some(expected));
        assert_eq!(proxy.transport.read_timeout, Duration::from_secs(9));
        assert_eq!(proxy.balancing.policy, LbPolicy::First);
        assert_eq!(proxy.upstreams.len(), 2);
        let Handler::Subroute(routes) = &config.servers[0].sites[0].routes[0].handler else { panic!() };
        assert_eq!(routes[2].matchers, [[Matcher::Path(templates(&["*.php", "*.phtml"]))]]);
    }

    #[test]
    fn the_files_that_are_tried_decide_on_the_redirect_and_the_last_resort() {
        assert_eq!(routes("php_fastcgi a:1 {\nindex off\n}").len(), 1);
        let own = routes("php_fastcgi a:1 {\ntry_files {path} =404\n}");
        assert_eq!((own.len(), tried(&own[0]).1), (2, TryPolicy::FirstExist));
        let own = routes("php_fastcgi a:1 {\ntry_files {path} {path}/index.php app.php\n}");
        assert_eq!((own.len(), tried(&own[1]).1), (3, TryPolicy::FirstExistFallback));
        let own = routes("php_fastcgi a:1 {\nindex app.php\n}");
        assert_eq!(tried(&own[0]).0, templates(&["{path}/app.php"]));
    }

    #[test]
    fn a_plain_transport_has_the_same_options() {
        let config = config(":80 {\nreverse_proxy /x* a:1 {\ntransport fastcgi {\nsplit .php\n}\n}\n}");
        let split = FastCgi { split: vec![".php".into()], ..FastCgi::default() };
        assert_eq!(config.proxies[0].transport.fastcgi, Some(split));
        let plain = UpstreamAddress::parse("a:1");
        assert_eq!(format!("{:?}", config.proxies[0].upstreams), format!("[Fixed({:?})]", plain.unwrap()));
    }

    #[test]
    fn mistakes() {
        let found = errors("php_fastcgi");
        assert!(found[0].contains("needs an upstream"), "{found:?}");
        let found = errors(
            "php_fastcgi a:1 {\nrot /x\ntransport http\nindex\nenv A\nsplit\nresolve_root_symlink maybe\n}",
        );
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(found.iter().any(|message| message.contains("has no `transport`")), "{found:?}");
        let found = errors("php_fastcgi https://a");
        assert!(found[0].contains("have no scheme"), "{found:?}");
        let found = errors("php_fastcgi a:1 {\nhealth_uri /ping\n}");
        assert!(found[0].contains("cannot be asked how they are"), "{found:?}");
        let found = errors("reverse_proxy a:1 {\ntransport fastcgi {\nversions 2\n}\n}");
        assert!(found[0].contains("unknown option `versions` of `transport fastcgi`"), "{found:?}");
    }
}
