//! The files of some patterns at an instant.

use crate::pattern::Pattern;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files and directories that are known at most: memory, and the time that a look takes, have bounds.
const MOST: usize = 200_000;

/// Links out of the tree of a pattern that are followed at most.
const MOST_LINKS: usize = 200;

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

    /// Links to directories are followed where they lead out of the tree, as those of Composer's path repositories do. What they
    /// lead to within it is looked at under its own name, and a link to a parent would never end.
    fn walk(&mut self, pattern: &Pattern) {
        let mut directories = vec![pattern.base().to_owned()];
        let mut trees = Trees::new(pattern.base());
        while let Some(directory) = directories.pop() {
            // It has gone meanwhile, or is for others only.
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                let kind = entry.file_type();
                let is_directory = kind.as_ref().is_ok_and(|kind| kind.is_dir())
                    || kind.is_ok_and(|kind| kind.is_symlink())
                        && pattern.enters(&path)
                        && trees.leads_out(&path);
                if is_directory {
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

/// The directories that a walk has been through, or will be.
struct Trees(Vec<PathBuf>);

impl Trees {
    fn new(base: &Path) -> Self {
        Self(fs::canonicalize(base).into_iter().collect())
    }

    /// Whether the link leads to a directory that is in none of them, and has none of them in it: each is walked through once.
    fn leads_out(&mut self, link: &Path) -> bool {
        if self.0.len() > MOST_LINKS || !link.is_dir() {
            return false;
        }
        let Ok(target) = fs::canonicalize(link) else { return false };
        let is_apart = self.0.iter().all(|tree| !target.starts_with(tree) && !tree.starts_with(&target));
        if is_apart {
            self.0.push(target);
        }
        is_apart
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
    fn packages_that_composer_has_linked_from_beside_the_project_were_not_seen() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["app/src/a.php", "app/lib/b.php", "packages/one/src/c.php", "node/d.php"] {
            write(at(name), "1");
        }
        for (target, link) in [
            ("packages/one", "app/vendor/acme/one"),
            ("packages/one", "app/vendor/acme/again"),
            ("app/lib", "app/vendor/acme/within"),
            (".", "app/vendor/acme/above"),
            ("app", "packages/one/app"),
            ("packages", "packages/one/parent"),
            ("node", "app/node_modules/left-out"),
        ] {
            fs::create_dir_all(at(link).parent().unwrap()).unwrap();
            symlink(at(target), at(link)).unwrap();
        }
        let snapshot = Snapshot::take(&[Pattern::new("**/*.php", &at("app")).unwrap()]);
        let mut found: Vec<_> = snapshot.files.keys().map(|file| file.file_name().unwrap()).collect();
        found.sort();
        assert_eq!(found, ["a.php", "b.php", "c.php"], "each once: {:?}", snapshot.files);
        write(at("packages/one/src/c.php"), "22");
        let later = Snapshot::take(&[Pattern::new("**/*.php", &at("app")).unwrap()]);
        assert_eq!(snapshot.changes(&later).len(), 1);
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
