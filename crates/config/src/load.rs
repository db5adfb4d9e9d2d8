//! From a file or a text to a [`Config`].

use crate::context::{Context, Notation};
use crate::differences;
use crate::environment::Environment;
use crate::global;
use crate::json;
use crate::mapped;
use crate::model::{Config, Template};
use crate::named_routes::NamedRoutes;
use crate::native;
use crate::passed_over::passed_over;
use crate::problems::Warning;
use crate::sites;
use crate::telemetry;
use crate::thread_counts::finish_threads;
use regent_caddyfile::{Error, Errors, File, Imports, Source};
use std::path::Path;
use std::sync::Arc;

/// A configuration without mistakes.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<Warning>,
    /// What works otherwise than in Caddy.
    pub differences: Vec<Warning>,
    /// Files that have to be there when the server starts, and are not; each has a warning too.
    missing: Vec<Error>,
}

impl Loaded {
    /// To be asked before a server starts with it.
    ///
    /// # Errors
    /// If a file is not there that it could not do without.
    pub fn complete(self) -> Result<Self, Errors> {
        if self.missing.is_empty() { Ok(self) } else { Err(Errors(self.missing)) }
    }
}

/// Reads a file: Caddy's JSON if its name ends in `.json`, and a Caddyfile otherwise. Fails with every mistake in it, or
/// because it cannot be read.
pub fn load(path: &Path, environment: &Environment) -> Result<Loaded, Errors> {
    let source = Source::read(path)
        .map_err(|error| Error::without_span(format!("cannot read {}: {error}", path.display())))?;
    match path.extension().is_some_and(|ending| ending == "json") {
        true => parse_json_source(source, environment),
        false => parse_source(source, environment),
    }
}

/// Reads a text; relative imports in it start from `base_dir`, and `source_name` is what messages call it.
pub fn parse(
    source_name: &str,
    text: &str,
    base_dir: &Path,
    environment: &Environment,
) -> Result<Loaded, Errors> {
    parse_within(source_name, text, base_dir, Reach::default(), environment)
}

/// Which files may be read for a text that is not the operator's.
#[derive(Debug, Clone)]
pub struct Reach {
    pub imports: Imports,
    /// Of placeholders `{file./PATH}` whose values have to be known when it is loaded.
    pub texts: Imports,
}

impl Default for Reach {
    fn default() -> Self {
        Self { imports: Imports::Anywhere, texts: Imports::Anywhere }
    }
}

/// The same for a text of somebody who may not read all that the server may.
pub fn parse_within(
    source_name: &str,
    text: &str,
    base_dir: &Path,
    reach: Reach,
    environment: &Environment,
) -> Result<Loaded, Errors> {
    let Reach { imports, texts } = reach;
    let source = Source::from_text(source_name, text, base_dir).with_imports(imports);
    parse_source_within(source, texts, environment)
}

/// Reads a text that is Caddy's JSON configuration; the rest is as with [`parse`].
pub fn parse_json(
    source_name: &str,
    text: &str,
    base_dir: &Path,
    environment: &Environment,
) -> Result<Loaded, Errors> {
    parse_json_source(Source::from_text(source_name, text, base_dir), environment)
}

fn parse_source(source: Source, environment: &Environment) -> Result<Loaded, Errors> {
    parse_source_within(source, Imports::Anywhere, environment)
}

fn parse_source_within(source: Source, texts: Imports, environment: &Environment) -> Result<Loaded, Errors> {
    let parsed = regent_caddyfile::parse(source, &|name| environment.variable(name))?;
    let mut cx = Context::new(environment, Notation::Caddyfile, hidden(&parsed.sources));
    cx.files = texts;
    cx.errors = parsed.errors;
    finish(cx, parsed.file, &parsed.sources)
}

fn parse_json_source(source: Source, environment: &Environment) -> Result<Loaded, Errors> {
    let mut parsed = regent_caddy_json::read(source)?;
    let sources = [Arc::clone(&parsed.source)];
    let file = std::mem::take(&mut parsed.file);
    let mut cx = Context::new(environment, Notation::Json, hidden(&sources));
    cx.errors = std::mem::take(&mut parsed.errors);
    let warnings = std::mem::take(&mut parsed.warnings).into_iter();
    cx.warnings
        .extend(warnings.map(|warning| Warning { message: warning.message, span: Some(warning.span) }));
    json::warn_of_shorthands(&mut cx, &file);
    json::with_places(&parsed, finish(cx, file, &sources))
}

fn hidden(sources: &[Arc<Source>]) -> Vec<Template> {
    sources.iter().filter_map(|source| source.file()).map(glob_of).collect()
}

/// What the lines of a file mean, whatever it was written in.
fn finish(mut cx: Context<'_>, mut file: File, sources: &[Arc<Source>]) -> Result<Loaded, Errors> {
    mapped::name_destinations(&mut file);
    let mut options = global::parse(&mut cx, &file.global);
    if options.global.php.user.is_none() {
        let usual = global::user::of_environment(&cx);
        options.global.php.user = cx.check(usual).flatten();
    }
    cx.named_routes = NamedRoutes::new(&file.named_routes);
    let servers = sites::parse(&mut cx, &options, &file);
    let heads = servers.iter().map(|server| server.options.limits.max_header_size);
    options.global.max_header_size = heads.max().unwrap_or(options.global.max_header_size);
    if let Some(token) =
        cx.trusting.take().filter(|_| servers.iter().all(|server| server.options.trusted_proxies.is_none()))
    {
        cx.warn(&token, "`trust_client_address` has no effect: no proxy is trusted; name them in `servers { trusted_proxies static … }`");
    }
    if let Some(token) = cx.tracing.take() {
        options.global.traces = telemetry::traces(&mut cx, &token);
    }
    if let Some(token) = cx.metrics_otlp.take() {
        options.global.metrics_export = telemetry::metrics(&mut cx, &token);
    }
    finish_threads(&mut cx, &mut options);
    global::confine::finish(&mut cx, &mut options, &servers);
    native::finish_names(&mut cx);
    cx.mark_private();
    if !cx.errors.is_empty() {
        cx.errors.append(&mut cx.missing);
        return Err(in_order(cx.errors, sources));
    }
    options.global.php.workers = cx.workers.into_vec();
    options.global.native = cx.native.into_global();
    options.global.hubs = cx.hubs;
    options.global.hot_reloads = cx.hot_reloads;
    if servers.is_empty() {
        cx.warnings
            .push(Warning { message: "no site is configured, so nothing will be served".into(), span: None });
    }
    let config = Config { global: options.global, servers, proxies: cx.proxies };
    let ignored = passed_over(&config, cx.environment).into_iter();
    cx.warnings.extend(ignored.map(|found| Warning {
        message: format!("{} is not read: {}", found.file.display(), found.advice),
        span: None,
    }));
    let differences = differences::of(&file).into_iter().chain(cx.differences).collect();
    Ok(Loaded { config, warnings: cx.warnings, differences, missing: cx.missing })
}

/// The errors as a reader goes through the files.
fn in_order(mut errors: Vec<Error>, sources: &[Arc<Source>]) -> Errors {
    errors.sort_by_cached_key(|error| {
        error.span.as_ref().map(|span| {
            let file = sources.iter().position(|source| source.name() == span.source_name());
            (file, span.line(), span.column())
        })
    });
    Errors(errors)
}

/// A pattern that fits only this path.
fn glob_of(path: &Path) -> Template {
    let escape = |c: char| if matches!(c, '*' | '?' | '[' | '\\') { vec!['\\', c] } else { vec![c] };
    Template::text(path.to_string_lossy().chars().flat_map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Handler;
    use std::collections::BTreeMap;

    fn environment(directory: &Path) -> Environment {
        Environment { variables: BTreeMap::new(), current_dir: directory.to_owned() }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let errors = load(Path::new("nowhere/Caddyfile"), &environment(Path::new("/"))).unwrap_err();
        assert!(errors.to_string().starts_with("cannot read nowhere/Caddyfile: "), "{errors}");
    }

    #[test]
    fn the_caddyfile_is_never_served() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Caddyfile");
        std::fs::write(&path, ":80 {\n\tfile_server\n}\n").unwrap();
        let loaded = load(&path, &environment(directory.path())).unwrap();
        let Handler::FileServer(files) = &loaded.config.servers[0].sites[0].routes[0].handler else {
            panic!()
        };
        assert_eq!(files.hide, [Template::text(path.canonicalize().unwrap().to_str().unwrap())]);
    }

    #[test]
    fn a_file_without_sites_is_a_warning() {
        let loaded = parse("Caddyfile", "", Path::new(""), &environment(Path::new("/"))).unwrap();
        assert_eq!(loaded.warnings[0].to_string(), "no site is configured, so nothing will be served");
    }
}
