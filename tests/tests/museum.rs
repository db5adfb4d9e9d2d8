//! Every exhibit of docs/museum.md names tests, and they exist.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_tests_that_the_museum_names_exist() {
    let page = fs::read_to_string(repository().join("docs/museum.md")).expect("the page is there");
    let existing = test_names();
    let mut named = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what ")) {
        let tests = tests_of(row);
        assert!(!tests.is_empty(), "an exhibit without a test: {row}");
        for test in tests {
            assert!(existing.contains(test), "no test is called {test}: {row}");
            named += 1;
        }
    }
    assert!(named >= 30, "only {named} tests are named");
}

/// What stands in backquotes in the last cell.
fn tests_of(row: &str) -> Vec<&str> {
    let last = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
    last.split('`').skip(1).step_by(2).collect()
}

/// The names of all test functions of the tree.
fn test_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for directory in ["tests/tests", "tests/rig/tests", "crates"] {
        collect(&repository().join(directory), &mut names);
    }
    names
}

fn collect(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).expect("the tree can be read") {
        let path = entry.expect("the directory can be read to its end").path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source is text");
            names.extend(test_functions(&text).map(str::to_owned));
        }
    }
}

/// A function below an attribute `#[test]` or `#[tokio::test]`.
fn test_functions(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.clone().zip(lines.skip(1)).filter_map(|(attribute, function)| {
        let is_test = attribute == "#[test]" || attribute.starts_with("#[tokio::test");
        let name = function.trim_start_matches("async ").strip_prefix("fn ")?.split('(').next()?;
        is_test.then_some(name)
    })
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is within the repository").to_owned()
}
