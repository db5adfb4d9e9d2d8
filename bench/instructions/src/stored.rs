//! The stored figures, for each build that they were counted with.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::build::Build;
use crate::scenario::Figure;

const HEADER: &str = "\
# Instructions of a request, counted by `make instructions` and stored by `make instructions-update`.
# Each build has figures of its own: another compiler, PHP or libc makes other code. A run whose build has none here
# compares nothing, and says so. See bench/instructions/README.md.
#
# tolerance_percent: repeated runs of one build on an idle machine differ by up to 2 %, on a busy one or on another
# machine of the same kind by 5 %, and a change of unrelated code moves what is inlined where.

";

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// Differences up to this many per cent of the stored figure are none.
    pub tolerance_percent: f64,
    #[serde(default)]
    builds: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    build: Build,
    /// By [`Figure::key`].
    instructions: BTreeMap<String, u64>,
}

impl Stored {
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} is not what was stored", path.display()))
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        let text = format!("{HEADER}{}", toml::to_string(self)?);
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// The stored number of instructions.
    pub fn get(&self, build: &Build, figure: Figure) -> Option<u64> {
        self.entry(build)?.instructions.get(&figure.key()).copied()
    }

    /// The builds that there are figures of.
    pub fn builds(&self) -> impl Iterator<Item = &Build> {
        self.builds.iter().map(|entry| &entry.build)
    }

    /// Replaces these figures of a build, and leaves its others.
    pub fn store(&mut self, build: Build, figures: BTreeMap<Figure, u64>) {
        let figures = figures.into_iter().map(|(figure, count)| (figure.key(), count));
        match self.builds.iter_mut().find(|entry| entry.build == build) {
            Some(entry) => entry.instructions.extend(figures),
            None => self.builds.push(Entry { build, instructions: figures.collect() }),
        }
    }

    fn entry(&self, build: &Build) -> Option<&Entry> {
        self.builds.iter().find(|entry| entry.build == *build)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::scenario::{Process, Scenario};

    pub fn build(rustc: &str) -> Build {
        let text = |text: &str| text.to_owned();
        Build {
            rustc: text(rustc),
            profile: text("release"),
            cpu: text("x86_64 avx2"),
            system: text("debian 12"),
            php: text("8.4.1"),
        }
    }

    pub fn empty() -> Stored {
        Stored { tolerance_percent: 2.0, builds: Vec::new() }
    }

    const FILE: Figure = Figure { process: Process::Server, scenario: Scenario::File };
    const CLASSIC: Figure = Figure { process: Process::Engine, scenario: Scenario::Classic };

    #[test]
    fn what_was_stored_is_read_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("figures.toml");
        let mut stored = empty();
        stored.store(build("1.90.0"), BTreeMap::from([(FILE, 1), (CLASSIC, 2)]));
        stored.store(build("1.91.0"), BTreeMap::from([(FILE, 3)]));
        stored.store(build("1.90.0"), BTreeMap::from([(FILE, 4)]));
        stored.write(&path).expect("it can be written");

        let read = Stored::read(&path).expect("it is what was stored");
        let get = |rustc, figure| read.get(&build(rustc), figure);
        assert_eq!(read.builds().count(), 2);
        assert_eq!((get("1.90.0", FILE), get("1.90.0", CLASSIC)), (Some(4), Some(2)));
        assert_eq!((get("1.91.0", FILE), get("1.91.0", CLASSIC)), (Some(3), None));
        assert_eq!(get("1.92.0", FILE), None);
    }

    #[test]
    fn the_file_in_the_repository_is_well_formed() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_extension("toml");
        let stored = Stored::read(&path).expect("it is what was stored");
        assert!(stored.tolerance_percent > 0.0 && stored.builds().count() > 0);
    }
}
