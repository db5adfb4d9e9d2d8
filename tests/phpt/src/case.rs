//! A test that is to be run, and why some cannot be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::phpt::Phpt;
use crate::place::Place;
use crate::settings::{Places, Settings};
use crate::turns;

pub struct Case {
    /// In the tree.
    pub path: PathBuf,
    pub phpt: Phpt,
}

/// Tests to be run on one server.
pub struct Group {
    pub settings: Settings,
    pub cases: Vec<Case>,
}

/// Why a test was not run.
pub type Reason = String;

/// Reads the tests and puts those with the same settings together; the rest cannot be run by a server.
pub fn groups(
    place: &Place,
    tests: Vec<PathBuf>,
    extensions: &[String],
) -> (Vec<Group>, Vec<(PathBuf, Reason)>) {
    let mut groups = BTreeMap::<Settings, Vec<Case>>::new();
    let mut skipped = Vec::new();
    for path in tests {
        match Phpt::read(&place.tree().join(&path)) {
            Err(error) => skipped.push((path, format!("{error:#}"))),
            Ok(phpt) => match impediment(&phpt, extensions) {
                Some(reason) => skipped.push((path, reason)),
                None => {
                    let case = Case { path, phpt };
                    groups.entry(case.settings(place)).or_default().push(case);
                }
            },
        }
    }
    let groups = groups.into_iter().map(|(settings, cases)| Group { settings, cases });
    (groups.collect(), skipped)
}

impl Case {
    /// The script, beside the test.
    pub fn script(&self) -> PathBuf {
        self.path.with_extension("php")
    }

    pub fn directory(&self) -> &Path {
        self.path.parent().expect("a test lies in a directory")
    }

    /// What this test cannot run beside.
    pub fn conflicts(&self, place: &Place) -> BTreeSet<String> {
        let of_directory = fs::read_to_string(place.tree().join(self.directory()).join("CONFLICTS"));
        let mut names = turns::names(&self.phpt.text("CONFLICTS"));
        names.extend(turns::names(&of_directory.unwrap_or_default()));
        names
    }

    pub fn with_places<T>(&self, place: &Place, use_places: impl FnOnce(&Places<'_>) -> T) -> T {
        let test_directory = place.tree().join(self.directory());
        use_places(&Places { test_directory: &test_directory, temporary: &place.temporary() })
    }

    fn settings(&self, place: &Place) -> Settings {
        self.with_places(place, |places| Settings::of(&self.phpt, places))
    }
}

fn impediment(test: &Phpt, extensions: &[String]) -> Option<Reason> {
    let missing = |text: &str| {
        text.split_whitespace().find(|name| !extensions.contains(&name.to_lowercase())).map(str::to_owned)
    };
    if let Some(name) = missing(&test.text("EXTENSIONS")) {
        return Some(format!("this PHP has no {name}"));
    }
    [
        ("ARGS", "it needs a command line"),
        ("STDIN", "it needs standard input"),
        ("PHPDBG", "it needs the debugger"),
        ("GZIP_POST", "this runner compresses no bodies"),
        ("DEFLATE_POST", "this runner compresses no bodies"),
        ("REDIRECTTEST", "it stands for other tests"),
    ]
    .into_iter()
    .find(|(section, _)| test.has(section))
    .map(|(_, reason)| reason.to_owned())
}
