//! From a file or a text to a [`Config`].

use crate::context::Context;
use crate::environment::Environment;
use crate::global::{self, finish_threads};
use crate::model::{Config, Listen, Template};
use crate::native;
use crate::problems::Warning;
use crate::sites;
use crate::unix_socket;
use regent_caddyfile::{Error, Errors, Source};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A configuration without mistakes.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<Warning>,
}

/// Reads a Caddyfile. Fails with every mistake in it, or because it cannot be read.
pub fn load(path: &Path, environment: &Environment) -> Result<Loaded, Errors> {
    let source = Source::read(path)
        .map_err(|error| Error::without_span(format!("cannot read {}: {error}", path.display())))?;
    parse_source(source, environment)
}

/// Reads a text; relative imports in it start from `base_dir`, and `source_name` is what messages call it.
pub fn parse(
    source_name: &str,
    text: &str,
    base_dir: &Path,
    environment: &Environment,
) -> Result<Loaded, Errors> {
    parse_source(Source::from_text(source_name, text, base_dir), environment)
}

/// A worker as the command line has it: `FILE[,N]`.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerArgument {
    pub file: PathBuf,
    /// Threads; `None`: 2 per core.
    pub num: Option<u16>,
}

/// Whether `regent php-server` compresses responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As `encode zstd br gzip` does.
    On,
    Off,
}

/// The configuration of `regent php-server`: one site for every host, served from `root`.
///
/// `listen` is `:PORT`, `localhost:PORT`, `IP:PORT`, `unix/PATH` or `unix/PATH|MODE`. Relative worker files
/// start from the working directory, as `root` does. There is no admin API, as in FrankenPHP.
pub fn php_server_config(
    root: &Path,
    listen: &str,
    workers: &[WorkerArgument],
    compression: Compression,
    environment: &Environment,
) -> Result<Loaded, Errors> {
    let listen = address_of(listen, environment).map_err(Error::without_span)?;
    let text = php_server_caddyfile(root, workers, compression, environment)?;
    let mut loaded = parse("command line", &text, Path::new(""), environment)?;
    for server in &mut loaded.config.servers {
        server.listen = listen.clone();
    }
    Ok(loaded)
}

/// The configuration as `regent adapt` prints it.
pub fn to_json(config: &Config) -> String {
    serde_json::to_string_pretty(config)
        .expect("invariant: the model has no maps, and its paths are written as text")
}

fn parse_source(source: Source, environment: &Environment) -> Result<Loaded, Errors> {
    let parsed = regent_caddyfile::parse(source, &|name| environment.variable(name))?;
    let hidden = parsed.sources.iter().filter_map(|source| source.file()).map(glob_of).collect();
    let mut cx = Context::new(environment, hidden);
    cx.errors = parsed.errors;
    let mut options = global::parse(&mut cx, &parsed.file.global);
    let servers = sites::parse(&mut cx, &options, &parsed.file.sites);
    finish_threads(&mut cx, &mut options);
    native::finish_names(&mut cx);
    if !cx.errors.is_empty() {
        return Err(in_order(cx.errors, &parsed.sources));
    }
    options.global.php.workers = cx.workers.into_vec();
    options.global.native = cx.native.into_global();
    if servers.is_empty() {
        cx.warnings
            .push(Warning { message: "no site is configured, so nothing will be served".into(), span: None });
    }
    Ok(Loaded { config: Config { global: options.global, servers }, warnings: cx.warnings })
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

fn address_of(text: &str, environment: &Environment) -> Result<Listen, String> {
    if let Some(socket) = text.strip_prefix(unix_socket::PREFIX) {
        return unix_socket::parse(socket, environment).map(Listen::Unix);
    }
    global::listen(text).map(Listen::Tcp).ok_or_else(|| {
        format!(
            "`{text}` is no address to listen on; write `:8080`, `127.0.0.1:8080` or `unix//run/php.sock`"
        )
    })
}

fn php_server_caddyfile(
    root: &Path,
    workers: &[WorkerArgument],
    compression: Compression,
    environment: &Environment,
) -> Result<String, Error> {
    let mut text = "{\n\tadmin off\n}\n:80 {\n".to_owned();
    if compression == Compression::On {
        text += "\tencode zstd br gzip\n";
    }
    text += "\tphp_server {\n";
    text += &format!("\t\troot {}\n", quoted(&environment.absolute(root))?);
    for worker in workers {
        let num = worker.num.map_or(String::new(), |num| format!(" {num}"));
        text += &format!("\t\tworker {}{num}\n", quoted(&environment.absolute(&worker.file))?);
    }
    Ok(text + "\t}\n}\n")
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

    #[test]
    fn command_line() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("my worker.php"), "").unwrap();
        let environment = environment(directory.path());
        let worker = WorkerArgument { file: "my worker.php".into(), num: Some(3) };
        let loaded = php_server_config(
            Path::new("public dir"),
            "127.0.0.1:8080",
            &[worker],
            Compression::On,
            &environment,
        )
        .unwrap();
        assert_eq!(loaded.config.servers[0].listen, Listen::Tcp("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(loaded.config.global.php.workers[0].num, Some(3));
        assert_eq!(loaded.config.global.admin, None);
        let [encode, server] = loaded.config.servers[0].sites[0].routes.as_slice() else { panic!() };
        assert!(matches!(&encode.handler, Handler::Encode(encode) if encode.formats.len() == 3));
        let Handler::PhpServer(server) = &server.handler else { panic!() };
        let root = directory.path().join("public dir");
        assert_eq!(server.php.root, Some(Template::text(root.to_str().unwrap())));
    }

    #[test]
    fn compression_can_be_off() {
        let environment = environment(Path::new("/srv"));
        let loaded = php_server_config(Path::new("."), ":80", &[], Compression::Off, &environment).unwrap();
        let [server] = loaded.config.servers[0].sites[0].routes.as_slice() else { panic!() };
        assert!(matches!(server.handler, Handler::PhpServer(_)));
    }

    #[test]
    fn command_line_mistakes() {
        let environment = environment(Path::new("/srv"));
        let error = |root: &str, listen: &str| {
            php_server_config(Path::new(root), listen, &[], Compression::On, &environment)
                .unwrap_err()
                .to_string()
        };
        assert!(error("/srv", "8080").contains("no address to listen on"));
        assert!(error("a{$HOME}", ":80").contains("cannot stand in a configuration"));
        let missing = [WorkerArgument { file: "none.php".into(), num: None }];
        let errors =
            php_server_config(Path::new("."), ":80", &missing, Compression::On, &environment).unwrap_err();
        assert!(errors.to_string().contains("the worker's file does not exist: /srv/none.php"), "{errors}");
    }
}
