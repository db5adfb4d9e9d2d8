//! `php_server`: an application's files and its front controller.
//!
//! In order: a worker with `match`; 308 to the path with `/` when `{path}/INDEX` exists; the first of `try_files` that
//! exists; scripts to PHP; everything else a static file. `GET /hello.php` costs one `stat` a second; a request that ends
//! at a front controller which is a worker's script costs one.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::found::FileKind;
use crate::directives::Context;
use crate::directives::file_server::FileServer;
use crate::directives::php::{Php, Script};
use crate::directives::redir;
use crate::error::BuildError;
use crate::files::file_stat;
use crate::paths::root;
use crate::paths::url_path;
use crate::templates::status;
use crate::templates::text::Text;
use http::StatusCode;
use regent_config::{self as config, Template, WorkerId};
use rustix::fs::Stat;

pub(crate) struct PhpServer {
    php: Php,
    candidates: Vec<Candidate>,
    /// `/index.php`, if directories that have one are redirected to their canonical path.
    directory_index: Option<Vec<u8>>,
    files: Option<FileServer>,
}

/// One of `try_files`, by what it takes to look it up.
enum Candidate {
    /// `{path}`
    OwnPath,
    /// `{path}/`: the path is a directory's, which is the file server's business.
    OwnDirectory,
    /// `{path}/index.php`: the text behind the path, with its slash.
    BelowPath(Vec<u8>),
    /// `index.php`: a cleaned path.
    Fixed(Vec<u8>),
    Computed(Text),
    Status(StatusCode),
}

/// A candidate that exists.
struct Found {
    /// The document root with the URL path, without a slash at its end.
    file: Vec<u8>,
    kind: FileKind,
    stat: Option<Stat>,
    /// Its name is a script's.
    is_script: bool,
    path_info: Vec<u8>,
    worker: Option<WorkerId>,
}

/// The request's own path on the disk, looked up at most once.
struct OwnPath<'a> {
    php: &'a Php,
    prefix: &'a [u8],
    path: &'a [u8],
    /// Where the script's name ends, if the path names one.
    split: Option<usize>,
    state: Option<State>,
}

struct State {
    file: Vec<u8>,
    kind: Option<FileKind>,
    /// `None`: it was not looked at, as a script or worker that is known.
    stat: Option<Stat>,
    worker: Option<WorkerId>,
}

impl PhpServer {
    pub(crate) fn compile(server: &config::PhpServer, context: &Context<'_>) -> Result<Self, BuildError> {
        let candidates: Vec<_> = server.try_files.iter().map(Candidate::compile).collect::<Result<_, _>>()?;
        let index = server.index.as_ref().map(|index| url_path::clean(index.as_bytes()));
        let is_tried = |index: &Vec<u8>| {
            candidates
                .iter()
                .any(|candidate| matches!(candidate, Candidate::BelowPath(below) if below == index))
        };
        let files = server.file_server.clone().map(|mut files| {
            files.root = files.root.or_else(|| server.php.root.clone());
            FileServer::beside_scripts(&files, server.php.resolve_root_symlink, context)
        });
        Ok(Self {
            php: Php::compile(&server.php, context.workers)?,
            directory_index: index.filter(is_tried),
            files: files.transpose()?,
            candidates,
        })
    }

    pub(crate) fn handle(&self, exchange: &Exchange) -> Flow {
        let Some(root) = self.php.root(exchange) else { return Flow::error(StatusCode::BAD_REQUEST) };
        let prefix = self.php.prefix(exchange, &root);
        let mut own = OwnPath::new(&self.php, &prefix, exchange.path());
        if let Some(worker) = self.php.matching_worker(exchange) {
            let asset = self.asset(exchange, &mut own);
            return asset.unwrap_or_else(|| self.php.run_worker(exchange, worker, own.prefix));
        }
        if let Some(path) = self.canonical_directory(exchange, &mut own) {
            return Flow::respond(redir::redirect_to_path(exchange, &path));
        }
        match self.select(exchange, &mut own) {
            Err(status) => Flow::error(status),
            Ok(Some(found)) => self.answer_found(exchange, found, own.prefix),
            Ok(None) => self.answer_rest(exchange, own),
        }
    }

    /// A static file that a worker's `match` covers as well. So that dynamic paths stay free of system calls, only a
    /// path with a file name extension is looked up.
    fn asset(&self, exchange: &Exchange, own: &mut OwnPath<'_>) -> Option<Flow> {
        let files = self.files.as_ref()?;
        if own.split.is_some() || !url_path::file_name(own.path).contains(&b'.') {
            return None;
        }
        let path = own.path;
        let state = own.look();
        let is_shown = state.kind == Some(FileKind::File) && !files.hides(exchange, path, &state.file);
        is_shown.then(|| files.serve_file(exchange, path, state.stat))
    }

    /// Where to send a client that asked for a directory with an index without the slash at its end.
    fn canonical_directory(&self, exchange: &Exchange, own: &mut OwnPath<'_>) -> Option<Vec<u8>> {
        let index = self.directory_index.as_ref()?;
        if own.path.ends_with(b"/") || own.split.is_some() || own.look().kind != Some(FileKind::Directory) {
            return None;
        }
        let original = exchange.original_path();
        let file = root::join(&own.look().file, index);
        let exists = !original.ends_with(b"/") && !matches!(self.php.find(&file), Script::Missing);
        exists.then(|| root::join(&original, b"/"))
    }

    fn select(&self, exchange: &Exchange, own: &mut OwnPath<'_>) -> Result<Option<Found>, StatusCode> {
        for candidate in &self.candidates {
            let found = match candidate {
                Candidate::Status(status) => return Err(*status),
                Candidate::OwnPath => own.found(FileKind::File),
                Candidate::OwnDirectory => own.found(FileKind::Directory),
                // `/x.php/rest/index.php` is the script `/x.php`: the first script in a path counts.
                Candidate::BelowPath(_) if own.split.is_some() => own.found(FileKind::File),
                Candidate::BelowPath(_) if own.look().kind != Some(FileKind::Directory) => None,
                Candidate::BelowPath(below) => self.look_up(own.prefix, &root::join(own.file_path(), below)),
                Candidate::Fixed(path) => self.look_up(own.prefix, path),
                Candidate::Computed(text) => {
                    self.look_up(own.prefix, &url_path::clean(&text.render(exchange)))
                }
            };
            // Without a file server there is nothing that could answer with a file.
            let found = found.filter(|found| self.files.is_some() || found.is_script);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// A cleaned path below the root.
    fn look_up(&self, prefix: &[u8], path: &[u8]) -> Option<Found> {
        let split = self.php.split().position(path);
        let (script, path_info) = path.split_at(split.unwrap_or(path.len()));
        let file = root::join(prefix, url_path::trim_end_slashes(script));
        let worker = match self.php.find(&file) {
            Script::Missing => return None,
            Script::File => None,
            Script::Worker(worker) => Some(worker),
        };
        let is_script = split.is_some();
        Some(Found {
            file,
            kind: FileKind::File,
            stat: None,
            is_script,
            path_info: path_info.to_vec(),
            worker,
        })
    }

    fn answer_found(&self, exchange: &Exchange, found: Found, prefix: &[u8]) -> Flow {
        match &self.files {
            _ if found.is_script => {
                self.php.run(exchange, found.worker, prefix, found.file, &found.path_info)
            }
            Some(files) if found.kind == FileKind::Directory => {
                files.serve(exchange, &root::join(&found.file[prefix.len()..], b"/"))
            }
            Some(files) => files.serve_file(exchange, &found.file[prefix.len()..], found.stat),
            None => Flow::Next,
        }
    }

    /// Nothing of `try_files` exists: a script's path is PHP's business still, and the rest the file server's.
    fn answer_rest(&self, exchange: &Exchange, mut own: OwnPath<'_>) -> Flow {
        match (&self.files, own.split) {
            (_, Some(_)) => match own.found(FileKind::File) {
                Some(found) => self.answer_found(exchange, found, own.prefix),
                None => Flow::error(StatusCode::NOT_FOUND),
            },
            (Some(files), None) => files.serve(exchange, own.path),
            (None, None) => Flow::Next,
        }
    }
}

impl Candidate {
    fn compile(template: &Template) -> Result<Self, BuildError> {
        if let Some(status) = template.as_text().and_then(|text| text.strip_prefix('=')) {
            return status::parse_status(status)
                .map(Self::Status)
                .ok_or_else(|| BuildError::Status(status.into()));
        }
        // PHP gets the query of the request as it is, so one that is written here has no use.
        let (text, _) = Text::compile(template).split_query();
        Ok(match (text.after_path(), text.literal()) {
            (Some(""), _) => Self::OwnPath,
            (Some("/"), _) => Self::OwnDirectory,
            (Some(below), _) if below.starts_with('/') => Self::BelowPath(url_path::clean(below.as_bytes())),
            (_, Some(path)) => Self::Fixed(url_path::clean(path.as_bytes())),
            _ => Self::Computed(text),
        })
    }
}

impl State {
    /// A script, whose file is PHP's to look at.
    fn script(file: Vec<u8>, worker: Option<WorkerId>) -> Self {
        Self { file, kind: Some(FileKind::File), stat: None, worker }
    }
}

impl<'a> OwnPath<'a> {
    fn new(php: &'a Php, prefix: &'a [u8], path: &'a [u8]) -> Self {
        let split = php.split().position(path);
        // The top directory is there.
        let state = (path == b"/").then(|| State {
            file: prefix.to_vec(),
            kind: Some(FileKind::Directory),
            stat: None,
            worker: None,
        });
        Self { php, prefix, path, split, state }
    }

    /// What there is at the path; of a script, at the script's part of it.
    fn look(&mut self) -> &State {
        let (php, prefix, path) = (self.php, self.prefix, self.file_path());
        let named_script = self.split.is_some();
        self.state.get_or_insert_with(|| {
            let file = root::join(prefix, path);
            match named_script.then(|| php.find(&file)) {
                Some(Script::Worker(worker)) => State::script(file, Some(worker)),
                Some(Script::File) => State::script(file, None),
                // A directory, or nothing.
                Some(Script::Missing) | None => {
                    let (stat, worker) = (file_stat::look(&file), php.worker_of(&file));
                    State { kind: stat.as_ref().and_then(file_stat::kind_of), file, stat, worker }
                }
            }
        })
    }

    /// What is at the path, if it is of this kind; to be asked for once, as it takes the state along.
    fn found(&mut self, kind: FileKind) -> Option<Found> {
        if self.look().kind != Some(kind) {
            return None;
        }
        let state = self.state.take()?;
        let is_script = kind == FileKind::File && self.split.is_some();
        let path_info = self.split.map_or(&[][..], |end| &self.path[end..]).to_vec();
        let State { file, stat, worker, .. } = state;
        Some(Found { file, kind, stat, is_script, path_info, worker })
    }

    fn file_path(&self) -> &'a [u8] {
        url_path::trim_end_slashes(&self.path[..self.split.unwrap_or(self.path.len())])
    }
}
