//! From the command line to a configuration.

use crate::arguments::{self, FileServer, PhpServer, Respond, ReverseProxy, Site};
use crate::autosave::{Autosave, Saved};
use crate::reply::{self, Quotes};
use crate::written::{self, Read};
use anyhow::{Context, Result, anyhow, bail};
use regent_config::{
    AccessLog, Compression, Config, Content, Environment, Hub, Imports, Listings, Loaded, LogDetail,
    Persistence, ProxyArguments, Reach, RespondArguments, SiteArguments, UpstreamCertificates, UpstreamHost,
    Warning, WorkerArgument,
};
use regent_server::{ConfigSource, Configuration, Language, Place};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What messages call a configuration that came as the body of a request.
const CADDYFILE_BODY: &str = "Caddyfile (body)";
/// The same, or what a change has made of the one before, with the lines that `GET /config/` has.
const JSON_BODY: &str = "JSON";

/// What is read when no file is named.
pub const DEFAULT_FILE: &str = "Caddyfile";

/// Where the configuration of a server comes from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A file, or the standard input; without a name the Caddyfile in the working directory.
    File(arguments::Config),
    /// What has come by the standard input.
    Input(Language, String),
    PhpServer(PhpServer),
    FileServer(FileServer),
    ReverseProxy(ReverseProxy),
    Respond(Respond),
}

impl Origin {
    /// Warnings go to the standard error at once.
    pub fn load(&self) -> Result<Config> {
        Ok(self.loaded()?.into_configuration(print_warning).config)
    }

    /// Without warnings, for who reads it often.
    pub fn read_quietly(&self) -> Result<Config, String> {
        self.loaded().map(|read| read.loaded.config).map_err(|error| text(&error))
    }

    /// What comes by the standard input comes once, and is kept. `current`: what the server goes on with, if another has
    /// read the input before.
    pub fn settled(self, current: Option<&Saved>) -> Result<Self> {
        let adapter = match &self {
            Self::File(config) if config.is_input() => config.language(),
            _ => return Ok(self),
        };
        match current {
            Some(Saved::Caddyfile(text)) => Ok(Self::Input(Language::Caddyfile, text.clone())),
            Some(Saved::Json(text)) => Ok(Self::Input(Language::Json, text.clone())),
            Some(Saved::File(path)) => Ok(Self::File(arguments::Config::of_file(path.clone(), None))),
            Some(Saved::FileIn(language, path)) => {
                Ok(Self::File(arguments::Config::of_file(path.clone(), Some(*language))))
            }
            None => {
                let text = written::of_input()?;
                let by_text = || written::language_of(Path::new(written::INPUT), &text);
                Ok(Self::Input(adapter.unwrap_or_else(by_text), text))
            }
        }
    }

    /// Of the file; `None` if it is none.
    fn directory(&self) -> Result<Option<PathBuf>> {
        let Self::File(config) = self else { return Ok(None) };
        let file = std::path::absolute(file_of(config)).context("finding the working directory")?;
        Ok(file.parent().map(Path::to_owned))
    }

    fn is_file(&self, path: &Path) -> bool {
        let Self::File(config) = self else { return false };
        std::path::absolute(file_of(config)).is_ok_and(|own| own == path)
    }

    fn loaded(&self) -> Result<Read> {
        match self {
            Self::File(config) => read(config),
            Self::Input(language, text) => parse(*language, text),
            Self::PhpServer(options) => php_server(options).map(Read::of),
            Self::FileServer(options) => file_server(options).map(Read::of),
            Self::ReverseProxy(options) => reverse_proxy(options).map(Read::of),
            Self::Respond(options) => respond(options).map(Read::of),
        }
        .and_then(Read::complete)
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
    pub fn load(&self) -> Result<Configuration> {
        let read = match self.current().clone() {
            None => self.origin.loaded(),
            Some(saved) => read_at(&saved.into_place()),
        };
        Ok(read?.into_configuration(print_warning))
    }

    /// One that came as a body: who sent it may not be one who may read the server's files. `texts`: those that its placeholders
    /// may name.
    fn parse(&self, language: Language, text: &str, texts: Imports) -> Result<Read> {
        let reach = Reach { imports: self.imports()?, texts };
        written::parse_within(body_name(language), text, language, reach, &environment()?)
    }

    fn imports(&self) -> Result<Imports> {
        Ok(self.origin.directory()?.map_or(Imports::Nowhere, Imports::Within))
    }

    fn current(&self) -> MutexGuard<'_, Option<Saved>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For a server that runs, and has a log.
impl ConfigSource for Configurations {
    fn read(&self, place: &Place) -> Result<Configuration, String> {
        let read = match place {
            Place::Own => self.origin.loaded().map_err(|error| text(&error)),
            Place::File(path, _) if self.origin.is_file(path) => read_at(place).map_err(|error| text(&error)),
            Place::File(..) => read_at(place).map_err(|error| reply::error(&error, Quotes::None)),
            Place::Text(language, text) => {
                let read = self.parse(*language, text, Imports::Anywhere).and_then(Read::complete);
                read.map_err(|error| reply::error(&error, Quotes::OfBody))
            }
        };
        Ok(read?.into_configuration(|warning| tracing::warn!("{warning}")))
    }

    fn adapt(&self, text_of_it: &str) -> Result<(serde_json::Value, Vec<String>), String> {
        // Files that are not there yet are warnings, as for `regent adapt`.
        // What the text says is answered, and no file is a part of it.
        let read = self.imports().and_then(|files| self.parse(Language::Caddyfile, text_of_it, files));
        let read = read.map_err(|error| reply::error(&error, Quotes::OfBody))?;
        let warnings = read.loaded.warnings.iter().map(reply::warning).collect();
        Ok((Arc::unwrap_or_clone(read.document), warnings))
    }

    fn loaded(&self, from: Place, config: &Config) {
        let saved = Saved::of_place(from);
        let is_kept = config.global.persistence == Persistence::On;
        if let Some(autosave) = &self.autosave {
            autosave.replace(saved.as_ref().filter(|_| is_kept));
        }
        *self.current() = saved;
    }

    fn current(&self) -> Option<String> {
        if let Some(saved) = &*self.current() {
            return Some(saved.to_text());
        }
        match &self.origin {
            // Nobody else can read it any more.
            Origin::Input(language, text) => {
                Saved::of_place(Place::Text(*language, text.clone())).map(|saved| saved.to_text())
            }
            _ => None,
        }
    }
}

/// Another one than that of the command line.
fn read_at(place: &Place) -> Result<Read> {
    match place {
        Place::Own => bail!("the configuration of the command line is meant, which is not known here"),
        Place::File(path, language) => written::read(path, *language, &environment()?),
        Place::Text(language, text) => parse(*language, text),
    }
    .and_then(Read::complete)
}

/// One that is a text. Relative paths in it start from the working directory.
fn parse(language: Language, text: &str) -> Result<Read> {
    written::parse(body_name(language), text, language, &environment()?)
}

fn body_name(language: Language) -> &'static str {
    match language {
        Language::Caddyfile => CADDYFILE_BODY,
        Language::Json => JSON_BODY,
    }
}

pub fn text(error: &anyhow::Error) -> String {
    format!("{error:#}").trim_start().to_owned()
}

/// Reads a configuration. Warnings go to the standard error at once.
pub fn load(config: &arguments::Config) -> Result<Configuration> {
    Ok(read(config)?.into_configuration(print_warning))
}

/// The same for who wants to know whether it means what it means to Caddy.
pub fn compare(config: &arguments::Config) -> Result<Config> {
    let read = read(config)?;
    for difference in &read.loaded.differences {
        eprintln!("{difference}");
    }
    Ok(read.into_configuration(print_warning).config)
}

fn file_of(config: &arguments::Config) -> &Path {
    config.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE))
}

fn read(config: &arguments::Config) -> Result<Read> {
    let path = file_of(config);
    if !config.is_input() && !path.exists() {
        bail!(
            "there is no {}; name a configuration with --config FILE, or serve a directory with `regent php-server`",
            path.display()
        );
    }
    written::read(path, config.language(), &environment()?)
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

fn print_warning(warning: &Warning) {
    eprintln!("{warning}");
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
