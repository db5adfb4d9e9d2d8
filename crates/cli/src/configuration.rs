//! From the command line to a configuration.

use crate::arguments::{FileServer, PhpServer, Respond, ReverseProxy, Site};
use crate::autosave::{Autosave, Saved};
use anyhow::{Context, Result, anyhow, bail};
use regent_config::{
    AccessLog, Compression, Config, Content, Environment, Hub, Listings, Loaded, LogDetail, Persistence,
    ProxyArguments, RespondArguments, SiteArguments, UpstreamCertificates, UpstreamHost, WorkerArgument,
};
use regent_server::{ConfigSource, Place};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What messages call a Caddyfile that came as the body of a request.
const BODY: &str = "Caddyfile (body)";

/// What is read when no file is named.
pub const DEFAULT_FILE: &str = "Caddyfile";

/// Where the configuration of a server comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A Caddyfile; `None`: the one in the working directory.
    File(Option<PathBuf>),
    PhpServer(PhpServer),
    FileServer(FileServer),
    ReverseProxy(ReverseProxy),
    Respond(Respond),
}

impl Origin {
    /// Warnings go to the standard error at once.
    pub fn load(&self) -> Result<Config> {
        self.loaded().map(with_warnings)
    }

    /// Without warnings, for who reads it often.
    pub fn read_quietly(&self) -> Result<Config, String> {
        self.loaded().map(|loaded| loaded.config).map_err(|error| text(&error))
    }

    fn loaded(&self) -> Result<Loaded> {
        match self {
            Self::File(file) => read(file.as_deref()),
            Self::PhpServer(options) => php_server(options),
            Self::FileServer(options) => file_server(options),
            Self::ReverseProxy(options) => reverse_proxy(options),
            Self::Respond(options) => respond(options),
        }
        .and_then(complete)
    }
}

/// Reads what a running server loads, and knows what it has loaded last.
pub struct Configurations {
    origin: Origin,
    /// What was loaded by the admin API since.
    current: Mutex<Option<Saved>>,
    autosave: Option<Autosave>,
}

impl Configurations {
    /// `current`: what the server is started with, if that is not what the command line says.
    pub fn new(origin: Origin, current: Option<Saved>) -> Self {
        Self { origin, current: Mutex::new(current), autosave: Autosave::of_user() }
    }

    /// What the server is started with. Warnings go to the standard error at once: the log is not set up yet.
    pub fn load(&self) -> Result<Config> {
        let loaded = match &*self.current() {
            None => self.origin.loaded(),
            Some(Saved::File(path)) => read(Some(path)).and_then(complete),
            Some(Saved::Caddyfile(text)) => parse(text),
        };
        loaded.map(with_warnings)
    }

    fn current(&self) -> MutexGuard<'_, Option<Saved>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For a server that runs, and has a log.
impl ConfigSource for Configurations {
    fn read(&self) -> Result<Config, String> {
        self.origin.loaded().map(with_logged_warnings).map_err(|error| text(&error))
    }

    fn read_file(&self, path: &Path) -> Result<Config, String> {
        read(Some(path)).and_then(complete).map(with_logged_warnings).map_err(|error| text(&error))
    }

    fn parse(&self, text_of_it: &str) -> Result<Config, String> {
        parse(text_of_it).map(with_logged_warnings).map_err(|error| text(&error))
    }

    fn adapt(&self, text_of_it: &str) -> Result<(serde_json::Value, Vec<String>), String> {
        // Files that are not there yet are warnings, as for `regent adapt`.
        let adapted = parse_incomplete(text_of_it).and_then(|loaded| {
            let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
            Ok((serde_json::to_value(&loaded.config)?, warnings))
        });
        adapted.map_err(|error| text(&error))
    }

    fn loaded(&self, from: Place, config: &Config) {
        let saved = match from {
            Place::Own => None,
            Place::File(path) => Some(Saved::File(path)),
            Place::Text(text) => Some(Saved::Caddyfile(text)),
        };
        let is_kept = config.global.persistence == Persistence::On;
        if let Some(autosave) = &self.autosave {
            autosave.replace(saved.as_ref().filter(|_| is_kept));
        }
        *self.current() = saved;
    }

    fn current(&self) -> Option<String> {
        self.current().as_ref().map(Saved::to_text)
    }
}

/// A Caddyfile that is the body of a request.
fn parse(text: &str) -> Result<Loaded> {
    parse_incomplete(text).and_then(complete)
}

fn parse_incomplete(text: &str) -> Result<Loaded> {
    let environment = environment()?;
    let base = environment.current_dir.clone();
    regent_config::parse(BODY, text, &base, &environment).map_err(|errors| anyhow!("\n{errors}"))
}

/// With all files that a server cannot start without.
fn complete(loaded: Loaded) -> Result<Loaded> {
    loaded.complete().map_err(|errors| anyhow!("\n{errors}"))
}

fn text(error: &anyhow::Error) -> String {
    format!("{error:#}").trim_start().to_owned()
}

fn with_logged_warnings(loaded: Loaded) -> Config {
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    loaded.config
}

/// Reads a Caddyfile. Warnings go to the standard error at once.
pub fn load(file: Option<&Path>) -> Result<Config> {
    read(file).map(with_warnings)
}

/// The same for who wants to know whether it means what it means to Caddy.
pub fn compare(file: Option<&Path>) -> Result<Config> {
    let loaded = read(file)?;
    for difference in &loaded.differences {
        eprintln!("{difference}");
    }
    Ok(with_warnings(loaded))
}

fn read(file: Option<&Path>) -> Result<Loaded> {
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    if !path.exists() {
        bail!(
            "there is no {}; name a configuration with --config FILE, or serve a directory with `regent php-server`",
            path.display()
        );
    }
    regent_config::load(path, &environment()?).map_err(|errors| anyhow!("\n{errors}"))
}

/// The configuration of `regent php-server`.
fn php_server(options: &PhpServer) -> Result<Loaded> {
    let root = options.root.clone().unwrap_or_else(default_root);
    let workers = options.workers.iter().map(|text| worker(text)).collect::<Result<Vec<_>>>()?;
    let hub = if options.mercure { Hub::On } else { Hub::Off };
    site(root, &options.site, Content::Php { workers, watch: options.watch.clone(), hub })
}

/// The configuration of `regent file-server`.
fn file_server(options: &FileServer) -> Result<Loaded> {
    let root = options.root.clone().unwrap_or_else(|| PathBuf::from("."));
    let listings = if options.browse { Listings::On } else { Listings::Off };
    site(root, &options.site, Content::Files { precompressed: options.precompressed.clone(), listings })
}

fn reverse_proxy(options: &ReverseProxy) -> Result<Loaded> {
    let asked = |asked: bool, option| asked.then_some(option);
    let arguments = ProxyArguments {
        from: options.from.clone(),
        to: options.to.clone(),
        host: if options.change_host_header { UpstreamHost::Changed } else { UpstreamHost::Kept },
        certificates: match options.insecure {
            true => UpstreamCertificates::Ignored,
            false => UpstreamCertificates::Checked,
        },
        fields_up: options.header_up.clone(),
        fields_down: options.header_down.clone(),
        options: [
            asked(options.internal_certs, "local_certs"),
            asked(options.disable_redirects, "auto_https disable_redirects"),
        ]
        .into_iter()
        .flatten()
        .collect(),
        access_log: if options.access_log { AccessLog::On } else { AccessLog::Off },
        log_level: if options.debug { LogDetail::Debug } else { LogDetail::Usual },
    };
    regent_config::proxy_config(&arguments, &environment()?).map_err(|errors| anyhow!("{errors}"))
}

/// A lone argument is the status if it looks like one, as in Caddy.
fn respond(options: &Respond) -> Result<Loaded> {
    let number = options.answer.as_deref().filter(|answer| answer.len() == 3);
    let number = number.and_then(|answer| answer.parse::<u16>().ok()).filter(|code| *code >= 100);
    let text = options.answer.clone().filter(|_| number.is_none());
    if (number.is_some() && options.status.is_some()) || (text.is_some() && options.body.is_some()) {
        bail!("the argument says the same as --status or --body; write one of them");
    }
    let arguments = RespondArguments {
        status: options.status.or(number).unwrap_or(200),
        body: options.body.clone().or(text).unwrap_or_default(),
        fields: options.fields.clone(),
        listen: options.listen.clone(),
        access_log: if options.access_log { AccessLog::On } else { AccessLog::Off },
        log_level: if options.debug { LogDetail::Debug } else { LogDetail::Usual },
    };
    regent_config::respond_config(&arguments, &environment()?).map_err(|errors| anyhow!("{errors}"))
}

/// Where certificates are kept if no configuration says so.
pub fn default_storage() -> Result<PathBuf> {
    Ok(default_config()?.global.tls.storage)
}

/// What holds if no configuration says otherwise.
pub fn default_config() -> Result<Config> {
    let loaded = regent_config::parse("no configuration", "", Path::new(""), &environment()?);
    Ok(loaded.map_err(|errors| anyhow!("{errors}"))?.config)
}

fn site(root: PathBuf, options: &Site, content: Content) -> Result<Loaded> {
    if !root.is_dir() {
        bail!("{} is no directory; name the one to serve with --root DIRECTORY", root.display());
    }
    let arguments = SiteArguments {
        root,
        domain: options.domain.clone(),
        listen: options.listen.clone(),
        content,
        compression: if options.no_compress { Compression::Off } else { Compression::On },
        access_log: if options.access_log { AccessLog::On } else { AccessLog::Off },
        log_level: if options.debug { LogDetail::Debug } else { LogDetail::Usual },
    };
    regent_config::site_config(&arguments, &environment()?).map_err(|errors| anyhow!("{errors}"))
}

/// As FrankenPHP: `public` if there is one.
fn default_root() -> PathBuf {
    let public = PathBuf::from("public");
    if public.is_dir() { public } else { PathBuf::from(".") }
}

/// `FILE` or `FILE,N`.
fn worker(text: &str) -> Result<WorkerArgument> {
    let Some((file, number)) = text.rsplit_once(',') else {
        return Ok(WorkerArgument { file: text.into(), num: None });
    };
    let num = number.parse().ok().filter(|num| *num > 0).with_context(|| {
        format!("--worker {text}: `{number}` is no number of threads; write FILE,N with N from 1")
    })?;
    Ok(WorkerArgument { file: file.into(), num: Some(num) })
}

fn environment() -> Result<Environment> {
    Environment::of_process().context("finding the working directory")
}

fn with_warnings(loaded: Loaded) -> Config {
    for warning in &loaded.warnings {
        eprintln!("{warning}");
    }
    loaded.config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_a_file_and_perhaps_a_number() {
        let argument = |file: &str, num| WorkerArgument { file: file.into(), num };
        assert_eq!(worker("a.php").unwrap(), argument("a.php", None));
        assert_eq!(worker("a.php,4").unwrap(), argument("a.php", Some(4)));
        for text in ["a.php,0", "a.php,x", "a.php,", "a.php,-1", "a.php,70000"] {
            assert!(worker(text).unwrap_err().to_string().contains("is no number of threads"), "{text}");
        }
    }
}
