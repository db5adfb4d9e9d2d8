//! Choosing the first file of a list that exists: the `file` matcher and `try_files`.

use crate::context::exchange::Exchange;
use crate::context::found::{FileKind, FileMatch};
use crate::error::BuildError;
use crate::files::file_stat;
use crate::paths::root;
use crate::paths::script::Split;
use crate::paths::url_path;
use crate::templates::root_source::RootSource;
use crate::templates::text::Text;
use http::StatusCode;
use regent_config::{FileMatcher, Part, Template};

/// A compiled list of candidates.
pub(crate) struct TryFiles {
    root: RootSource,
    candidates: Vec<Candidate>,
    split: Split,
}

enum Candidate {
    File {
        path: Text,
        /// What the query becomes if this one is taken; `None`: it stays.
        query: Option<Text>,
        wants: FileKind,
    },
    /// `=404`: nothing before it exists; answer with this error.
    Status(StatusCode),
}

/// The candidate that was taken.
pub(crate) struct Found<'a> {
    pub(crate) file: FileMatch,
    pub(crate) query: Option<&'a Text>,
}

impl TryFiles {
    pub(crate) fn compile(matcher: &FileMatcher) -> Result<Self, BuildError> {
        let own_path = [Template(vec![Part::Placeholder("http.request.uri.path".into())])];
        let patterns = if matcher.try_files.is_empty() { &own_path[..] } else { &matcher.try_files };
        Ok(Self {
            root: RootSource::compile(matcher.root.as_ref())?,
            candidates: patterns.iter().map(Candidate::compile).collect::<Result<_, _>>()?,
            split: Split::new(&matcher.split_path),
        })
    }

    /// The first candidate that exists; an error status if the list ends in one, or if the root cannot be told.
    pub(crate) fn select(&self, exchange: &Exchange) -> Result<Option<Found<'_>>, StatusCode> {
        let root = self.root.resolve(exchange).ok_or(StatusCode::BAD_REQUEST)?;
        for candidate in &self.candidates {
            match candidate {
                Candidate::Status(status) => return Err(*status),
                Candidate::File { path, query, wants } => {
                    let path = url_path::clean(&path.render(exchange));
                    if let Some(file) = self.look_up(root.prefix(), &path, *wants) {
                        return Ok(Some(Found { file, query: query.as_ref() }));
                    }
                }
            }
        }
        Ok(None)
    }

    /// `path` is clean. A candidate wants a directory by how it is *written*; a slash that a value brought does not count.
    fn look_up(&self, prefix: &[u8], path: &[u8], wants: FileKind) -> Option<FileMatch> {
        if path.contains(&0) {
            return None;
        }
        let (script, remainder) = path.split_at(self.split.position(path).unwrap_or(path.len()));
        let mut relative = url_path::trim_end_slashes(script).to_vec();
        let absolute = root::join(prefix, &relative);
        if file_stat::kind(file_stat::at(&absolute)) != Some(wants) {
            return None;
        }
        if wants == FileKind::Directory {
            relative.push(b'/');
        }
        Some(FileMatch { relative, absolute, kind: wants, remainder: remainder.to_vec() })
    }
}

impl Candidate {
    fn compile(template: &Template) -> Result<Self, BuildError> {
        if let Some(status) = template.as_text().and_then(|text| text.strip_prefix('=')) {
            return crate::templates::status::parse_status(status)
                .map(Self::Status)
                .ok_or_else(|| BuildError::Status(status.into()));
        }
        let (path, query) = Text::compile(template).split_query();
        let wants = if path.literal_end().ends_with('/') { FileKind::Directory } else { FileKind::File };
        Ok(Self::File { path, query, wants })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;
    use std::fs;

    fn part(text: &str) -> Part {
        match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => Part::Placeholder(name.to_owned()),
            None => Part::Text(text.to_owned()),
        }
    }

    fn select(
        dir: &std::path::Path,
        patterns: &[&[&str]],
        uri: &str,
    ) -> Result<Option<(String, String)>, StatusCode> {
        let matcher = FileMatcher {
            root: Some(Template::text(dir.to_str().unwrap())),
            try_files: patterns
                .iter()
                .map(|parts| Template(parts.iter().copied().map(part).collect()))
                .collect(),
            split_path: vec![".php".into()],
        };
        let list = TryFiles::compile(&matcher).unwrap();
        let found = list.select(&get(uri))?;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ok(found.map(|found| (text(found.file.relative), text(found.file.remainder))))
    }

    const PATH: &str = "{http.request.uri.path}";

    #[test]
    fn the_first_that_exists_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a b.txt"), "").unwrap();
        fs::write(dir.path().join("index.php"), "").unwrap();
        fs::create_dir(dir.path().join("dir")).unwrap();
        let found = |relative: &str, remainder: &str| Ok(Some((relative.to_owned(), remainder.to_owned())));
        let list: &[&[&str]] = &[&[PATH], &[PATH, "/"], &["index.php"]];
        assert_eq!(select(dir.path(), list, "/a%20b.txt"), found("/a b.txt", ""));
        assert_eq!(select(dir.path(), list, "/dir"), found("/dir/", ""));
        assert_eq!(select(dir.path(), list, "/"), found("/", ""));
        assert_eq!(select(dir.path(), list, "/none"), found("/index.php", ""));
        assert_eq!(select(dir.path(), list, "/index.php/x"), found("/index.php", "/x"));
        assert_eq!(select(dir.path(), &[&[PATH]], "/dir/"), Ok(None));
        assert_eq!(select(dir.path(), &[&[PATH], &["=404"]], "/none"), Err(StatusCode::NOT_FOUND));
        assert_eq!(select(dir.path(), &[], "/index.php"), found("/index.php", ""));
        assert_eq!(select(dir.path(), &[&[PATH]], "/../../../../etc/passwd"), Ok(None));
    }
}
