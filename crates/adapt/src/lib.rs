//! A configuration as the JSON of Caddy: what `caddy adapt` would print of it.
//!
//! Where Caddy has a spelling, it is taken: names of keys, defaults that are left out, durations in nanoseconds, long names of
//! placeholders. What Caddy has no spelling for, the directives and options of Regent's own, is written in the words of a
//! Caddyfile: `{"handler": "regent", "directive": ["deadline", "3s"]}` as a handler, `{"regent": [{"line": […]}]}` as a
//! condition, and the global options in `apps.regent.options`. Structs are taken apart without `..`, so that a new field does not
//! compile until it has a spelling.
#![forbid(unsafe_code)]

mod handlers;
mod http;
mod matchers;
mod object;
mod responses;
mod routes;
mod server;
mod site;
mod storage;
mod text;
mod words;

use object::Object;
use regent_config::Config;
use serde_json::Value;
use std::cell::Cell;

/// The configuration with everything that is in it: passwords, keys and tokens too.
pub fn adapt(config: &Config) -> Value {
    Writer::new(config, Secrets::Shown).config()
}

/// The same to be shown: with `…` for passwords, keys and tokens. It is no configuration to be loaded.
pub fn adapt_redacted(config: &Config) -> Value {
    Writer::new(config, Secrets::Hidden).config()
}

const HIDDEN: &str = "…";

/// What becomes of texts that only the owner of a configuration may see.
#[derive(Clone, Copy, PartialEq)]
enum Secrets {
    Shown,
    Hidden,
}

/// What all parts have to know of the whole.
struct Writer<'a> {
    config: &'a Config,
    secrets: Secrets,
    /// Groups of routes so far: their names are different in the whole configuration.
    groups: Cell<u32>,
}

impl<'a> Writer<'a> {
    fn new(config: &'a Config, secrets: Secrets) -> Self {
        Self { config, secrets, groups: Cell::new(0) }
    }

    fn config(&self) -> Value {
        let Config { global: _, servers: _, proxies: _ } = self.config;
        let mut apps = Object::new();
        apps.non_empty("http", self.http());
        let mut all = Object::new();
        all.non_empty("apps", apps);
        all.build()
    }

    fn secret(&self, text: &str) -> String {
        match self.secrets {
            Secrets::Shown => text.to_owned(),
            Secrets::Hidden => HIDDEN.to_owned(),
        }
    }

    /// A name that no other group of routes has.
    fn next_group(&self) -> String {
        let number = self.groups.get();
        self.groups.set(number + 1);
        format!("group{number}")
    }
}
