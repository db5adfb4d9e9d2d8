//! The files of some patterns at an instant.

use crate::pattern::Pattern;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files and directories that are known at most: memory, and the time that a look takes, have bounds.
const MOST: usize = 200_000;

/// Changes whenever a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// Of the inode: it also changes when a file is renamed or gets its old time back.
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

/// What is there.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    files: BTreeMap<PathBuf, Stamp>,
    /// Where files of the patterns are or may come, those of missing bases too: their nearest parents.
    pub directories: Vec<PathBuf>,
    /// Whether there was more than can be known.
    pub is_cut: bool,
}

impl Snapshot {
    pub fn take(patterns: &[Pattern]) -> Self {
        let mut snapshot = Self::default();
        for pattern in patterns {
            snapshot.add(pattern);
        }
        snapshot.directories.sort();
        snapshot.directories.dedup();
        snapshot
    }

    /// The files that are new, gone or changed in `later`.
    pub fn changes<'a>(&'a self, later: &'a Self) -> Vec<&'a Path> {
        let gone = self.files.keys().filter(|path| !later.files.contains_key(*path));
        let other = later.files.iter().filter(|(path, stamp)| self.files.get(*path) != Some(*stamp));
        gone.chain(other.map(|(path, _)| path)).map(PathBuf::as_path).collect()
    }

    fn add(&mut self, pattern: &Pattern) {
        let base = pattern.base();
        match fs::metadata(base) {
            Ok(metadata) if metadata.is_dir() => self.walk(pattern),
            Ok(metadata) => {
                self.files.insert(base.to_owned(), stamp(&metadata));
                // An editor may replace it.
                self.directories.extend(base.parent().map(Path::to_owned));
            }
            Err(_) => {
                let nearest = base.ancestors().find(|above| above.is_dir());
                self.directories.extend(nearest.map(Path::to_owned));
            }
        }
    }

    /// Links to directories are not followed, or a link to a parent would never end.
    fn walk(&mut self, pattern: &Pattern) {
        let mut directories = vec![pattern.base().to_owned()];
        while let Some(directory) = directories.pop() {
            // It has gone meanwhile, or is for others only.
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    directories.extend(pattern.enters(&path).then_some(path));
                } else if pattern.matches(&path)
                    && let Ok(metadata) = fs::metadata(&path)
                    && metadata.is_file()
                {
                    self.files.insert(path, stamp(&metadata));
                }
            }
            self.directories.push(directory);
            if self.files.len() + self.directories.len() > MOST {
                self.is_cut = true;
                return;
            }
        }
    }
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    Stamp {
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        size: metadata.size(),
        inode: metadata.ino(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn new_changed_and_removed_files_are_changes_and_others_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["kept.php", "changed.php", "removed.php", "other.txt"] {
            write(at(name), "1");
        }
        let patterns = [Pattern::new("**/*.php", directory.path()).unwrap()];
        let before = Snapshot::take(&patterns);
        write(at("changed.php"), "22");
        write(at("other.txt"), "22");
        write(at("deep/new.php"), "1");
        fs::remove_file(at("removed.php")).unwrap();
        let after = Snapshot::take(&patterns);
        let mut changes = before.changes(&after);
        changes.sort();
        assert_eq!(changes, [at("changed.php"), at("deep/new.php"), at("removed.php")]);
        assert!(after.changes(&Snapshot::take(&patterns)).is_empty());
        assert_eq!(after.directories, [directory.path().to_owned(), at("deep")]);
    }

    #[test]
    fn a_file_of_the_same_size_that_took_another_s_place_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.php");
        write(file.clone(), "1");
        let patterns = [Pattern::new("a.php", directory.path()).unwrap()];
        let before = Snapshot::take(&patterns);
        write(directory.path().join("b"), "2");
        fs::rename(directory.path().join("b"), &file).unwrap();
        assert_eq!(before.changes(&Snapshot::take(&patterns)), [file.as_path()]);
    }

    #[test]
    fn what_is_not_there_yet_is_waited_for_in_its_nearest_parent() {
        let directory = tempfile::tempdir().unwrap();
        let patterns = [Pattern::new("later/deep/*.php", directory.path()).unwrap()];
        assert_eq!(Snapshot::take(&patterns).directories, [directory.path()]);
    }

    #[test]
    fn links_in_a_circle_end() {
        let directory = tempfile::tempdir().unwrap();
        symlink(directory.path(), directory.path().join("self")).unwrap();
        write(directory.path().join("a.php"), "1");
        let patterns = [Pattern::new(".", directory.path()).unwrap()];
        assert_eq!(Snapshot::take(&patterns).files.len(), 1, "the file alone");
    }
}
