//! What the table says of a PHP.

use crate::Package;
use crate::debian;
use crate::table::{Floor, Table};
use crate::version::Version;
use std::cmp::Ordering;

/// A PHP that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    /// As PHP's `PHP_VERSION`.
    pub version: String,
    /// The package of the distribution that it is from. `None`: it is from none, or nothing tells.
    pub package: Option<Package>,
}

/// Whether a PHP is known to have critical holes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It has the fixes of all that the table knows.
    Sound,
    /// It has not.
    Below(Floor),
    /// By its number it has not. Its distribution mends PHP and leaves the number, and the table has no line for its packages.
    Unproven(Floor),
    /// The table knows nothing of its branch, which is newer than all of the table, or of such a version.
    Unlisted,
}

impl Verdict {
    pub fn is_below(&self) -> bool {
        matches!(self, Self::Below(_))
    }

    /// The lowest version without known critical holes, where the PHP has less or may have less.
    pub fn floor(&self) -> Option<&Floor> {
        match self {
            Self::Below(floor) | Self::Unproven(floor) => Some(floor),
            Self::Sound | Self::Unlisted => None,
        }
    }

    /// A word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Below(_) => "below",
            Self::Unproven(_) => "unproven",
            Self::Unlisted => "unlisted",
        }
    }
}

impl Table {
    pub fn judge(&self, build: &Build) -> Verdict {
        let Some(own) = Version::parse(&build.version) else { return Verdict::Unlisted };
        // What PHP says has the revision of its package on some distributions.
        let package = build.package.as_ref().map(|package| package.version.as_str());
        let full =
            package.filter(|text| Version::parse(text).is_some_and(|found| found.branch() == own.branch()));
        let full = full.unwrap_or(&build.version);
        let version = Version::parse(full).unwrap_or(own);
        let Some(branch) = self.branch(version.branch()) else {
            return self.judge_without_line(version);
        };
        if version >= branch.lowest() {
            return Verdict::Sound;
        }
        match self.package(full) {
            Some(line) if debian::compare(full, &line.floor) != Ordering::Less => Verdict::Sound,
            None if leaves_numbers(full) => Verdict::Unproven(branch.floor.clone()),
            Some(_) | None => Verdict::Below(branch.floor.clone()),
        }
    }

    /// Whoever mends PHP no longer mends what is older than the oldest branch.
    fn judge_without_line(&self, version: Version) -> Verdict {
        match self.oldest() {
            Some(oldest) if version.branch() < oldest.number() => Verdict::Below(oldest.floor.clone()),
            _ => Verdict::Unlisted,
        }
    }
}

/// Whether a package is from a distribution that mends PHP and leaves its number, as Ubuntu does: `8.3.6-0ubuntu0.24.04.6`.
/// Sury's packages for Ubuntu have PHP's numbers.
fn leaves_numbers(package: &str) -> bool {
    package.contains("ubuntu") && !package.contains("deb.sury.org")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"{
        "date": "2026-11-27",
        "branches": [
            {"branch": "8.2", "floor": "8.2.36"}, {"branch": "8.3", "floor": "8.3.37"},
            {"branch": "8.4", "floor": "8.4.28"}, {"branch": "8.5", "floor": "8.5.13"}
        ],
        "packages": [{"begins": "8.3.6-0ubuntu0.24.04.", "floor": "8.3.6-0ubuntu0.24.04.9"}]
    }"#;

    fn of(version: &str, package: Option<&str>) -> &'static str {
        let package =
            package.map(|version| Package { name: "libphp-embed".to_owned(), version: version.to_owned() });
        Table::from_json(TABLE).unwrap().judge(&Build { version: version.to_owned(), package }).name()
    }

    #[test]
    fn versions_of_php_net_and_what_comes_before_releases() {
        for (version, expected) in [
            ("8.2.36", "sound"),
            ("8.2.35", "below"),
            ("8.3.37", "sound"),
            ("8.3.6", "below"),
            ("8.4.28", "sound"),
            ("8.4.100", "sound"),
            ("8.4.24", "below"),
            ("8.4.28RC1", "below"),
            ("8.4.28-dev", "below"),
            ("8.4.29RC1", "sound"),
            ("8.4.29-dev", "sound"),
            ("8.5.13", "sound"),
            ("8.5.0alpha4", "below"),
            ("8.6.0RC3", "unlisted"),
            ("8.6.0-dev", "unlisted"),
            ("9.0.0", "unlisted"),
            ("8.1.34", "below"),
            ("7.4.33", "below"),
            ("played", "unlisted"),
        ] {
            assert_eq!(of(version, None), expected, "{version}");
        }
    }

    #[test]
    fn packages_of_debian_ubuntu_and_sury() {
        for (version, package, expected) in [
            ("8.2.36", "8.2.36-1~deb12u1", "sound"),
            ("8.2.35", "8.2.35-1~deb12u1", "below"),
            ("8.2.36", "8.2.36~rc1-1", "below"),
            ("8.4.28", "8.4.28-1~deb13u1", "sound"),
            ("8.4.21", "8.4.21-1~deb13u1", "below"),
            ("8.5.13", "8.5.13-1", "sound"),
            ("8.5.0", "8.5.0~rc3-1", "below"),
            ("8.3.6", "8.3.6-0ubuntu0.24.04.9", "sound"),
            ("8.3.6", "8.3.6-0ubuntu0.24.04.10", "sound"),
            ("8.3.6", "8.3.6-0ubuntu0.24.04.8", "below"),
            ("8.4.11", "8.4.11-1ubuntu1.2", "unproven"),
            ("8.4.28", "8.4.28-1ubuntu1", "sound"),
            ("8.3.15", "8.3.15-1+ubuntu24.04.1+deb.sury.org+1", "below"),
            ("8.3.37", "8.3.37-1+ubuntu24.04.1+deb.sury.org+1", "sound"),
            ("8.2.30", "8.2.30-1+0~20251219.96+debian12~1.gbp0a1b2c", "below"),
            ("8.2.36", "8.2.36-1+0~20261119.100+debian12~1.gbp0a1b2c", "sound"),
        ] {
            assert_eq!(of(version, Some(package)), expected, "{package}");
        }
    }

    #[test]
    fn the_revision_in_what_php_says_is_that_of_its_package() {
        assert_eq!(of("8.3.6-0ubuntu0.24.04.9", None), "sound");
        assert_eq!(of("8.3.6-0ubuntu0.24.04.1", None), "below");
        assert_eq!(of("8.4.11-1ubuntu1.2", None), "unproven");
    }

    #[test]
    fn a_package_with_a_number_of_its_own_says_nothing_of_php() {
        assert_eq!(of("8.4.24", Some("0.1.0-1")), "below");
        assert_eq!(of("8.4.28", Some("0.1.0-1")), "sound");
    }
}
