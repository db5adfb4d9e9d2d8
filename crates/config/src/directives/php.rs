//! `php [MATCHER] { … }`: what reaches it goes to PHP.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `root PATH` | the site's root | |
//! | `split_path TEXT…` (or `split`) | .php | where the script's path ends and PATH_INFO begins |
//! | `resolve_root_symlink [true\|false]` | true | scripts see the directory that a linked root points to |
//! | `env NAME VALUE`, or a block | | for `$_SERVER` and `getenv()`; a worker of this block has them at boot too, and its own `env` goes before them |
//! | `worker FILE [N]`, or a block | | a worker for requests of this block only; see `workers.rs` |
//! | `hot_reload [PATTERN…]`, or a block of `watch PATTERN…` and `topic TOPIC` | `./**/*.{css,env,gif,htm,html,jpg,jpeg,js,mjs,php,png,svg,twig,webp,xml,yaml,yml}` | pages in browsers change when such a file does; see [development](worker.md#development) |
//! | `request_body_timeout DURATION` | the server's `read_body` | longest silence within a request body; 0: no limit |
//! | `request_buffering on` \| `off` | on | a thread gets the request when its body is complete, in memory or a file; see `spool.rs` |
//! | `deadline DURATION` | that of the [directive](#deadline) | soft real-time limit |
//! | `retry [METHOD…]` \| `off` | that of the [directive](#retry) | which requests are run once more when their engine dies |
//! | `request_timeout DURATION` \| `off` | that of the worker, or of `frankenphp` | longest time that a request may run in PHP; see [time limits](deadlines.md#end-what-takes-too-long) |
//! | `lane NAME` \| `off` | that of the [directive](#lane) | lane |
//! | `name TEXT` | | taken, with a warning: what FrankenPHP calls the block |
//! | `trust_client_address` | off | REMOTE_ADDR, HTTPS and others say what a trusted proxy says of its client; see `servers.rs` |
//!
//! ```caddyfile
//! @scripts path *.php
//! php @scripts {
//!     root /srv/app
//!     worker index.php 4
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::delivery;
use crate::hot_reload;
use crate::matchers::Scope;
use crate::model::{Handler, Php, Template};
use crate::problems::{error, unknown_option};
use crate::values;
use crate::workers::{self, Place};
use regent_caddyfile::Error;
use std::path::PathBuf;

pub(super) const DIRECTIVE: Directive = super::handler("php", parse);

pub(super) const OPTIONS: &[&str] = &[
    "deadline",
    "env",
    "hot_reload",
    "lane",
    "name",
    "request_body_timeout",
    "request_buffering",
    "request_timeout",
    "resolve_root_symlink",
    "retry",
    "root",
    "split_path",
    "trust_client_address",
    "worker",
];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("php [MATCHER] { OPTION… }")?;
    let mut block = Block::default();
    for option in call.options() {
        if !block.option(cx, &option) {
            cx.errors.push(unknown_option(option.name, "php", OPTIONS, &[]));
        }
    }
    Ok(Handler::Php(block.finish(cx)))
}

/// The options that `php` and `php_server` share.
#[derive(Default)]
pub(super) struct Block<'a> {
    pub php: Php,
    /// Parsed last, as they depend on the root and on the environment.
    workers: Vec<Call<'a>>,
    /// Where pages subscribe.
    hot_reload: Option<String>,
}

impl<'a> Block<'a> {
    /// Takes an option in; false if there is none of this name.
    pub fn option(&mut self, cx: &mut Context<'_>, option: &Call<'a>) -> bool {
        if option.name() == "worker" {
            self.workers.push(*option);
            return true;
        }
        if delivery::option(cx, option, &mut self.php.delivery) {
            return true;
        }
        let result = match option.name() {
            "root" => option.one("root PATH").map(|path| self.php.root = Some(Template::parse(&path.text))),
            "split_path" | "split" => option.some("split_path TEXT…").map(|texts| {
                self.php.split_path = texts.iter().map(|token| token.text.clone()).collect();
            }),
            "request_timeout" => option
                .one("request_timeout DURATION | off")
                .and_then(values::request_timeout)
                .map(|limit| self.php.delivery.request_timeout = Some(limit)),
            "hot_reload" if self.hot_reload.is_some() => Err(error(
                option.name,
                "`hot_reload` stands in this block already; it can have several patterns",
            )),
            "hot_reload" => hot_reload::parse(cx, option).map(|url| self.hot_reload = Some(url)),
            // FrankenPHP tells equal workers of several blocks apart by it, where Regent numbers them.
            "name" => option.one("name TEXT").map(|_| {
                let message =
                    "`name` has no effect: workers are told apart by their own `name`, or by a number";
                cx.warn(option.name, message);
            }),
            "resolve_root_symlink" => symlink(option).map(|value| self.php.resolve_root_symlink = value),
            _ => return false,
        };
        cx.check(result);
        true
    }

    pub fn finish(mut self, cx: &mut Context<'_>) -> Php {
        if let Some(url) = self.hot_reload.take() {
            let env = &mut self.php.delivery.env;
            env.retain(|(name, _)| name != hot_reload::VARIABLE);
            env.push((hot_reload::VARIABLE.to_owned(), Template::text(url)));
        }
        let fixed = |template: &Template| cx.fixed(template);
        // As in FrankenPHP, a worker's file starts from the root only if the root stands in this block.
        let root = self.php.root.as_ref().and_then(fixed).map(PathBuf::from);
        let env = self
            .php
            .delivery
            .env
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), fixed(value)?)))
            .collect();
        let place = Place::Block { root, env };
        self.php.workers = workers::declare(cx, &self.workers, &place);
        self.php
    }
}

fn symlink(option: &Call<'_>) -> Result<bool, Error> {
    match option.args {
        [] => option.without_block("resolve_root_symlink [true | false]").map(|()| true),
        _ => values::boolean(option.one("resolve_root_symlink [true | false]")?),
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{
        ClientAddress, Delivery, Handler, LaneChoice, Php, RequestBuffering, RetryMethods, Template,
    };
    use std::time::Duration;

    #[test]
    fn options() {
        let text = "php {\nroot /srv\nsplit .php .phtml\nresolve_root_symlink false\nenv A 1\nenv {\nB {host}\n}\n\
                    request_body_timeout 30s\nrequest_buffering off\ndeadline 2s\nrequest_timeout 30s\nlane slow\nretry off\n\
                    trust_client_address\n}";
        let expected = Php {
            root: Some(Template::text("/srv")),
            split_path: vec![".php".into(), ".phtml".into()],
            resolve_root_symlink: false,
            workers: Vec::new(),
            delivery: Delivery {
                env: vec![("A".into(), Template::text("1")), ("B".into(), Template::parse("{host}"))],
                request_body_timeout: Some(Duration::from_secs(30)),
                request_buffering: RequestBuffering::Streaming,
                deadline: Some(Duration::from_secs(2)),
                request_timeout: Some(Duration::from_secs(30)),
                retry: Some(RetryMethods::NONE),
                lane: Some(LaneChoice::Named("slow".into())),
                client_address: ClientAddress::Forwarded,
            },
        };
        assert_eq!(handler(text), Handler::Php(expected));
        assert_eq!(handler("php /x*"), Handler::Php(Php::default()));
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "php {\nindex x\nname\nenv A\nsplit\nrequest_body_timeout 5\nrequest_buffering some\ndeadline 0\nrequest_timeout 5\nlane\n}\nphp x",
        );
        assert!(found[0].contains("unknown option `index` of `php`"), "{found:?}");
        assert!(found[1].contains("write: name TEXT"), "{found:?}");
        assert_eq!(found.len(), 10, "{found:?}");
    }
}
