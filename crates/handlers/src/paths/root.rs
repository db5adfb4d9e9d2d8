//! Directories that sites are served from.

use crate::error::BuildError;
use crate::paths::url_path;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// An absolute directory, kept as the bytes that a cleaned URL path is appended to.
#[derive(Debug)]
pub(crate) struct Root {
    /// Without a slash at the end; empty for `/`.
    prefix: Vec<u8>,
    /// The same without symbolic links, once the directory has been found to exist.
    resolved: OnceLock<Vec<u8>>,
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
        Self { prefix, resolved: OnceLock::new() }
    }

    /// What a cleaned URL path is appended to, which gives the file's path.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The same with symbolic links resolved. Asked of the file system once; while the directory does not exist, the
    /// path as it is.
    pub(crate) fn resolved_prefix(&self) -> &[u8] {
        if let Some(resolved) = self.resolved.get() {
            return resolved;
        }
        match std::fs::canonicalize(self.path()) {
            Ok(real) => self.resolved.get_or_init(|| Self::from_absolute(real.as_os_str().as_bytes()).prefix),
            Err(_) => &self.prefix,
        }
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
    fn symlinks_are_resolved_once_the_directory_exists() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let link = base.join("current");
        let root = Root::new(&link).unwrap();
        assert_eq!(prefix_path(root.resolved_prefix()), link);
        std::fs::create_dir(base.join("release")).unwrap();
        std::os::unix::fs::symlink(base.join("release"), &link).unwrap();
        assert_eq!(prefix_path(root.resolved_prefix()), base.join("release"));
    }

    #[test]
    fn computed_roots_do_not_climb() {
        assert!(computed(b"/srv/../etc").is_none());
        assert!(computed(b"/srv/\0").is_none());
        assert_eq!(computed(b"/srv/a.example").unwrap().prefix(), b"/srv/a.example");
    }
}
