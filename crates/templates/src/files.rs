//! Files of the site, as templates see them: below a root, whatever a name says.

use std::fs::{self, Metadata};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Bytes of a file that a template may read.
const MOST_BYTES: u64 = 16 << 20;
/// Names in a directory.
const MOST_NAMES: usize = 10_000;

/// Where a name leads, as Go's `http.Dir` has it: `..` never leads out of the root. Links are followed.
pub(crate) fn locate(root: &Path, name: &str) -> PathBuf {
    let mut inner = PathBuf::new();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(part) => inner.push(part),
            Component::ParentDir => drop(inner.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    root.join(inner)
}

/// # Errors
/// With the reason, in words.
pub(crate) fn read(root: &Path, name: &str) -> Result<String, String> {
    let path = locate(root, name);
    // Before it is opened: that of a pipe would wait for a writer.
    if !stat(root, name)?.is_file() {
        return Err(format!("{name} is no regular file"));
    }
    let file = fs::File::open(path).map_err(|error| format!("{name}: {error}"))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("{name} has more than 16 MiB"));
    }
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

pub(crate) fn stat(root: &Path, name: &str) -> Result<Metadata, String> {
    if name.contains('\0') {
        return Err("a name with a null byte in it".into());
    }
    fs::metadata(locate(root, name)).map_err(|error| format!("{name}: {error}"))
}

/// The names in a directory, in order.
pub(crate) fn list(root: &Path, name: &str) -> Result<Vec<String>, String> {
    if !stat(root, name)?.is_dir() {
        return Err(format!("{name} is not a directory"));
    }
    let entries = fs::read_dir(locate(root, name)).map_err(|error| format!("{name}: {error}"))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("{name}: {error}"))?;
        if names.len() == MOST_NAMES {
            return Err(format!("{name} has more than 10,000 entries"));
        }
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lead_out_of_the_root() {
        let root = Path::new("/srv");
        for (name, path) in [
            ("a.html", "/srv/a.html"),
            ("/a/../b", "/srv/b"),
            ("../../etc/passwd", "/srv/etc/passwd"),
            ("/../x/./y", "/srv/x/y"),
            ("", "/srv"),
        ] {
            assert_eq!(locate(root, name), Path::new(path), "{name}");
        }
    }

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "text").unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        assert_eq!(read(dir.path(), "/a").unwrap(), "text");
        assert!(read(dir.path(), "b").unwrap_err().contains("no regular file"));
        assert!(read(dir.path(), "no\0").is_err());
        assert_eq!(list(dir.path(), "/").unwrap(), ["a", "b"]);
    }
}
