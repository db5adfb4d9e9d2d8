//! The files of an application, in one order whatever the file system has.

use crate::EmbedError;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::fs::{self, FileType};
use std::path::{Component, Path, PathBuf};

/// Patterns of what is left out: of paths within the application, `*` for any text; a directory with all that is in it.
#[derive(Debug, Clone, Default)]
pub struct Excluded(GlobSet);

/// What is in an application's directory.
#[derive(Debug)]
pub struct Application {
    pub root: PathBuf,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Within the application.
    pub path: PathBuf,
    pub kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    /// To where it leads, which is within the application.
    Link(PathBuf),
}

impl Excluded {
    pub fn new(patterns: &[String]) -> Result<Self, EmbedError> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let wrong = |error: globset::Error| EmbedError::Pattern {
                pattern: pattern.clone(),
                reason: error.kind().to_string(),
            };
            // A name alone is meant wherever it is, as in .gitignore; with a slash, it is a path.
            let trimmed = pattern.trim_start_matches("./").trim_end_matches('/');
            let anchored = trimmed.strip_prefix('/').unwrap_or(trimmed);
            let anywhere = if trimmed.contains('/') { anchored.to_owned() } else { format!("**/{anchored}") };
            set.add(GlobBuilder::new(&anywhere).literal_separator(true).build().map_err(wrong)?);
        }
        let set = set.build().map_err(|error| EmbedError::Pattern {
            pattern: patterns.join(" "),
            reason: error.to_string(),
        })?;
        Ok(Self(set))
    }
}

impl Application {
    /// Looks at all of it. `unwanted`: files that are none of it though they lie in it, as the executable that is made.
    pub fn read(root: &Path, excluded: &Excluded, unwanted: &[PathBuf]) -> Result<Self, EmbedError> {
        let root = root.canonicalize().map_err(EmbedError::file("reading", root))?;
        let mut application = Self { root, entries: Vec::new() };
        application.walk(Path::new(""), excluded, unwanted)?;
        Ok(application)
    }

    pub fn files(&self) -> usize {
        self.entries.iter().filter(|entry| entry.kind != Kind::Directory).count()
    }

    fn walk(&mut self, within: &Path, excluded: &Excluded, unwanted: &[PathBuf]) -> Result<(), EmbedError> {
        let directory = self.root.join(within);
        let mut names = Vec::new();
        for entry in fs::read_dir(&directory).map_err(EmbedError::file("reading", &directory))? {
            let entry = entry.map_err(EmbedError::file("reading", &directory))?;
            let kind = entry.file_type().map_err(EmbedError::file("reading", entry.path()))?;
            names.push((entry.file_name(), kind));
        }
        names.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, kind) in names {
            let path = within.join(&name);
            if excluded.0.is_match(&path) || unwanted.contains(&self.root.join(&path)) {
                continue;
            }
            let kind = self.kind(&path, kind)?;
            let is_directory = kind == Kind::Directory;
            self.entries.push(Entry { path: path.clone(), kind });
            if is_directory {
                self.walk(&path, excluded, unwanted)?;
            }
        }
        Ok(())
    }

    fn kind(&self, path: &Path, kind: FileType) -> Result<Kind, EmbedError> {
        let full = self.root.join(path);
        if kind.is_symlink() {
            let target = fs::read_link(&full).map_err(EmbedError::file("reading", &full))?;
            // By way of other links, too.
            let leads_out = full.canonicalize().is_ok_and(|real| !real.starts_with(&self.root));
            return match is_within(path, &target) && !leads_out {
                true => Ok(Kind::Link(target)),
                false => Err(EmbedError::LinkOut { path: full, target }),
            };
        }
        match (kind.is_dir(), kind.is_file()) {
            (true, _) => Ok(Kind::Directory),
            (_, true) => Ok(Kind::File),
            _ => Err(EmbedError::Special { path: full }),
        }
    }
}

/// Whether a link at this path leads to something within the same root. Links on the way are not followed: a link is refused
/// by what is written in it.
pub(crate) fn is_within(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    for component in target.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn read(root: &Path, excluded: &[&str]) -> Result<Vec<String>, EmbedError> {
        let excluded: Vec<String> = excluded.iter().map(|pattern| (*pattern).into()).collect();
        let application = Application::read(root, &Excluded::new(&excluded)?, &[root.join("out")])?;
        Ok(application.entries.iter().map(|entry| entry.path.display().to_string()).collect())
    }

    #[test]
    fn files_come_in_order_without_what_is_excluded() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for path in ["public", ".git/objects", "var/cache/dev"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["public/index.php", "out", "a.log", "var/b.log", "var/cache/dev/c", ".git/HEAD"] {
            fs::write(root.join(path), "x").unwrap();
        }
        symlink("../public", root.join("var/link")).unwrap();
        assert_eq!(
            read(root, &[".git", "*.log", "/var/cache/*"]).unwrap(),
            ["public", "public/index.php", "var", "var/cache", "var/link"]
        );
        assert_eq!(read(root, &["var/"]).unwrap().len(), 6);
        assert!(matches!(read(root, &["[a"]), Err(EmbedError::Pattern { .. })));
        symlink("../../etc", root.join("var/out")).unwrap();
        assert!(matches!(read(root, &[]), Err(EmbedError::LinkOut { .. })));
        assert!(read(root, &["out"]).is_ok());
    }

    #[test]
    fn links_lead_out_by_what_is_written_in_them() {
        for (link, target, want) in [
            ("a", "b", true),
            ("d/a", "../b", true),
            ("d/a", "../../b", false),
            ("d/a", "e/../../b/./c", true),
            ("a", "/etc/passwd", false),
            ("a", "..", false),
            ("d/e/a", "../..", true),
        ] {
            assert_eq!(is_within(Path::new(link), Path::new(target)), want, "{link} -> {target}");
        }
    }
}
