//! Directories that sites are served from.

use crate::error::BuildError;
use crate::paths::url_path;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// An absolute directory, kept as the bytes that a cleaned URL path is appended to.
#[derive(Debug)]
pub(crate) struct Root {
    /// Without a slash at the end; empty for `/`.
    prefix: Arc<[u8]>,
    /// The same without symbolic links, as they led when this generation of code was new; `None`: not yet asked for, or the
    /// directory did not exist.
    resolved: Mutex<Option<(CodeGeneration, Arc<[u8]>)>>,
}

/// Counts how often PHP's code has been loaded anew. What is resolved for one generation holds for it: a deployment that changes
/// a link is seen by files and scripts at once, with the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodeGeneration(pub u64);

/// Where a root that is a symbolic link leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// To where it does at this moment.
    Followed,
    /// To where it did when PHP's code was loaded: `resolve_root_symlink`.
    OfCode,
}

impl Links {
    pub(crate) fn of_option(resolve_root_symlink: bool) -> Self {
        if resolve_root_symlink { Self::OfCode } else { Self::Followed }
    }

    /// What a cleaned URL path is appended to for a request of this generation.
    pub(crate) fn prefix(self, root: &Root, generation: CodeGeneration) -> Arc<[u8]> {
        match self {
            Self::Followed => Arc::clone(&root.prefix),
            Self::OfCode => root.resolved_prefix(generation),
        }
    }
}

impl Root {
    /// `path` may be relative to the working directory.
    pub(crate) fn new(path: &Path) -> Result<Self, BuildError> {
        let absolute =
            std::path::absolute(path).map_err(|source| BuildError::Path { path: path.to_owned(), source })?;
        Ok(Self::from_absolute(absolute.as_os_str().as_bytes()))
    }

    fn from_absolute(path: &[u8]) -> Self {
        let mut prefix = url_path::clean(path);
        prefix.truncate(url_path::trim_end_slashes(&prefix).len());
        Self { prefix: prefix.into(), resolved: Mutex::default() }
    }

    /// What a cleaned URL path is appended to, which gives the file's path.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The same with symbolic links resolved, for this generation of code. Asked of the file system once for each; while the
    /// directory does not exist, the path as it is.
    fn resolved_prefix(&self, generation: CodeGeneration) -> Arc<[u8]> {
        let mut resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = resolved.as_ref().filter(|(of, _)| *of == generation) {
            return Arc::clone(known);
        }
        match self.resolved_now() {
            Some(prefix) => {
                *resolved = Some((generation, Arc::clone(&prefix)));
                prefix
            }
            None => Arc::clone(&self.prefix),
        }
    }

    /// Where links lead at this moment; `None`: the directory does not exist.
    pub(crate) fn resolved_now(&self) -> Option<Arc<[u8]>> {
        let real = std::fs::canonicalize(self.path()).ok()?;
        Some(Self::from_absolute(real.as_os_str().as_bytes()).prefix)
    }

    pub(crate) fn path(&self) -> &Path {
        prefix_path(&self.prefix)
    }
}

/// The directory that a prefix stands for.
pub(crate) fn prefix_path(prefix: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(if prefix.is_empty() { b"/" } else { prefix }))
}

/// A prefix with a cleaned URL path behind it.
pub(crate) fn join(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    [prefix, path].concat()
}

/// A root of a value that is known only now. It may hold what the client chose (`/srv/{host}`), so a path that climbs
/// is refused.
pub(crate) fn computed(path: &[u8]) -> Option<Arc<Root>> {
    if path.contains(&0) || path.split(|byte| *byte == b'/').any(|segment| segment == b"..") {
        return None;
    }
    let absolute = std::path::absolute(OsStr::from_bytes(path)).ok()?;
    Some(Arc::new(Root::from_absolute(absolute.as_os_str().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_no_slash_at_the_end() {
        assert_eq!(Root::from_absolute(b"/").prefix(), b"");
        assert_eq!(Root::from_absolute(b"/srv/app/").prefix(), b"/srv/app");
        assert_eq!(prefix_path(b""), Path::new("/"));
    }

    #[test]
    fn a_link_is_followed_once_for_each_generation_of_code() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let link = base.join("current");
        let root = Root::new(&link).unwrap();
        let resolved = |generation| prefix_path(&root.resolved_prefix(CodeGeneration(generation))).to_owned();
        assert_eq!(resolved(0), link);
        for release in ["1", "2"] {
            std::fs::create_dir(base.join(release)).unwrap();
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(base.join(release), &link).unwrap();
            if release == "1" {
                assert_eq!(resolved(0), base.join("1"));
            }
        }
        assert_eq!(resolved(0), base.join("1"), "the release of the code that runs");
        assert_eq!(resolved(1), base.join("2"));
        assert_eq!(root.resolved_now().as_deref().map(prefix_path), Some(&*base.join("2")));
    }

    #[test]
    fn computed_roots_do_not_climb() {
        assert!(computed(b"/srv/../etc").is_none());
        assert!(computed(b"/srv/\0").is_none());
        assert_eq!(computed(b"/srv/a.example").unwrap().prefix(), b"/srv/a.example");
    }
}
