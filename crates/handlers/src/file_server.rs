//! Static files.

use crate::Body;
use crate::answer;
use crate::conditional::{Outcome, Validators};
use crate::content_coding::{self, Coding};
use crate::content_type::ContentTypes;
use crate::error::BuildError;
use crate::exchange::{Exchange, FileKind};
use crate::file_stat;
use crate::hide::Hide;
use crate::range::{self, Wanted};
use crate::root::{self, RootSource};
use crate::route::Flow;
use crate::script::Split;
use crate::url_path;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use regent_config as config;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

/// A compiled `file_server` directive.
pub(crate) struct FileServer {
    root: RootSource,
    hide: Hide,
    index: Vec<Vec<u8>>,
    missing: Missing,
    canonical_uris: bool,
    status: Option<StatusCode>,
    precompressed: Vec<Coding>,
    content_types: ContentTypes,
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

struct Opened {
    fd: OwnedFd,
    size: u64,
    validators: Validators,
    coding: Option<Coding>,
}

impl FileServer {
    pub(crate) fn compile(server: &config::FileServer, scripts: Split) -> Result<Self, BuildError> {
        let status = |code: u16| {
            answer::parse_status(&code.to_string()).ok_or_else(|| BuildError::Status(code.to_string()))
        };
        Ok(Self {
            root: RootSource::compile(server.root.as_ref())?,
            hide: Hide::compile(&server.hide, scripts)?,
            // Cleaned, so that an index name cannot lead elsewhere.
            index: server.index.iter().map(|name| url_path::clean(name.as_bytes())).collect(),
            missing: if server.pass_thru { Missing::Next } else { Missing::NotFound },
            canonical_uris: server.canonical_uris,
            status: server.status.map(status).transpose()?,
            precompressed: server
                .precompressed
                .iter()
                .map(|name| Coding::by_name(name))
                .collect::<Result<_, _>>()?,
            content_types: ContentTypes::new(),
        })
    }

    pub(crate) fn handle(&self, exchange: &Exchange) -> Flow {
        self.serve(exchange, exchange.path())
    }

    /// Answers with what is at a decoded and cleaned path below the root.
    pub(crate) fn serve(&self, exchange: &Exchange, path: &[u8]) -> Flow {
        let Some(root) = self.root.resolve(exchange) else { return Flow::error(StatusCode::BAD_REQUEST) };
        let file = root::join(root.prefix(), url_path::trim_end_slashes(path));
        if self.hide.hides(exchange, path, &file) {
            return self.missing();
        }
        // Looked at before it is opened: opening a FIFO or a device has effects of its own.
        match rustix::fs::stat(file_stat::at(&file)) {
            Err(errno) => self.failed(errno),
            Ok(stat) => match file_stat::kind_of(&stat) {
                Some(FileKind::File) => self.send(exchange, path, &file, Via::Name),
                Some(FileKind::Directory) => self.serve_directory(exchange, path, &file),
                None => self.missing(),
            },
        }
    }

    /// As [`Self::serve`], for a path that is known to be a regular file's.
    pub(crate) fn serve_file(&self, exchange: &Exchange, path: &[u8]) -> Flow {
        let Some(root) = self.root.resolve(exchange) else { return Flow::error(StatusCode::BAD_REQUEST) };
        let file = root::join(root.prefix(), url_path::trim_end_slashes(path));
        if self.hide.hides(exchange, path, &file) {
            return self.missing();
        }
        self.send(exchange, path, &file, Via::Name)
    }

    pub(crate) fn hides(&self, exchange: &Exchange, path: &[u8], file: &[u8]) -> bool {
        self.hide.hides(exchange, path, file)
    }

    fn serve_directory(&self, exchange: &Exchange, path: &[u8], directory: &[u8]) -> Flow {
        for index in &self.index {
            let file = root::join(directory, index);
            let relative = root::join(url_path::trim_end_slashes(path), index);
            if !self.hide.hides(exchange, &relative, &file) && file_stat::is_file(&file) {
                return self.send(exchange, path, &file, Via::Index);
            }
        }
        self.missing()
    }

    fn send(&self, exchange: &Exchange, path: &[u8], file: &[u8], via: Via) -> Flow {
        if let Some(canonical) = self.canonical_path(exchange, path, via) {
            return Flow::respond(answer::redirect_to_path(exchange, &canonical));
        }
        if !matches!(exchange.method, Method::GET | Method::HEAD) {
            return match self.missing {
                Missing::Next => Flow::Next,
                Missing::NotFound => Flow::respond(method_not_allowed()),
            };
        }
        match self.open(exchange, file) {
            Ok(opened) => Flow::respond(self.answer(exchange, file, opened)),
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
    fn open(&self, exchange: &Exchange, file: &[u8]) -> Result<Opened, Errno> {
        if !self.precompressed.is_empty() {
            for coding in content_coding::accepted(&exchange.headers, &self.precompressed) {
                let sidecar = root::join(file, coding.ending().as_bytes());
                if file_stat::is_file(&sidecar) {
                    if let Ok(opened) = Opened::open(&sidecar, Some(coding)) {
                        return Ok(opened);
                    }
                }
            }
        }
        Opened::open(file, None)
    }

    fn answer(&self, exchange: &Exchange, file: &[u8], opened: Opened) -> Response<Body> {
        let mut fields = self.fields(&opened);
        let kind = self.content_types.of(file);
        if let Some(status) = self.status {
            fields.remove(header::ACCEPT_RANGES);
            return opened.whole(exchange, status, fields, kind);
        }
        match opened.validators.evaluate(&exchange.method, &exchange.headers) {
            Outcome::NotModified => {
                fields.remove(header::ACCEPT_RANGES);
                fields.remove(header::CONTENT_ENCODING);
                return answer::with_fields(StatusCode::NOT_MODIFIED, fields, Body::empty());
            }
            Outcome::Failed => return answer::error(StatusCode::PRECONDITION_FAILED),
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
    fn open(file: &[u8], coding: Option<Coding>) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = rustix::fs::open(file, flags, Mode::empty())?;
        // Once more, as it may have been replaced since it was looked at.
        let stat: Stat = rustix::fs::fstat(&fd)?;
        if file_stat::kind_of(&stat) != Some(FileKind::File) {
            return Err(Errno::NOENT);
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        Ok(Self { fd, size, validators: Validators::of(&stat), coding })
    }

    fn part(
        self,
        exchange: &Exchange,
        wanted: Wanted,
        mut fields: HeaderMap,
        kind: HeaderValue,
    ) -> Response<Body> {
        match wanted {
            Wanted::Whole => self.whole(exchange, StatusCode::OK, fields, kind),
            Wanted::One(part) => {
                fields.insert(header::CONTENT_TYPE, kind);
                fields.insert(header::CONTENT_RANGE, part.content_range(self.size));
                let body = Body::file(self.fd, part.start, part.len);
                answer::with_fields(StatusCode::PARTIAL_CONTENT, fields, body)
            }
            Wanted::Several(parts) => {
                let multipart = range::multipart(&parts, self.size, &kind);
                fields.insert(header::CONTENT_TYPE, multipart.content_type);
                let body = Body::segments(self.fd, multipart.segments);
                answer::with_fields(StatusCode::PARTIAL_CONTENT, fields, body)
            }
            Wanted::Unsatisfiable => {
                let mut response = answer::error(StatusCode::RANGE_NOT_SATISFIABLE);
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
    ) -> Response<Body> {
        fields.insert(header::CONTENT_TYPE, kind);
        if exchange.original_method() == Method::HEAD {
            fields.insert(header::CONTENT_LENGTH, HeaderValue::from(self.size));
            return answer::with_fields(status, fields, Body::empty());
        }
        answer::with_fields(status, fields, Body::file(self.fd, 0, self.size))
    }
}

fn method_not_allowed() -> Response<Body> {
    let mut response = answer::error(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

fn last_segment(path: &[u8]) -> &[u8] {
    url_path::file_name(path)
}
