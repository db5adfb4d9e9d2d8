//! The table: which PHP is the lowest without known critical holes.

use crate::FloorError;
use crate::version::{self, Version};
use serde::Deserialize;
use std::time::{Duration, SystemTime};
use time::macros::format_description;
use time::{Date, OffsetDateTime};

/// The lines that are built in, and that `tools/php-floor.sh` reads.
const BUILT_IN: &str = include_str!("../floor.txt");
/// After this time the table may miss what was found since.
const FRESH: Duration = Duration::from_secs(90 * 24 * 3600);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    date: Date,
    branches: Vec<Branch>,
    packages: Vec<PackageFloor>,
}

/// The line of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    number: (u16, u16),
    lowest: Version,
    pub floor: Floor,
}

/// What is said of the lowest version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    /// The lowest version, such as `8.4.28`.
    pub version: String,
    /// Names of the holes that older ones have. May be empty.
    pub holes: Vec<String>,
    /// Where it says so. May be empty.
    pub source: String,
}

/// Packages of a distribution that mends an older PHP and leaves its number.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageFloor {
    /// With what the versions of these packages begin.
    pub begins: String,
    /// The lowest of them with all of the fixes.
    pub floor: String,
    #[serde(default)]
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    date: String,
    branches: Vec<BranchLine>,
    #[serde(default)]
    packages: Vec<PackageFloor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BranchLine {
    branch: String,
    floor: String,
    #[serde(default)]
    holes: Vec<String>,
    #[serde(default)]
    source: String,
}

impl Table {
    /// That of this build of Regent.
    pub fn built_in() -> Self {
        Self::from_lines(BUILT_IN).expect("invariant: a test reads the table that is built in")
    }

    /// A table as JSON: `{"date", "branches": [{"branch", "floor", "holes", "source"}], "packages": [{"begins", "floor", "source"}]}`.
    ///
    /// # Errors
    /// If it is something else, or a version or the date is none.
    pub fn from_json(text: &str) -> Result<Self, FloorError> {
        Self::new(serde_json::from_str(text)?)
    }

    /// The day on which it was last compared with PHP's changelogs.
    pub fn date(&self) -> String {
        self.date.to_string()
    }

    /// Whether it is so old that it may miss what was found since.
    pub fn is_outdated(&self, now: SystemTime) -> bool {
        OffsetDateTime::from(now) - self.date.midnight().assume_utc() > FRESH
    }

    pub(crate) fn branch(&self, number: (u16, u16)) -> Option<&Branch> {
        self.branches.iter().find(|branch| branch.number == number)
    }

    /// The line of the oldest branch.
    pub(crate) fn oldest(&self) -> Option<&Branch> {
        self.branches.iter().min_by_key(|branch| branch.number)
    }

    pub(crate) fn package(&self, version: &str) -> Option<&PackageFloor> {
        self.packages.iter().find(|line| version.starts_with(&line.begins))
    }

    fn from_lines(text: &str) -> Result<Self, FloorError> {
        let mut file = TableFile { date: String::new(), branches: Vec::new(), packages: Vec::new() };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match *line.split_whitespace().collect::<Vec<_>>() {
                ["date", date] => file.date = date.to_owned(),
                ["branch", branch, floor, holes, source] => file.branches.push(BranchLine {
                    branch: branch.to_owned(),
                    floor: floor.to_owned(),
                    holes: holes.split(',').map(str::to_owned).collect(),
                    source: source.to_owned(),
                }),
                ["package", begins, floor, source] => file.packages.push(PackageFloor {
                    begins: begins.to_owned(),
                    floor: floor.to_owned(),
                    source: source.to_owned(),
                }),
                _ => return Err(FloorError::Line(line.to_owned())),
            }
        }
        Self::new(file)
    }

    fn new(file: TableFile) -> Result<Self, FloorError> {
        let TableFile { date, branches, packages } = file;
        let day = Date::parse(&date, format_description!("[year]-[month]-[day]"));
        let date = day.map_err(|_| FloorError::Date(date))?;
        if let Some(wrong) = packages.iter().find(|line| Version::parse(&line.floor).is_none()) {
            return Err(FloorError::Version(wrong.floor.clone()));
        }
        let branches = branches.into_iter().map(Branch::new).collect::<Result<_, _>>()?;
        Ok(Self { date, branches, packages })
    }
}

impl Branch {
    fn new(line: BranchLine) -> Result<Self, FloorError> {
        let BranchLine { branch, floor, holes, source } = line;
        let number = version::branch(&branch).ok_or_else(|| FloorError::Branch(branch.clone()))?;
        let lowest = Version::parse(&floor).ok_or_else(|| FloorError::Version(floor.clone()))?;
        if lowest.branch() != number {
            return Err(FloorError::OtherBranch { branch, floor });
        }
        Ok(Self { number, lowest, floor: Floor { version: floor, holes, source } })
    }

    pub(crate) fn number(&self) -> (u16, u16) {
        self.number
    }

    pub(crate) fn lowest(&self) -> Version {
        self.lowest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_that_is_built_in_has_a_line_for_each_branch() {
        let table = Table::built_in();
        for number in [(8, 2), (8, 3), (8, 4), (8, 5)] {
            let floor = &table.branch(number).expect("the branch has a line").floor;
            assert!(!floor.holes.is_empty() && floor.source.starts_with("https://"), "{floor:?}");
        }
    }

    #[test]
    fn a_table_is_outdated_after_ninety_days() {
        let table = Table::from_json(r#"{"date": "1970-01-11", "branches": []}"#).unwrap();
        let days = |days: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(days * 24 * 3600);
        assert!(!table.is_outdated(days(0)));
        assert!(!table.is_outdated(days(100)));
        assert!(table.is_outdated(days(101)));
        assert_eq!(table.date(), "1970-01-11");
    }

    #[test]
    fn what_is_wrong_with_a_table_is_named() {
        let table = |branch: &str, floor: &str| {
            format!(r#"{{"date": "2026-11-27", "branches": [{{"branch": "{branch}", "floor": "{floor}"}}]}}"#)
        };
        for (text, expected) in [
            ("[]".to_owned(), "it is no table"),
            (r#"{"date": "2026-11-27", "branches": [], "floors": []}"#.to_owned(), "unknown field `floors`"),
            (r#"{"date": "yesterday", "branches": []}"#.to_owned(), "`yesterday` is no day"),
            (table("8", "8.4.28"), "`8` is no branch"),
            (table("8.4", "8.4"), "`8.4` is no version"),
            (table("8.4", "8.5.13"), "8.5.13 is of another branch than 8.4"),
        ] {
            let error = Table::from_json(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Table::from_lines("branch 8.4").unwrap_err().to_string().contains("`branch 8.4`"));
    }
}
