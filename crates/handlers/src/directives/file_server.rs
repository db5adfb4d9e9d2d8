//! Static files.

mod locate;

use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::filter;
use crate::context::flow::Flow;
use crate::context::found::FileKind;
use crate::context::page;
use crate::context::target::Action;
use crate::directives::Context;
use crate::directives::redir;
use crate::directives::templates;
use crate::error::BuildError;
use crate::files::conditional::{Outcome, Validators};
use crate::files::content_coding::{self, Coding};
use crate::files::content_type::ContentTypes;
use crate::files::etag_file;
use crate::files::file_cache::{self, CachedFile, FileCache};
use crate::files::file_stat;
use crate::files::hide::{Hide, Sources};
use crate::files::index_name::IndexName;
use crate::files::listing::DirectoryListing;
use crate::files::range::{self, ByteRange, Wanted};
use crate::paths::root::{self, Links, Root};
use crate::paths::url_path;
use crate::templates::root_source::RootSource;
use crate::templates::status::Status;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use regent_config as config;
use regent_exchange::{ResponseBody, Segment, read_at_once};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::Arc;

/// A compiled `file_server` directive.
pub(crate) struct FileServer {
    root: RootSource,
    links: Links,
    hide: Hide,
    index: Vec<IndexName>,
    browse: Option<Box<config::Browse>>,
    missing: Missing,
    canonical_uris: bool,
    status: Option<Status>,
    precompressed: Vec<Coding>,
    etag_endings: Vec<String>,
    content_types: ContentTypes,
    cache: Arc<FileCache>,
}

/// What to do where there is no file.
#[derive(Clone, Copy)]
enum Missing {
    NotFound,
    /// `pass_thru`
    Next,
}

/// How a path led to a file.
#[derive(Clone, Copy, PartialEq)]
enum Via {
    Name,
    /// The path is a directory's; the file is its index.
    Index,
}

/// A regular file, and what a look at it for this request has shown, if there was one.
struct Seen<'a> {
    file: &'a [u8],
    stat: Option<Stat>,
}

struct Opened {
    content: Content,
    size: u64,
    validators: Validators,
    coding: Option<Coding>,
}

/// Where the bytes of a file come from.
enum Content {
    Disk(OwnedFd),
    Memory(Bytes),
}

impl FileServer {
    pub(crate) fn compile(server: &config::FileServer, context: &Context<'_>) -> Result<Self, BuildError> {
        Self::with(server, context, Sources::Scripts(context.scripts.clone()))
    }

    /// The part of a `php_server`. What lies in its root was not put there file by file to be published.
    pub(crate) fn beside_scripts(
        server: &config::FileServer,
        resolve_root_symlink: bool,
        context: &Context<'_>,
    ) -> Result<Self, BuildError> {
        let links = Links::of_option(resolve_root_symlink);
        Ok(Self { links, ..Self::with(server, context, Sources::Copies(context.scripts.clone()))? })
    }

    fn with(
        server: &config::FileServer,
        context: &Context<'_>,
        sources: Sources,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            root: RootSource::compile(server.root.as_ref())?,
            links: Links::Followed,
            hide: Hide::compile(&server.hide, sources)?,
            index: server.index.iter().map(IndexName::compile).collect(),
            browse: server.browse.clone(),
            missing: if server.pass_thru { Missing::Next } else { Missing::NotFound },
            canonical_uris: server.canonical_uris,
            status: server
                .status
                .as_deref()
                .map(|status| Status::compile(status, StatusCode::OK))
                .transpose()?,
            precompressed: server
                .precompressed
                .iter()
                .map(|name| Coding::by_name(name))
                .collect::<Result<_, _>>()?,
            etag_endings: server.etag_endings.clone(),
            content_types: ContentTypes::new(),
            cache: Arc::clone(context.files),
        })
    }

    pub(crate) fn handle(&self, exchange: &Exchange) -> Flow {
        self.serve(exchange, exchange.path())
    }

    /// Answers with what is at a decoded and cleaned path below the root.
    pub(crate) fn serve(&self, exchange: &Exchange, path: &[u8]) -> Flow {
        let (root, file) = match self.locate(exchange, path) {
            Ok(found) => found,
            Err(flow) => return flow,
        };
        // Looked at before it is opened: opening a FIFO or a device has effects of its own.
        match rustix::fs::stat(file_stat::at(&file)) {
            Err(errno) => self.failed(errno),
            Ok(stat) => match file_stat::kind_of(&stat) {
                Some(FileKind::File) => {
                    self.send(exchange, path, &Seen { file: &file, stat: Some(stat) }, Via::Name)
                }
                Some(FileKind::Directory) => self.serve_directory(exchange, path, &file, &root),
                None => self.missing(),
            },
        }
    }

    /// As [`Self::serve`], for a path that was seen to be a regular file's; `stat`: what it was a moment ago, if known.
    pub(crate) fn serve_file(&self, exchange: &Exchange, path: &[u8], stat: Option<Stat>) -> Flow {
        match self.locate(exchange, path) {
            Ok((_, file)) => self.send(exchange, path, &Seen { file: &file, stat }, Via::Name),
            Err(flow) => flow,
        }
    }

    pub(crate) fn hides(&self, exchange: &Exchange, path: &[u8], file: &[u8]) -> bool {
        self.hide.hides(exchange, path, file)
    }

    fn serve_directory(&self, exchange: &Exchange, path: &[u8], directory: &[u8], root: &Root) -> Flow {
        for index in self.index.iter().map(|name| name.of(exchange)) {
            let file = root::join(directory, &index);
            let relative = root::join(url_path::trim_end_slashes(path), &index);
            if self.is_hidden(exchange, &relative, &file, root.prefix()) {
                continue;
            }
            let stat = file_stat::look(&file);
            if stat.as_ref().and_then(file_stat::kind_of) == Some(FileKind::File) {
                return self.send(exchange, path, &Seen { file: &file, stat }, Via::Index);
            }
        }
        match &self.browse {
            Some(browse) if exchange.failure().is_none() => {
                self.list(exchange, path, &self.links.prefix(root, exchange.code), browse)
            }
            _ => self.missing(),
        }
    }

    fn list(&self, exchange: &Exchange, path: &[u8], prefix: &[u8], browse: &config::Browse) -> Flow {
        if let Some(canonical) = self.canonical_path(exchange, path, Via::Index) {
            return Flow::respond(redir::redirect_to_path(exchange, &canonical));
        }
        match exchange.method {
            Method::GET | Method::HEAD => {
                let between = ("{{".to_owned(), "}}".to_owned());
                let rules = templates::rules(exchange, between, root::prefix_path(prefix).to_owned());
                let listing = DirectoryListing::new(browse, exchange, prefix, path, &self.hide, rules);
                Flow::Answer(Action::List(Box::new(listing)))
            }
            _ => self.refused_method(),
        }
    }

    fn refused_method(&self) -> Flow {
        match self.missing {
            Missing::Next => Flow::Next,
            Missing::NotFound => Flow::Fail(method_not_allowed()),
        }
    }

    fn send(&self, exchange: &Exchange, path: &[u8], seen: &Seen<'_>, via: Via) -> Flow {
        if let Some(canonical) = self.canonical_path(exchange, path, via) {
            return Flow::respond(redir::redirect_to_path(exchange, &canonical));
        }
        // The page of an error is an answer to any method.
        if exchange.failure().is_none() && !matches!(exchange.method, Method::GET | Method::HEAD) {
            return self.refused_method();
        }
        match self.open(exchange, seen) {
            Ok(opened) => Flow::respond(self.answer(exchange, seen.file, opened)),
            Err(errno) => self.failed(errno),
        }
    }

    /// Where the client should have asked: a directory with a slash at its end, a file without. Only if the last part
    /// of the path is still the one that the client sent; the rest may have been cut off by `handle_path`.
    fn canonical_path(&self, exchange: &Exchange, path: &[u8], via: Via) -> Option<Vec<u8>> {
        let original = exchange.original_path();
        let bare = url_path::trim_end_slashes(&original);
        if !self.canonical_uris
            || last_segment(bare) != last_segment(url_path::trim_end_slashes(path))
            || bare.is_empty()
        {
            return None;
        }
        match (via, bare.len() < original.len()) {
            (Via::Index, false) => Some([bare, b"/"].concat()),
            (Via::Name, true) => Some(bare.to_vec()),
            _ => None,
        }
    }

    /// The file, or the encoded copy of it that suits the client best.
    fn open(&self, exchange: &Exchange, seen: &Seen<'_>) -> Result<Opened, Errno> {
        if !self.precompressed.is_empty() {
            for coding in content_coding::accepted(&exchange.headers, &self.precompressed) {
                let sidecar = root::join(seen.file, coding.ending().as_bytes());
                let stat = file_stat::look(&sidecar);
                if stat.as_ref().and_then(file_stat::kind_of) == Some(FileKind::File) {
                    let seen = Seen { file: &sidecar, stat };
                    if let Ok(opened) = Opened::open(&seen, Some(coding), &self.cache) {
                        return Ok(self.with_own_etag(&sidecar, opened));
                    }
                }
            }
        }
        Ok(self.with_own_etag(seen.file, Opened::open(seen, None, &self.cache)?))
    }

    /// With the validator that a file beside this one holds.
    fn with_own_etag(&self, file: &[u8], mut opened: Opened) -> Opened {
        if let Some(etag) = etag_file::beside(file, &self.etag_endings) {
            opened.validators.etag = etag;
        }
        opened
    }

    fn answer(&self, exchange: &Exchange, file: &[u8], mut opened: Opened) -> Response<ResponseBody> {
        if let Some(etag) = filter::prepared(exchange, &header::ETAG) {
            opened.validators.etag = etag;
        }
        let mut fields = self.fields(&opened);
        let kind = self.content_types.of(file);
        let own = self.status.as_ref().map(|status| status.of(exchange));
        if let Some(status) = own.or(exchange.failure().map(|failure| failure.status)) {
            fields.remove(header::ACCEPT_RANGES);
            return opened.whole(exchange, status, fields, kind);
        }
        match opened.validators.evaluate(&exchange.method, &exchange.headers) {
            Outcome::NotModified => {
                fields.remove(header::ACCEPT_RANGES);
                fields.remove(header::CONTENT_ENCODING);
                return page::with_fields(StatusCode::NOT_MODIFIED, fields, ResponseBody::empty());
            }
            Outcome::Failed => return page::error(StatusCode::PRECONDITION_FAILED),
            Outcome::Proceed => {}
        }
        // RFC 9110 §14.2: a range means something to GET only.
        let ranged =
            exchange.original_method() == Method::GET && opened.validators.range_applies(&exchange.headers);
        let wanted = if ranged { range::wanted(&exchange.headers, opened.size) } else { Wanted::Whole };
        opened.part(exchange, wanted, fields, kind)
    }

    fn fields(&self, opened: &Opened) -> HeaderMap {
        // What a plain file has: these three, Content-Type, Content-Length, Server.
        let mut fields = HeaderMap::with_capacity(6);
        fields.insert(header::ETAG, opened.validators.etag.clone());
        if let Some(modified) = opened.validators.last_modified() {
            fields.insert(header::LAST_MODIFIED, modified);
        }
        fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(coding) = opened.coding {
            fields.insert(header::CONTENT_ENCODING, coding.value());
        }
        if !self.precompressed.is_empty() {
            // Also where the plain file is sent: another client gets another representation of the same URL.
            fields.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        fields
    }

    fn missing(&self) -> Flow {
        match self.missing {
            Missing::Next => Flow::Next,
            Missing::NotFound => Flow::error(StatusCode::NOT_FOUND),
        }
    }

    fn failed(&self, errno: Errno) -> Flow {
        match errno {
            Errno::ACCESS | Errno::PERM => Flow::error(StatusCode::FORBIDDEN),
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO => {
                tracing::error!(%errno, "cannot open a static file");
                Flow::error(StatusCode::INTERNAL_SERVER_ERROR)
            }
            _ => self.missing(),
        }
    }
}

impl Opened {
    fn open(seen: &Seen<'_>, coding: Option<Coding>, cache: &FileCache) -> Result<Self, Errno> {
        match cache.get(seen.file, || seen.stat.or_else(|| file_stat::look(seen.file))) {
            Some(known) => Ok(Self::known(known, coding)),
            None => Self::open_anew(seen.file, coding, cache),
        }
    }

    fn known(known: CachedFile, coding: Option<Coding>) -> Self {
        let CachedFile { content, validators } = known;
        Self { size: content.len() as u64, content: Content::Memory(content), validators, coding }
    }

    fn open_anew(file: &[u8], coding: Option<Coding>, cache: &FileCache) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = rustix::fs::open(file, flags, Mode::empty())?;
        // Once more, as it may have been replaced since it was looked at.
        let stat: Stat = rustix::fs::fstat(&fd)?;
        if file_stat::kind_of(&stat) != Some(FileKind::File) {
            return Err(Errno::NOENT);
        }
        let (size, validators) = (u64::try_from(stat.st_size).unwrap_or(0), Validators::of(&stat));
        let is_small = size <= file_cache::LARGEST;
        match is_small.then(|| read_at_once(&fd, size)).flatten() {
            Some(content) => {
                let known = CachedFile { content, validators };
                cache.put(file, &stat, known.clone());
                Ok(Self::known(known, coding))
            }
            None => Ok(Self { content: Content::Disk(fd), size, validators, coding }),
        }
    }

    fn part(
        self,
        exchange: &Exchange,
        wanted: Wanted,
        mut fields: HeaderMap,
        kind: HeaderValue,
    ) -> Response<ResponseBody> {
        match wanted {
            Wanted::Whole => self.whole(exchange, StatusCode::OK, fields, kind),
            Wanted::One(part) => {
                fields.insert(header::CONTENT_TYPE, kind);
                fields.insert(header::CONTENT_RANGE, part.content_range(self.size));
                let body = self.content.part(part);
                page::with_fields(StatusCode::PARTIAL_CONTENT, fields, body)
            }
            Wanted::Several(parts) => {
                let multipart = range::multipart(&parts, self.size, &kind);
                fields.insert(header::CONTENT_TYPE, multipart.content_type);
                let body = self.content.parts(multipart.segments);
                page::with_fields(StatusCode::PARTIAL_CONTENT, fields, body)
            }
            Wanted::Unsatisfiable => {
                let mut response = page::error(StatusCode::RANGE_NOT_SATISFIABLE);
                let value = HeaderValue::try_from(format!("bytes */{}", self.size));
                response.headers_mut().extend(value.ok().map(|value| (header::CONTENT_RANGE, value)));
                response
            }
        }
    }

    fn whole(
        self,
        exchange: &Exchange,
        status: StatusCode,
        mut fields: HeaderMap,
        kind: HeaderValue,
    ) -> Response<ResponseBody> {
        fields.insert(header::CONTENT_TYPE, kind);
        if exchange.original_method() == Method::HEAD {
            fields.insert(header::CONTENT_LENGTH, HeaderValue::from(self.size));
            return page::with_fields(status, fields, ResponseBody::empty());
        }
        page::with_fields(status, fields, self.content.part(ByteRange { start: 0, len: self.size }))
    }
}

impl Content {
    fn part(self, part: ByteRange) -> ResponseBody {
        match self {
            Self::Disk(fd) => ResponseBody::file(fd, part.start, part.len),
            Self::Memory(bytes) => ResponseBody::full(slice(&bytes, part.start, part.len)),
        }
    }

    /// Of several ranges, which together are no longer than the file.
    fn parts(self, segments: VecDeque<Segment>) -> ResponseBody {
        match self {
            Self::Disk(fd) => ResponseBody::segments(fd, segments),
            Self::Memory(bytes) => {
                let of = |segment| match segment {
                    Segment::Bytes(bytes) => bytes,
                    Segment::File { offset, len } => slice(&bytes, offset, len),
                };
                ResponseBody::full(segments.into_iter().flat_map(of).collect::<Bytes>())
            }
        }
    }
}

/// A range that lies within the bytes.
fn slice(bytes: &Bytes, start: u64, len: u64) -> Bytes {
    bytes.slice(start as usize..(start + len) as usize)
}

fn method_not_allowed() -> Failure {
    let mut failure = Failure::new(StatusCode::METHOD_NOT_ALLOWED);
    failure.fields.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    failure
}

fn last_segment(path: &[u8]) -> &[u8] {
    url_path::file_name(path)
}
