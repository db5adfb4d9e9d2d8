//! Pages that list directories (`file_server browse`).
//!
//! A directory is read on a thread that may block, so that is a job of its own.

mod form;
mod page;
mod plain;

use crate::context::exchange::Exchange;
use crate::context::listing::{Listed, Listing};
use crate::context::rendering::Rules;
use crate::files::hide::Hide;
use crate::paths::root;
use crate::paths::url_path;
use form::Form;
use http::{Method, StatusCode};
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
    plain_time_format: String,
    /// What makes a page of HTML; `None`: it is our own.
    template: Option<PathBuf>,
    /// The path of the request, encoded, without a slash at its end, for templates.
    uri_path: String,
    rules: Rules,
    is_head: bool,
}

/// What a client wants to see of a directory.
#[derive(Debug, Clone, Copy, PartialEq)]
struct View {
    sort: ListingSort,
    order: ListingOrder,
    offset: usize,
    limit: usize,
    /// What a template makes of it: `list`, `grid`.
    layout: &'static str,
}

/// What is shown of a file or a directory.
struct Entry {
    name: Vec<u8>,
    is_directory: bool,
    is_link: bool,
    /// Where a link leads, in its own words, if that is to be shown.
    target: Option<Vec<u8>>,
    size: u64,
    /// The same, but of a link itself.
    own_size: u64,
    /// Seconds since 1970.
    modified: i64,
    mode: u32,
}

impl DirectoryListing {
    /// `path`: of the directory, below the root of this prefix, decoded and clean. `rules`: of the template, where there is one.
    pub(crate) fn new(
        browse: &Browse,
        exchange: &Exchange,
        prefix: &[u8],
        path: &[u8],
        hide: &Hide,
        rules: Rules,
    ) -> Self {
        let mut uri_path = Vec::new();
        url_path::encode_path(url_path::trim_end_slashes(exchange.path()), &mut uri_path);
        let uri_path = String::from_utf8_lossy(&uri_path).into_owned();
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
            plain_time_format: browse.plain_time_format.clone(),
            template: browse.template.clone(),
            uri_path: if uri_path.is_empty() { "/".to_owned() } else { uri_path },
            rules,
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
        let own_size = if is_link { entry.metadata().ok()?.len() } else { found.len() };
        let target = (is_link && self.reveals_links).then(|| fs::read_link(entry.path()).ok()).flatten();
        let target = target.map(|target| target.into_os_string().into_encoded_bytes());
        let entry = || Entry { target, own_size, ..Entry::new(name, is_link, &found) };
        (found.is_file() || found.is_dir()).then(entry)
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
        let totals = Totals::of(&entries);
        let shown: Vec<Entry> = entries.into_iter().skip(self.view.offset).take(self.view.limit).collect();
        let mut template = None;
        let text = match (self.form, &self.template) {
            (Form::Html, None) => page::html(&self.title, &shown, self.view, totals.all(), is_whole),
            (Form::Html, Some(file)) => {
                let source = fs::read(file).map_err(|error| {
                    tracing::error!(%error, file = %file.display(), "cannot read the template of a listing");
                    StatusCode::INTERNAL_SERVER_ERROR
                })?;
                template = Some((self.rules.clone(), self.listing(&shown, totals)));
                source
            }
            (Form::Json, _) => page::json(&shown),
            (Form::Text, _) => plain::text(&shown, &self.plain_time_format),
        };
        Ok(Listed { text, content_type: self.form.content_type(), is_head: self.is_head, template })
    }
}

/// What there is in a directory, shown or not.
#[derive(Debug, Clone, Copy)]
struct Totals {
    directories: usize,
    files: usize,
    /// Bytes of all files, with what links lead to, and without.
    size: u64,
    own_size: u64,
}

impl Totals {
    fn of(entries: &[Entry]) -> Self {
        let directories = entries.iter().filter(|entry| entry.is_directory).count();
        let files = || entries.iter().filter(|entry| !entry.is_directory);
        Self {
            directories,
            files: entries.len() - directories,
            size: files().map(|entry| entry.size).sum(),
            own_size: files().map(|entry| entry.own_size).sum(),
        }
    }

    fn all(self) -> usize {
        self.directories + self.files
    }
}

impl DirectoryListing {
    /// As a template has it.
    fn listing(&self, shown: &[Entry], totals: Totals) -> regent_templates::Listing {
        let View { sort, order, offset, limit, layout } = self.view;
        regent_templates::Listing {
            path: self.uri_path.clone(),
            items: shown.iter().map(page::template_item).collect(),
            offset,
            limit: if shown.len() < totals.all() && limit == shown.len() { limit } else { 0 },
            directories: totals.directories,
            files: totals.files,
            size: totals.own_size,
            size_with_targets: totals.size,
            sort: sort.name().to_owned(),
            order: order.name().to_owned(),
            layout: layout.to_owned(),
        }
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
            own_size: found.len(),
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
            layout: match value("layout") {
                None | Some("") => "",
                Some("grid") => "grid",
                Some(_) => "list",
            },
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

impl fmt::Debug for DirectoryListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").field("title", &self.title).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
