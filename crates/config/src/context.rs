//! What the parsing of a whole file shares.

use crate::directives::bind::Bound;
use crate::environment::Environment;
use crate::file_texts;
use crate::host_names::{ascii_authority, ascii_host};
use crate::hot_reload::Pending;
use crate::model::{HotReload, MercureHub, Part, ReverseProxy, Template};
use crate::named_routes::NamedRoutes;
use crate::native::Natives;
use crate::order::Order;
use crate::problems::{Warning, error};
use crate::rate_zones::RateZones;
use crate::template;
use crate::workers::Workers;
use regent_caddyfile::{Error, Imports, Token};
use std::cell::Cell;

/// Whose `handle_response` it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseBlock {
    Upstream,
    Intercept,
}

/// What the configuration is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Notation {
    #[default]
    Caddyfile,
    /// Caddy's JSON, of which `regent-caddy-json` makes the lines of a Caddyfile: in the order in which they are carried
    /// out, and with the groups that it names.
    Json,
}

pub(crate) struct Context<'a> {
    pub environment: &'a Environment,
    pub notation: Notation,
    /// Those that `{file./PATH}` may name where the text has to be known now.
    pub files: Imports,
    /// Texts of such files have been put in, and any message may repeat them.
    has_file_texts: Cell<bool>,
    pub errors: Vec<Error>,
    pub warnings: Vec<Warning>,
    /// What is carried out in another order than in Caddy.
    pub differences: Vec<Warning>,
    /// What has to be there when the server starts; each has a warning too.
    pub missing: Vec<Error>,
    pub order: Order,
    pub workers: Workers,
    pub native: Natives,
    /// A `trust_client_address`, if there is one.
    pub trusting: Option<Token>,
    /// The first `tracing`, if there is one.
    pub tracing: Option<Token>,
    /// `otlp` of `metrics`, if it is there.
    pub metrics_otlp: Option<Token>,
    pub hubs: Vec<MercureHub>,
    pub hot_reloads: Vec<HotReload>,
    /// Of the site that is being parsed.
    pub hot_reloads_of_site: Vec<Pending>,
    /// All of the file so far.
    pub proxies: Vec<ReverseProxy>,
    pub named_routes: NamedRoutes,
    pub rate_zones: RateZones,
    /// The block of a `handle_response` that the lines stand in.
    pub response_block: Option<ResponseBlock>,
    /// What the latest `bind` lines say of protocols.
    pub bound: Vec<Bound>,
    /// The configuration's own files: no file server hands them out.
    pub hidden: Vec<Template>,
}

impl<'a> Context<'a> {
    pub fn new(environment: &'a Environment, notation: Notation, hidden: Vec<Template>) -> Self {
        Self {
            environment,
            notation,
            errors: Vec::new(),
            warnings: Vec::new(),
            differences: Vec::new(),
            missing: Vec::new(),
            order: Order::default(),
            workers: Workers::default(),
            native: Natives::default(),
            trusting: None,
            tracing: None,
            metrics_otlp: None,
            hubs: Vec::new(),
            hot_reloads: Vec::new(),
            hot_reloads_of_site: Vec::new(),
            proxies: Vec::new(),
            named_routes: NamedRoutes::default(),
            rate_zones: RateZones::default(),
            response_block: None,
            bound: Vec::new(),
            hidden,
            files: Imports::Anywhere,
            has_file_texts: Cell::new(false),
        }
    }

    /// Marks the errors whose messages only some may read.
    pub fn mark_private(&mut self) {
        let is_private = self.has_file_texts.get();
        for error in self.errors.iter_mut().chain(&mut self.missing) {
            error.may_quote_files |= is_private;
        }
    }

    /// The value, or `None` with its error noted, so that parsing goes on and finds the next one.
    pub fn check<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.errors.push(error)).ok()
    }

    pub fn warn(&mut self, token: &Token, message: impl Into<String>) {
        self.warnings.push(Warning { message: message.into(), span: Some(token.span.clone()) });
    }

    /// Notes what works otherwise than in Caddy.
    pub fn differ(&mut self, token: &Token, message: impl Into<String>) {
        if self.notation == Notation::Caddyfile {
            self.differences.push(Warning { message: message.into(), span: Some(token.span.clone()) });
        }
    }

    /// The text of a template that depends on the environment only; `None` if it depends on the request.
    pub fn fixed(&self, template: &Template) -> Option<String> {
        let variable = |name: &str| self.environment.variable(name).unwrap_or_default();
        let text = template::fixed(template, &variable, &self.files)?;
        let names_file =
            |part: &Part| matches!(part, Part::Placeholder(name) if name.starts_with(template::FILE));
        if template.0.iter().any(names_file) {
            self.has_file_texts.set(true);
        }
        Some(text)
    }

    /// A text that has to be known now.
    pub fn fixed_text(&self, token: &Token) -> Result<String, Error> {
        self.fixed(&Template::parse(&token.text)).ok_or_else(|| {
            let text = &token.text;
            let names = Template::parse(text).0.into_iter().filter_map(|part| match part {
                Part::Placeholder(name) => Some(name),
                Part::Text(_) => None,
            });
            let mut unread = names.filter_map(|name| file_texts::content_within(&name, &self.files)?.err());
            match unread.next() {
                Some(cause) => error(token, format!("the file of `{text}` cannot be read: {cause}")),
                None => error(
                    token,
                    format!(
                        "`{text}` cannot depend on the request: only {{env.NAME}}, {{system.hostname}} and {{file./PATH}} are possible here"
                    ),
                ),
            }
        })
    }

    /// The same for a host name, in ASCII.
    pub fn host_name(&self, token: &Token) -> Result<String, Error> {
        let name = self.fixed_text(token)?;
        ascii_host(&name)
            .ok_or_else(|| error(token, format!("`{name}` is no host name: IDNA does not allow it")))
    }

    /// The same for an address or a URL, whose host is put into ASCII.
    pub fn host_and_more(&self, token: &Token) -> Result<String, Error> {
        let text = self.fixed_text(token)?;
        ascii_authority(&text)
            .ok_or_else(|| error(token, format!("`{text}` has no host name: IDNA does not allow it")))
    }
}
