//! The directives, one file each, in the order in which they are carried out.

mod abort;
mod basic_auth;
pub(crate) mod bind;
mod cache;
mod copy_response;
mod copy_response_headers;
mod deadline;
mod encode;
mod error;
mod file_server;
mod forward_auth;
mod handle;
pub(crate) mod handle_errors;
mod handle_path;
mod header;
mod ignored;
mod intercept;
mod invoke;
mod lane;
pub(crate) mod log;
mod log_append;
mod log_level;
mod log_name;
mod log_skip;
mod map;
mod mercure;
mod method;
mod metrics;
mod native;
mod php;
mod php_fastcgi;
mod php_server;
mod rate_limit;
mod redir;
mod request_body;
mod request_header;
mod respond;
mod retry;
mod reverse_proxy;
mod rewrite;
mod root;
mod route;
mod run_departed;
mod server_timing;
mod templates;
mod timeouts;
pub(crate) mod tls;
mod tracing;
mod try_files;
mod uri;
mod vars;

use crate::call::Call;
use crate::context::Context;
use crate::json;
use crate::matchers::Scope;
use crate::model::{Handler, Route};
use regent_caddyfile::{Error, Line};

/// What the parser has to know of a directive.
pub(crate) struct Directive {
    pub name: &'static str,
    /// The directive that it counts as when a block is sorted.
    pub sorts_as: &'static str,
    pub matchers: Matchers,
    pub parse: Parse,
}

/// Where a directive can have a matcher.
#[derive(Clone, Copy)]
pub(crate) enum Matchers {
    /// The first argument, if it looks like one.
    First,
    /// The same, but a single argument is none: it is what the directive is about.
    FirstOfTwo,
    None,
}

#[derive(Clone, Copy)]
pub(crate) enum Parse {
    /// It becomes one handler, under the condition of its matcher.
    Handler(fn(&mut Context<'_>, &Scope<'_>, &Call<'_>) -> Result<Handler, Error>),
    /// It becomes routes with conditions of their own.
    Routes(fn(&mut Context<'_>, &Scope<'_>, &Call<'_>) -> Result<Vec<Route>, Error>),
    /// It has no effect, for this reason.
    Ignored(&'static str),
    /// Caddy or FrankenPHP has it, Regent not yet.
    NotBuilt,
}

/// Caddy's default order (httpcaddyfile/directives.go), with what FrankenPHP and Regent add to it.
const TABLE: &[Directive] = &[
    tracing::DIRECTIVE,
    server_timing::DIRECTIVE,
    map::DIRECTIVE,
    vars::DIRECTIVE,
    not_built("fs"),
    root::DIRECTIVE,
    log_append::DIRECTIVE,
    log_skip::OLD_DIRECTIVE,
    log_skip::DIRECTIVE,
    log_name::DIRECTIVE,
    log_level::DIRECTIVE,
    header::DIRECTIVE,
    copy_response_headers::DIRECTIVE,
    request_body::DIRECTIVE,
    timeouts::DIRECTIVE,
    deadline::DIRECTIVE,
    retry::DIRECTIVE,
    lane::DIRECTIVE,
    run_departed::DIRECTIVE,
    redir::DIRECTIVE,
    method::DIRECTIVE,
    rewrite::DIRECTIVE,
    uri::DIRECTIVE,
    try_files::DIRECTIVE,
    rate_limit::DIRECTIVE,
    basic_auth::OLD_DIRECTIVE,
    basic_auth::DIRECTIVE,
    forward_auth::DIRECTIVE,
    request_header::DIRECTIVE,
    encode::DIRECTIVE,
    cache::DIRECTIVE,
    mercure::DIRECTIVE,
    ignored::VULCAIN,
    ignored::PUSH,
    intercept::DIRECTIVE,
    templates::DIRECTIVE,
    invoke::DIRECTIVE,
    handle::DIRECTIVE,
    handle_path::DIRECTIVE,
    route::DIRECTIVE,
    abort::DIRECTIVE,
    error::DIRECTIVE,
    copy_response::DIRECTIVE,
    respond::DIRECTIVE,
    metrics::DIRECTIVE,
    reverse_proxy::DIRECTIVE,
    php_fastcgi::DIRECTIVE,
    native::DIRECTIVE,
    php::DIRECTIVE,
    php_server::DIRECTIVE,
    file_server::DIRECTIVE,
    not_built("acme_server"),
    // These have no place in the order, as they make no handler.
    log::DIRECTIVE,
    bind::DIRECTIVE,
    handle_errors::DIRECTIVE,
    tls::DIRECTIVE,
];

pub(crate) fn find(name: &str) -> Option<&'static Directive> {
    TABLE.iter().find(|directive| directive.name == name)
}

/// Those that only `regent-caddy-json` writes.
pub(crate) fn find_of_json(name: &str) -> Option<&'static Directive> {
    Some(&json::DIRECTIVE).filter(|directive| directive.name == name)
}

/// Whether this is a `log_append` whose value is looked at when there is a response.
pub(crate) fn is_log_append_of_response(line: &Line) -> bool {
    log_append::is_of_response(line)
}

pub(crate) fn is_not_built(name: &str) -> bool {
    find(name).is_some_and(|directive| matches!(directive.parse, Parse::NotBuilt))
}

/// In the order in which they are carried out, those included that do nothing here.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|directive| directive.name)
}

/// Those that do something.
pub(crate) fn working() -> impl Iterator<Item = &'static str> {
    let works = |directive: &&Directive| matches!(directive.parse, Parse::Handler(_) | Parse::Routes(_));
    TABLE.iter().filter(works).map(|directive| directive.name)
}

/// A directive that may have a matcher and becomes one handler.
const fn handler(
    name: &'static str,
    parse: fn(&mut Context<'_>, &Scope<'_>, &Call<'_>) -> Result<Handler, Error>,
) -> Directive {
    Directive { name, sorts_as: name, matchers: Matchers::First, parse: Parse::Handler(parse) }
}

const fn not_built(name: &'static str) -> Directive {
    Directive { name, sorts_as: name, matchers: Matchers::None, parse: Parse::NotBuilt }
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of the directives share.

    use crate::{Config, Environment, Handler, Loaded, Route};
    use std::collections::BTreeMap;
    use std::path::Path;

    pub(crate) fn load(text: &str) -> Result<Loaded, crate::Errors> {
        load_with(text, &[])
    }

    /// The same, where these variables are set.
    pub(crate) fn load_with(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, crate::Errors> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let variables: BTreeMap<_, _> = variables.collect();
        let environment = Environment { variables, current_dir: "/srv".into() };
        crate::parse("Caddyfile", text, Path::new("/srv"), &environment)
    }

    pub(crate) fn config(text: &str) -> Config {
        load(text).unwrap_or_else(|errors| panic!("{errors}")).config
    }

    /// The routes of a site with these directives.
    pub(crate) fn routes(directives: &str) -> Vec<Route> {
        config(&format!(":80 {{\n{directives}\n}}")).servers.remove(0).sites.remove(0).routes
    }

    /// The one handler of a site with this directive.
    pub(crate) fn handler(directive: &str) -> Handler {
        let mut routes = routes(directive);
        assert_eq!(routes.len(), 1, "{routes:?}");
        routes.remove(0).handler
    }

    /// What is wrong with a site of these directives, without the places.
    pub(crate) fn errors(directives: &str) -> Vec<String> {
        file_errors(&format!(":80 {{\n{directives}\n}}"))
    }

    pub(crate) fn file_errors(text: &str) -> Vec<String> {
        let errors = load(text).err().map_or(Vec::new(), |errors| errors.0);
        errors.into_iter().map(|error| error.message).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
    }
}
