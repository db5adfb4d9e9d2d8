//! A configuration as the JSON of Caddy: what `caddy adapt` would print of it.
//!
//! Where Caddy has a spelling, it is taken: names of keys, defaults that are left out, durations in nanoseconds, long names of
//! placeholders. What Caddy has no spelling for, the directives and options of Regent's own, is written in the words of a
//! Caddyfile: `{"handler": "regent", "directive": ["deadline", "3s"]}` as a handler, `{"regent": [{"line": […]}]}` as a
//! condition, and the global options in `apps.regent.options`. Structs are taken apart without `..`, so that a new field does not
//! compile until it has a spelling.
#![forbid(unsafe_code)]

mod admin;
mod cache;
mod frankenphp;
mod handlers;
mod http;
mod logging;
mod matchers;
mod object;
mod responses;
mod routes;
mod server;
mod site;
mod storage;
mod text;
mod tls;
mod walk;
mod words;

use logging::AccessLogs;
use object::Object;
use regent_config::{Config, Global, WorkerRef};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use words::Line;

/// The configuration with everything that is in it: passwords, keys and tokens too.
pub fn adapt(config: &Config) -> Value {
    Writer::new(config).config()
}

/// What all parts have to know of the whole.
struct Writer<'a> {
    config: &'a Config,
    /// Groups of routes so far: their names are different in the whole configuration.
    groups: Cell<u32>,
    /// Of each handler of PHP, the workers that it can use.
    worker_lists: Vec<Vec<WorkerRef>>,
    access_logs: RefCell<AccessLogs>,
}

impl<'a> Writer<'a> {
    fn new(config: &'a Config) -> Self {
        Self {
            config,
            groups: Cell::new(0),
            worker_lists: walk::worker_lists(config),
            access_logs: RefCell::default(),
        }
    }

    fn config(&self) -> Value {
        let mut apps = Object::new();
        apps.non_empty("http", self.http());
        apps.non_empty("tls", self.tls());
        apps.non_empty("pki", self.pki());
        apps.non_empty("frankenphp", self.frankenphp());
        apps.non_empty("regent", self.own_options());
        let mut all = Object::new();
        all.non_empty("admin", self.admin());
        all.non_empty("logging", self.logging());
        all.non_empty("storage", self.storage());
        all.non_empty("apps", apps);
        all.build()
    }

    /// Global options that Caddy does not have.
    fn own_options(&self) -> Object {
        // What is not here, other parts write; traces are what directives and the environment say.
        let Config { global, servers: _, proxies: _ } = self.config;
        let Global {
            http_port: _,
            tls: _,
            grace_period: _,
            shutdown_delay: _,
            log: _,
            log_selection: _,
            logs: _,
            admin: _,
            persistence: _,
            health: _,
            metrics: _,
            metrics_export: _,
            traces: _,
            cache,
            max_header_size: _,
            php: _,
            native: _,
            hubs: _,
            hot_reloads: _,
        } = global;
        let lines = cache::line(cache).into_iter().chain(self.on_demand_line());
        let mut app = Object::new();
        app.set_list("options", lines.map(Line::build));
        app
    }

    /// A name that no other group of routes has.
    fn next_group(&self) -> String {
        let number = self.groups.get();
        self.groups.set(number + 1);
        format!("group{number}")
    }
}
