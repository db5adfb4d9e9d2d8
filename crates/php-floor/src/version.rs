//! Versions of PHP, as PHP and packages of distributions write them.

/// The number of a release of PHP. A release candidate, and a build between releases, comes before the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    major: u16,
    minor: u16,
    patch: u16,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    BeforeRelease,
    Release,
}

impl Version {
    /// Of `8.4.28`, `8.5.0RC3`, `8.6.0-dev` or a package such as `8.2.36-1~deb12u1`. `None`: it is none of these.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // An epoch of Debian's: `2:8.2`.
        let text = text.split_once(':').map_or(text, |(_, rest)| rest);
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let numbers: Vec<u16> = numbers.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
        let &[major, minor, patch] = numbers.as_slice() else { return None };
        Some(Self { major, minor, patch, stage: Stage::of(rest) })
    }

    pub fn branch(self) -> (u16, u16) {
        (self.major, self.minor)
    }
}

impl Stage {
    /// Of what follows the numbers: `RC1`, `~rc1-2`, `alpha3`, `-dev`, or the revision of a package.
    fn of(rest: &str) -> Self {
        let word = rest.trim_start_matches(['-', '~', '+', '.']).to_ascii_lowercase();
        if ["alpha", "beta", "rc", "dev"].iter().any(|stage| word.starts_with(stage)) {
            Self::BeforeRelease
        } else {
            Self::Release
        }
    }
}

/// Of `8.4`.
pub(crate) fn branch(text: &str) -> Option<(u16, u16)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_from_what_comes_before_them() {
        let release = Version::parse("8.4.28").unwrap();
        for same in [
            "8.4.28-1",
            "8.4.28-1~deb13u1",
            "8.4.28+dfsg-1",
            "2:8.4.28-1",
            "8.4.28-1+ubuntu24.04.1+deb.sury.org+1",
        ] {
            assert_eq!(Version::parse(same), Some(release), "{same}");
        }
        for earlier in
            ["8.4.28RC1", "8.4.28~rc1-1", "8.4.28-dev", "8.4.28alpha2", "8.4.28beta1", "8.4.27", "8.4.9"]
        {
            assert!(Version::parse(earlier).unwrap() < release, "{earlier}");
        }
    }

    #[test]
    fn what_is_no_version_is_none() {
        for text in ["", "played", "8.4", "8.4.x", "8..4", "v8.4.28", "8.4.28.1", "8.99999.1"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
