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
use regent_config::{FileMatcher, Part, Template, TryPolicy};
use rustix::fs::Stat;

/// What files are chosen by.
type Rank = (i128, i128);

/// A compiled list of candidates.
pub(crate) struct TryFiles {
    root: RootSource,
    candidates: Vec<Candidate>,
    split: Split,
    policy: TryPolicy,
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
            policy: matcher.policy,
        })
    }

    /// The first candidate that exists; an error status if the list ends in one, or if the root cannot be told.
    pub(crate) fn select(&self, exchange: &Exchange) -> Result<Option<Found<'_>>, StatusCode> {
        let root = self.root.resolve(exchange).ok_or(StatusCode::BAD_REQUEST)?;
        let mut best: Option<(Rank, Found<'_>)> = None;
        for (index, candidate) in self.candidates.iter().enumerate() {
            let Candidate::File { path, query, wants } = candidate else {
                return best.map(|(_, found)| Some(found)).ok_or_else(|| candidate.status());
            };
            let rendered = path.render(exchange);
            let path = url_path::clean(&rendered);
            let found = |(file, rank)| (rank, Found { file, query: query.as_ref() });
            let names_something =
                self.split.position(&path).is_some() || names_something(&rendered, &path, *wants);
            let looked_up = names_something.then(|| self.look_up(root.prefix(), &path, *wants)).flatten();
            match looked_up.map(found) {
                Some((_, found)) if self.takes_the_first() => return Ok(Some(found)),
                Some((rank, found)) if best.as_ref().is_none_or(|(known, _)| rank > *known) => {
                    best = Some((rank, found));
                }
                Some(_) => {}
                None if self.policy == TryPolicy::FirstExistFallback
                    && index + 1 == self.candidates.len() =>
                {
                    let file = self.named(root.prefix(), &path, *wants);
                    return Ok(file.map(|file| Found { file, query: query.as_ref() }));
                }
                None => {}
            }
        }
        Ok(best.map(|(_, found)| found))
    }

    fn takes_the_first(&self) -> bool {
        matches!(self.policy, TryPolicy::FirstExist | TryPolicy::FirstExistFallback)
    }

    /// Of two files, the one of higher rank is taken.
    fn rank(&self, stat: &Stat) -> Rank {
        match self.policy {
            TryPolicy::SmallestSize => (-i128::from(stat.st_size), 0),
            TryPolicy::LargestSize => (stat.st_size.into(), 0),
            TryPolicy::MostRecentlyModified => (stat.st_mtime.into(), stat.st_mtime_nsec as i128),
            TryPolicy::FirstExist | TryPolicy::FirstExistFallback => (0, 0),
        }
    }

    /// `path` is clean. A candidate wants a directory by how it is *written*.
    fn look_up(&self, prefix: &[u8], path: &[u8], wants: FileKind) -> Option<(FileMatch, Rank)> {
        let file = self.named(prefix, path, wants)?;
        let stat = file_stat::look(file_stat::at(&file.absolute))?;
        let rank = self.rank(&stat);
        (file_stat::kind_of(&stat) == Some(wants)).then_some((file, rank))
    }

    /// The file that a path names, whether it is there or not.
    fn named(&self, prefix: &[u8], path: &[u8], wants: FileKind) -> Option<FileMatch> {
        if path.contains(&0) {
            return None;
        }
        let (script, remainder) = path.split_at(self.split.position(path).unwrap_or(path.len()));
        let mut relative = url_path::trim_end_slashes(script).to_vec();
        let absolute = root::join(prefix, &relative);
        if wants == FileKind::Directory {
            relative.push(b'/');
        }
        Some(FileMatch { relative, absolute, kind: wants, remainder: remainder.to_vec() })
    }
}

/// A slash that a value brought at the end is no file's, unless it belongs to what follows a script's name, and the root
/// alone is no directory that was looked for, as in Caddy 2.11.9 (fileserver/matcher.go, `makeCandidates`): both are left to
/// the candidates behind.
fn names_something(rendered: &[u8], path: &[u8], wants: FileKind) -> bool {
    let is_root = url_path::trim_end_slashes(path).is_empty();
    match wants {
        FileKind::Directory => !is_root,
        FileKind::File => is_root || !rendered.ends_with(b"/"),
    }
}

impl Candidate {
    fn status(&self) -> StatusCode {
        match self {
            Self::Status(status) => *status,
            Self::File { .. } => StatusCode::NOT_FOUND,
        }
    }

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
        select_by(TryPolicy::FirstExist, dir, patterns, uri)
    }

    fn select_by(
        policy: TryPolicy,
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
            policy,
        };
        let list = TryFiles::compile(&matcher).unwrap();
        let found = list.select(&get(uri))?;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ok(found.map(|found| (text(found.file.relative), text(found.file.remainder))))
    }

    #[test]
    fn other_policies() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("small"), "1").unwrap();
        fs::write(dir.path().join("large"), "12345").unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        fs::File::open(dir.path().join("large")).unwrap().set_modified(old).unwrap();
        let list: &[&[&str]] = &[&["none"], &["large"], &["small"], &["none2"]];
        let chosen = |policy, list| select_by(policy, dir.path(), list, "/").unwrap().map(|(file, _)| file);
        assert_eq!(chosen(TryPolicy::SmallestSize, list).as_deref(), Some("/small"));
        assert_eq!(chosen(TryPolicy::LargestSize, list).as_deref(), Some("/large"));
        assert_eq!(chosen(TryPolicy::MostRecentlyModified, list).as_deref(), Some("/small"));
        assert_eq!(chosen(TryPolicy::FirstExistFallback, list).as_deref(), Some("/large"));
        assert_eq!(
            chosen(TryPolicy::FirstExistFallback, &[&["none"], &["index.php"]]).as_deref(),
            Some("/index.php")
        );
        let error = select_by(TryPolicy::LargestSize, dir.path(), &[&["none"], &["=410"]], "/");
        assert_eq!(error, Err(StatusCode::GONE));
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
        assert_eq!(select(dir.path(), list, "/"), found("/index.php", ""));
        assert_eq!(select(dir.path(), list, "/a%20b.txt/"), found("/index.php", ""));
        assert_eq!(select(dir.path(), list, "/none"), found("/index.php", ""));
        assert_eq!(select(dir.path(), list, "/index.php/x"), found("/index.php", "/x"));
        assert_eq!(select(dir.path(), &[&[PATH]], "/dir/"), Ok(None));
        assert_eq!(select(dir.path(), &[&[PATH], &["=404"]], "/none"), Err(StatusCode::NOT_FOUND));
        assert_eq!(select(dir.path(), &[], "/index.php"), found("/index.php", ""));
        assert_eq!(select(dir.path(), &[&[PATH]], "/../../../../etc/passwd"), Ok(None));
    }

    #[test]
    fn a_slash_at_the_end_is_what_follows_the_script_s() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("index.php"), "").unwrap();
        fs::write(dir.path().join("page"), "").unwrap();
        let list: &[&[&str]] = &[&[PATH], &[PATH, "/index.php"], &["index.php"]];
        for policy in [TryPolicy::FirstExist, TryPolicy::FirstExistFallback, TryPolicy::LargestSize] {
            for (uri, remainder) in [
                ("/index.php/2024/01/post/", "/2024/01/post/"),
                ("/index.php/2024/01/post", "/2024/01/post"),
                ("/INDEX.PHP/../index.php/a//b/", "/a/b/"),
                ("/index.php/", "/"),
                ("/index.php", ""),
                // Of these no part is a script's name: the list goes on to its last.
                ("/page/", ""),
                ("/dav/files/", ""),
            ] {
                let found = select_by(policy, dir.path(), list, uri);
                assert_eq!(found, Ok(Some(("/index.php".into(), remainder.into()))), "{policy:?} {uri}");
            }
        }
        assert_eq!(select(dir.path(), &[&[PATH]], "/none.php/a/"), Ok(None));
        assert_eq!(select(dir.path(), &[&[PATH, "/"]], "/index.php/a/"), Ok(None));
    }
}
