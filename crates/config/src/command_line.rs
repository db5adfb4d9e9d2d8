//! The configurations of `regent php-server` and `regent file-server`, which have no file.
//!
//! They mean what they mean to FrankenPHP (caddy/php-server.go) and Caddy (modules/caddyhttp/fileserver/command.go), but
//! for one thing: Caddy opens the HTTP port for redirects whatever the port of HTTPS is. Here that is only so for the
//! usual port, since another port is mostly chosen for want of the right to open these two.

mod one_directive;

pub use one_directive::{
    ProxyArguments, RespondArguments, UpstreamCertificates, UpstreamHost, proxy_config, respond_config,
};

use crate::address::Address;
use crate::environment::Environment;
use crate::global;
use crate::load::{Loaded, parse};
use crate::model::Listen;
use crate::unix_socket;
use regent_caddyfile::{Error, Errors};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// One site, as arguments describe it. Relative paths start from the working directory.
#[derive(Debug, Clone)]
pub struct SiteArguments {
    pub root: PathBuf,
    /// The only host that is served, with HTTPS; `None`: every host, with plain HTTP.
    pub domain: Option<String>,
    /// `:PORT`, `localhost:PORT`, `IP:PORT`, `unix/PATH` or `unix/PATH|MODE`; `None`: port 443 with a domain, and 80
    /// without.
    pub listen: Option<String>,
    pub content: Content,
    pub compression: Compression,
    pub access_log: AccessLog,
    pub log_level: LogDetail,
}

/// What the files of the root are.
#[derive(Debug, Clone)]
pub enum Content {
    Php {
        workers: Vec<WorkerArgument>,
        /// Directories, files and patterns whose change starts the workers anew.
        watch: Vec<String>,
        hub: Hub,
    },
    /// Nothing but files.
    Files {
        /// Encodings (`br`, `zstd`, `gzip`) of files that lie beside the others, as `style.css.gz`.
        precompressed: Vec<String>,
        listings: Listings,
    },
}

/// Whether a directory without an index has a page that lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listings {
    On,
    Off,
}

/// Whether there is a Mercure hub. Its keys are in the environment, as FrankenPHP has them (caddy/mercure.go).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hub {
    On,
    Off,
}

/// A worker as the command line has it: `FILE[,N]`.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerArgument {
    pub file: PathBuf,
    /// Threads; `None`: 2 per core.
    pub num: Option<u16>,
}

/// Whether responses are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As `encode zstd br gzip` does.
    On,
    Off,
}

/// Whether requests are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLog {
    On,
    Off,
}

/// How much the server's own log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogDetail {
    Usual,
    /// As with the global option `debug`.
    Debug,
}

/// The configuration of one site, without an admin API, as in FrankenPHP.
pub fn site_config(site: &SiteArguments, environment: &Environment) -> Result<Loaded, Errors> {
    let place = place(site, environment).map_err(Error::without_span)?;
    let text = caddyfile(site, &place, environment)?;
    let mut loaded = parse("command line", &text, Path::new(""), environment).map_err(without_spans)?;
    if let Place::AnyHost(listen) = place {
        for server in &mut loaded.config.servers {
            server.listen = listen.clone();
        }
    }
    Ok(loaded)
}

/// Where the site is.
enum Place {
    AnyHost(Listen),
    Domain { address: Address, bind: Option<String>, redirects: Redirects },
}

#[derive(PartialEq, Eq)]
enum Redirects {
    On,
    Off,
}

fn place(site: &SiteArguments, environment: &Environment) -> Result<Place, String> {
    let listen = site.listen.as_deref().map(|text| Ok::<_, String>((text, listen(text, environment)?)));
    let listen = listen.transpose()?;
    let Some(domain) = &site.domain else {
        let usual = || format!("[::]:{HTTP_PORT}").parse().map(Listen::Tcp);
        let listen = listen.map(|(_, listen)| listen);
        return Ok(Place::AnyHost(
            listen.unwrap_or_else(|| usual().expect("invariant: it is a socket address")),
        ));
    };
    let mut address = domain_address(domain)?;
    let (bind, redirects) = match listen {
        None => (None, Redirects::On),
        Some((_, Listen::Tcp(socket))) => {
            address.port = Some(socket.port());
            let redirects = if socket.port() == HTTPS_PORT { Redirects::On } else { Redirects::Off };
            let is_named = socket != ([0; 16], socket.port()).into();
            (is_named.then(|| socket.ip().to_string()), redirects)
        }
        Some((text, Listen::Unix(_) | Listen::Descriptor(_))) => (Some(text.to_owned()), Redirects::Off),
    };
    Ok(Place::Domain { address, bind, redirects })
}

fn domain_address(domain: &str) -> Result<Address, String> {
    match Address::parse(domain) {
        Ok(address @ Address { scheme: None, host: Some(_), port: None, path: None }) => Ok(address),
        _ => Err(format!(
            "`{domain}` is no domain; write one such as `localhost` or `example.com`, and a port as `--listen :8443`"
        )),
    }
}

fn listen(text: &str, environment: &Environment) -> Result<Listen, String> {
    if let Some(socket) = text.strip_prefix(unix_socket::PREFIX) {
        return unix_socket::parse(socket, environment).map(Listen::Unix);
    }
    global::listen(text).map(Listen::Tcp).ok_or_else(|| {
        format!(
            "`{text}` is no address to listen on; write `:8080`, `127.0.0.1:8080` or `unix//run/php.sock`"
        )
    })
}

fn caddyfile(site: &SiteArguments, place: &Place, environment: &Environment) -> Result<String, Error> {
    let mut text = Text::default();
    text.open("{");
    text.line("admin off");
    if site.log_level == LogDetail::Debug {
        text.line("debug");
    }
    if matches!(site.content, Content::Files { .. }) {
        // An engine for PHP is always there; this one is never asked.
        text.line("frankenphp {");
        text.line("\tnum_threads 1");
        text.line("}");
    }
    if matches!(place, Place::Domain { redirects: Redirects::Off, .. }) {
        text.line("auto_https disable_redirects");
    }
    text.close();
    match place {
        Place::AnyHost(_) => text.open(&format!(":{HTTP_PORT} {{")),
        Place::Domain { address, .. } => text.open(&format!("{address} {{")),
    }
    if let Place::Domain { bind: Some(bind), .. } = place {
        text.line(&format!("bind {}", quoted(Path::new(bind))?));
    }
    if site.access_log == AccessLog::On {
        text.line("log");
    }
    if site.compression == Compression::On {
        text.line("encode zstd br gzip");
    }
    write_content(&mut text, site, environment)?;
    text.close();
    Ok(text.written)
}

fn write_content(text: &mut Text, site: &SiteArguments, environment: &Environment) -> Result<(), Error> {
    let root = format!("root {}", quoted(&environment.absolute(&site.root))?);
    match &site.content {
        Content::Php { workers, watch, hub } => {
            if *hub == Hub::On {
                write_hub(text, environment)?;
            }
            let watch = watch.iter().map(|pattern| watched(pattern)).collect::<Result<String, _>>()?;
            text.open("php_server {");
            text.line(&root);
            for worker in workers {
                let num = worker.num.map_or(String::new(), |num| format!(" {num}"));
                text.open(&format!("worker {}{num} {{", quoted(&environment.absolute(&worker.file))?));
                if !watch.is_empty() {
                    text.line(&format!("watch{watch}"));
                }
                text.close();
            }
        }
        Content::Files { precompressed, listings } => {
            text.open("file_server {");
            text.line(&root);
            if *listings == Listings::On {
                text.line("browse");
            }
            if !precompressed.is_empty() {
                let words = precompressed.iter().map(|word| quoted(Path::new(word)));
                text.line(&format!("precompressed {}", words.collect::<Result<Vec<_>, _>>()?.join(" ")));
            }
        }
    }
    text.close();
    Ok(())
}

/// The values stay in the environment: they are secrets, and any text.
fn write_hub(text: &mut Text, environment: &Environment) -> Result<(), Error> {
    text.open("mercure {");
    for role in ["publisher", "subscriber"] {
        let prefix = format!("MERCURE_{}_JWT", role.to_ascii_uppercase());
        if environment.variable(&format!("{prefix}_KEY")).is_none_or(|key| key.is_empty()) {
            let message =
                format!("--mercure: the environment variable {prefix}_KEY must be set to a key of tokens");
            return Err(Error::without_span(message));
        }
        let has_algorithm =
            environment.variable(&format!("{prefix}_ALG")).is_some_and(|name| !name.is_empty());
        let algorithm = if has_algorithm { format!(" {{env.{prefix}_ALG}}") } else { String::new() };
        text.line(&format!("{role}_jwt {{env.{prefix}_KEY}}{algorithm}"));
    }
    text.close();
    Ok(())
}

/// One more word of `watch`: a pattern may have braces, which a path may not.
fn watched(pattern: &str) -> Result<String, Error> {
    if pattern.is_empty() || pattern.contains(['"', '\\', '\n']) {
        return Err(Error::without_span(format!("--watch: `{pattern}` cannot stand in a configuration")));
    }
    Ok(format!(" \"{pattern}\""))
}

/// A Caddyfile that is being written.
#[derive(Default)]
struct Text {
    written: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, words: &str) {
        let indent = "\t".repeat(self.depth);
        writeln!(self.written, "{indent}{words}").expect("invariant: a text can be written to");
    }

    fn open(&mut self, words: &str) {
        self.line(words);
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }
}

/// A path as one word of a Caddyfile that means itself: in quotes, and without anything that could be a placeholder.
fn quoted(path: &Path) -> Result<String, Error> {
    let text = path.to_str().filter(|text| !text.contains(['{', '}', '\\', '"'])).ok_or_else(|| {
        let message =
            format!("the path {} has characters that cannot stand in a configuration", path.display());
        Error::without_span(message)
    })?;
    Ok(format!("\"{text}\""))
}

/// Whoever gave the arguments has not seen the text that was made of them.
fn without_spans(errors: Errors) -> Errors {
    Errors(errors.0.into_iter().map(|error| Error::without_span(error.message)).collect())
}

#[cfg(test)]
mod tests;
