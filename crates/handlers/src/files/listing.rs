//! Pages that list directories (`file_server browse`).
//!
//! A directory is read on a thread that may block, so that is a job of its own.

mod page;

use crate::context::exchange::Exchange;
use crate::context::listing::{Listed, Listing};
use crate::files::hide::Hide;
use crate::paths::root;
use crate::paths::url_path;
use http::{HeaderMap, Method, StatusCode, header};
use regent_config::{Browse, ListingOrder, ListingSort};
use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A directory that is to be listed.
pub(crate) struct DirectoryListing {
    root: PathBuf,
    /// Without a slash at its end.
    directory: Vec<u8>,
    /// Below the root, decoded, with a slash at its end.
    path: Vec<u8>,
    /// As the client knows it.
    title: String,
    hide: Hide,
    file_limit: usize,
    reveals_links: bool,
    view: View,
    form: Form,
    is_head: bool,
}

/// What a client wants to see of a directory.
#[derive(Debug, Clone, Copy, PartialEq)]
struct View {
    sort: ListingSort,
    order: ListingOrder,
    offset: usize,
    limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Html,
    Json,
}

/// What is shown of a file or a directory.
struct Entry {
    name: Vec<u8>,
    is_directory: bool,
    is_link: bool,
    /// Where a link leads, in its own words, if that is to be shown.
    target: Option<Vec<u8>>,
    size: u64,
    /// Seconds since 1970.
    modified: i64,
    mode: u32,
}

impl DirectoryListing {
    /// `path`: of the directory, below the root of this prefix, decoded and clean.
    pub(crate) fn new(browse: &Browse, exchange: &Exchange, prefix: &[u8], path: &[u8], hide: &Hide) -> Self {
        let bare = url_path::trim_end_slashes(path);
        let original = exchange.original_path();
        let title = [url_path::trim_end_slashes(&original), b"/"].concat();
        Self {
            root: root::prefix_path(prefix).to_owned(),
            directory: root::join(prefix, bare),
            path: [bare, b"/"].concat(),
            title: String::from_utf8_lossy(&title).into_owned(),
            hide: hide.of_request(exchange),
            file_limit: browse.file_limit as usize,
            reveals_links: browse.reveal_links,
            view: View::asked(browse, exchange.uri.query().unwrap_or_default()),
            form: Form::asked(&exchange.headers),
            is_head: exchange.original_method() == Method::HEAD,
        }
    }

    /// The entries that are shown, and whether these are all.
    fn read(&self) -> io::Result<(Vec<Entry>, bool)> {
        let root = self.root.canonicalize()?;
        let directory =
            Path::new(OsStr::from_bytes(if self.directory.is_empty() { b"/" } else { &self.directory }));
        let directory = directory.canonicalize()?;
        // A link has led out of the root.
        if !directory.starts_with(&root) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (mut entries, mut looked_at) = (Vec::new(), 0);
        for entry in fs::read_dir(&directory)? {
            if looked_at == self.file_limit {
                return Ok((entries, false));
            }
            looked_at += 1;
            entries.extend(self.entry(&entry?, &root));
        }
        Ok((entries, true))
    }

    /// `None`: it is hidden, gone, or nothing that could be served.
    fn entry(&self, entry: &DirEntry, root: &Path) -> Option<Entry> {
        let name = entry.file_name().as_bytes().to_vec();
        let (relative, absolute) =
            (root::join(&self.path, &name), [&self.directory[..], b"/", &name].concat());
        if self.hide.hides_settled(&relative, &absolute) {
            return None;
        }
        let is_link = entry.file_type().ok()?.is_symlink();
        if is_link && !entry.path().canonicalize().ok()?.starts_with(root) {
            return None;
        }
        let found = fs::metadata(entry.path()).ok()?;
        let target = (is_link && self.reveals_links).then(|| fs::read_link(entry.path()).ok()).flatten();
        let target = target.map(|target| target.into_os_string().into_encoded_bytes());
        (found.is_file() || found.is_dir()).then(|| Entry { target, ..Entry::new(name, is_link, &found) })
    }
}

impl Listing for DirectoryListing {
    fn run(self: Box<Self>) -> Result<Listed, StatusCode> {
        let (mut entries, is_whole) = self.read().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StatusCode::NOT_FOUND,
            _ => {
                tracing::error!(%error, "cannot list a directory");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        })?;
        entries.sort_by(|a, b| self.view.compare(a, b));
        let all = entries.len();
        let shown: Vec<Entry> = entries.into_iter().skip(self.view.offset).take(self.view.limit).collect();
        let text = match self.form {
            Form::Html => page::html(&self.title, &shown, self.view, all, is_whole),
            Form::Json => page::json(&shown),
        };
        Ok(Listed { text, content_type: self.form.content_type(), is_head: self.is_head })
    }
}

impl Entry {
    fn new(name: Vec<u8>, is_link: bool, found: &Metadata) -> Self {
        Self {
            name,
            is_directory: found.is_dir(),
            is_link,
            target: None,
            size: found.len(),
            modified: found.mtime(),
            mode: found.permissions().mode() & 0o777,
        }
    }
}

impl View {
    fn asked(browse: &Browse, query: &str) -> Self {
        let value = |key: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.filter(|(name, _)| *name == key).map(|(_, value)| value).next()
        };
        let number = |key: &str| value(key).and_then(|text| text.parse().ok());
        Self {
            sort: value("sort").and_then(ListingSort::named).unwrap_or(browse.sort),
            order: value("order").and_then(ListingOrder::named).unwrap_or(browse.order),
            offset: number("offset").unwrap_or(0),
            limit: number("limit").filter(|limit| *limit > 0).unwrap_or(usize::MAX),
        }
    }

    fn compare(self, a: &Entry, b: &Entry) -> Ordering {
        let name = || {
            let lower = |entry: &Entry| entry.name.to_ascii_lowercase();
            lower(a).cmp(&lower(b)).then_with(|| a.name.cmp(&b.name))
        };
        let directories = |directions: Ordering| b.is_directory.cmp(&a.is_directory).then(directions);
        let ordered = |found: Ordering| match self.order {
            ListingOrder::Ascending => found,
            ListingOrder::Descending => found.reverse(),
        };
        match self.sort {
            ListingSort::Name => ordered(name()),
            ListingSort::NameDirFirst => directories(ordered(name())),
            // What a directory's own size says nobody wants to know.
            ListingSort::Size => directories(ordered(a.size.cmp(&b.size).then_with(name))),
            ListingSort::Time => ordered(a.modified.cmp(&b.modified).then_with(name)),
        }
    }
}

impl Form {
    fn asked(headers: &HeaderMap) -> Self {
        let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        match accepted.any(|value| value.to_ascii_lowercase().contains("application/json")) {
            true => Self::Json,
            false => Self::Html,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json; charset=utf-8",
        }
    }
}

impl fmt::Debug for DirectoryListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").field("title", &self.title).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
