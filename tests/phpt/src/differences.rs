//! The known differences from php-cgi, each with its reason: `differences.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::glob::Glob;
use crate::options::Mode;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Differences {
    #[serde(default)]
    difference: Vec<Entry>,
}

/// Tests that differ for one reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    reason: String,
    /// `classic`, `shuffled`, `worker`; all of them if it is left out.
    #[serde(default)]
    modes: Vec<Mode>,
    /// Paths in PHP's source; `*` stands for any text.
    tests: Vec<String>,
}

impl Differences {
    /// # Errors
    /// When the file cannot be read or is not as described above.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        toml::from_str(&text).with_context(|| format!("reading {}", file.display()))
    }

    /// Why this test differs, if that is known.
    pub fn reason(&self, mode: Mode, test: &Path) -> Option<&str> {
        let fits = |entry: &&Entry| entry.globs().any(|(_, glob)| glob.fits(test));
        self.of(mode).find(fits).map(|entry| entry.reason.as_str())
    }

    /// The entries that name one of the tests that were run and passed, and none that differed.
    pub fn stale(&self, mode: Mode, same: &BTreeSet<PathBuf>, differing: &BTreeSet<PathBuf>) -> Vec<&str> {
        let is_in = |tests: &BTreeSet<PathBuf>, glob: &Glob| tests.iter().any(|test| glob.fits(test));
        let globs = self.of(mode).flat_map(Entry::globs);
        globs.filter(|(_, glob)| is_in(same, glob) && !is_in(differing, glob)).map(|(text, _)| text).collect()
    }

    fn of(&self, mode: Mode) -> impl Iterator<Item = &Entry> {
        let holds = move |entry: &&Entry| entry.modes.is_empty() || entry.modes.contains(&mode);
        self.difference.iter().filter(holds)
    }
}

impl Entry {
    fn globs(&self) -> impl Iterator<Item = (&str, Glob)> {
        self.tests.iter().map(|text| (text.as_str(), Glob::new(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> BTreeSet<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn an_entry_holds_in_its_modes_and_is_stale_when_its_test_passes() {
        let text = "[[difference]]\nreason = 'no terminal'\nmodes = ['worker']\ntests = ['a/*', 'b']\n";
        let differences: Differences = toml::from_str(text).expect("it is as described");
        assert_eq!(differences.reason(Mode::Worker, Path::new("a/x")), Some("no terminal"));
        assert_eq!(differences.reason(Mode::Classic, Path::new("a/x")), None);
        assert_eq!(differences.reason(Mode::Worker, Path::new("c")), None);
        let stale = differences.stale(Mode::Worker, &paths(&["a/x", "a/y", "b"]), &paths(&["a/z"]));
        assert_eq!(stale, ["b"]);
        assert!(differences.stale(Mode::Classic, &paths(&["b"]), &paths(&[])).is_empty());
    }
}
