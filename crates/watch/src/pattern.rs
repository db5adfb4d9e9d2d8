//! Which files are watched.

use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Characters that make a path a pattern.
const WILDCARDS: &[char] = &['*', '?', '[', '{'];
/// Directories that nobody edits by hand, and that are large.
const NEVER: [&str; 3] = [".git", ".idea", "node_modules"];
/// Directories that the application writes to while it runs (Symfony's, Laravel's): who wants them watched names them.
const WRITTEN: [&str; 3] = ["storage", "var", "bootstrap/cache"];

/// A file, a directory with all that is below it, or a path with `*`, `**`, `?`, `[…]` and `{a,b}` in it.
///
/// Directories that an application or its tools write to are left out, unless the pattern names them: `.git`, `.idea` and
/// `node_modules` everywhere, `storage`, `var` and `bootstrap/cache` at the top.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// What is written before the first wildcard.
    base: PathBuf,
    /// What follows, matched against the path from `base` on. `None`: everything.
    rest: Option<GlobMatcher>,
}

/// Why a text is no pattern.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is no pattern: {reason}")]
pub struct PatternError {
    text: String,
    reason: String,
}

impl Pattern {
    /// `directory` is where a relative pattern starts.
    ///
    /// # Errors
    /// When brackets or braces are not closed, and so on.
    pub fn new(text: &str, directory: &Path) -> Result<Self, PatternError> {
        let error = |reason: &dyn std::fmt::Display| PatternError {
            text: text.to_owned(),
            reason: reason.to_string(),
        };
        if text.is_empty() {
            return Err(error(&"it is empty"));
        }
        let literal = text
            .find(WILDCARDS)
            .map_or(text.len(), |wildcard| text[..wildcard].rfind('/').map_or(0, |slash| slash + 1));
        let (before, rest) = text.split_at(literal);
        let base: PathBuf = directory.join(before).components().collect();
        let glob = |rest| GlobBuilder::new(rest).literal_separator(true).build();
        let rest = match rest {
            "" => None,
            rest => Some(glob(rest).map_err(|cause| error(&cause.kind()))?.compile_matcher()),
        };
        Ok(Self { base, rest })
    }

    /// A file, or the directory that all its files are below.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Whether this file is watched.
    pub fn matches(&self, file: &Path) -> bool {
        let Ok(below) = file.strip_prefix(&self.base) else { return false };
        let mut directory = below.parent();
        while let Some(part) = directory.filter(|part| !part.as_os_str().is_empty()) {
            if is_left_out(part) {
                return false;
            }
            directory = part.parent();
        }
        self.rest.as_ref().is_none_or(|rest| rest.is_match(below))
    }

    /// Whether files below this directory may be watched.
    pub fn enters(&self, directory: &Path) -> bool {
        let Ok(below) = directory.strip_prefix(&self.base) else { return false };
        let goes_deeper = self.rest.as_ref().is_none_or(|rest| {
            depth(rest.glob().glob()).is_none_or(|most| below.components().count() < most)
        });
        goes_deeper && !is_left_out(below)
    }
}

/// Levels of directories that a pattern can reach; `None` with `**`.
fn depth(rest: &str) -> Option<usize> {
    // A slash within braces counts too: one level too many does no harm.
    (!rest.contains("**")).then(|| rest.matches('/').count() + 1)
}

/// `below`: from the base on.
fn is_left_out(below: &Path) -> bool {
    let is_never = |name: &OsStr| NEVER.iter().any(|never| name == *never);
    below.file_name().is_some_and(is_never) || WRITTEN.iter().any(|written| below == Path::new(written))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matching<'a>(pattern: &str, files: &[&'a str]) -> Vec<&'a str> {
        let pattern = Pattern::new(pattern, Path::new("/site")).unwrap();
        files.iter().copied().filter(|file| pattern.matches(Path::new(file))).collect()
    }

    #[test]
    fn a_name_alone_is_that_file_or_all_below_that_directory() {
        let files = ["/site/src", "/site/src/a.php", "/site/src/b/c.txt", "/site/srcs/a.php", "/src/a"];
        assert_eq!(matching("src", &files), files[..3]);
        assert_eq!(matching("./src/", &files), files[..3]);
        assert_eq!(matching("/src", &files), ["/src/a"]);
    }

    #[test]
    fn wildcards_are_those_of_shells() {
        let files = ["/site/a.php", "/site/b/a.php", "/site/b/c/a.twig", "/site/b/a.txt", "/site/.env"];
        assert_eq!(matching("*.php", &files), ["/site/a.php"]);
        assert_eq!(matching("**/*.php", &files), ["/site/a.php", "/site/b/a.php"]);
        assert_eq!(
            matching("./**/*.{env,php,twig,yaml,yml}", &files),
            ["/site/a.php", "/site/b/a.php", "/site/b/c/a.twig", "/site/.env"]
        );
        assert_eq!(matching("b/**/*.twig", &files), ["/site/b/c/a.twig"]);
        assert_eq!(matching("b/?.[tp]*", &files), ["/site/b/a.php", "/site/b/a.txt"]);
    }

    #[test]
    fn what_applications_and_tools_write_is_left_out_unless_it_is_named() {
        let files = [
            "/site/var/cache/a.php",
            "/site/storage/framework/a.php",
            "/site/bootstrap/cache/a.php",
            "/site/bootstrap/app.php",
            "/site/src/var/a.php",
            "/site/src/node_modules/a.php",
            "/site/.git/a.php",
        ];
        assert_eq!(matching("**/*.php", &files), ["/site/bootstrap/app.php", "/site/src/var/a.php"]);
        assert_eq!(matching("var/cache/**/*.php", &files), ["/site/var/cache/a.php"]);
        assert_eq!(matching("storage", &files), ["/site/storage/framework/a.php"]);
    }

    #[test]
    fn only_directories_that_can_hold_files_of_the_pattern_are_entered() {
        let enters = |pattern: &str, directory: &str| {
            Pattern::new(pattern, Path::new("/site")).unwrap().enters(Path::new(directory))
        };
        assert!(enters("*.php", "/site") && !enters("*.php", "/site/src"));
        assert!(enters("*/*.php", "/site/src") && !enters("*/*.php", "/site/src/deep"));
        assert!(enters("**/*.php", "/site/src/deep/deeper") && !enters("**/*.php", "/site/var"));
        assert!(enters("src", "/site/src/deep") && !enters("src", "/site/tests"));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for text in ["", "a[", "a{b", "a/**/b{c,{d}"] {
            let error = Pattern::new(text, Path::new("/")).unwrap_err().to_string();
            assert!(error.contains("is no pattern"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in ".{0,40}", file in ".{0,40}") {
            if let Ok(pattern) = Pattern::new(&text, Path::new("/site")) {
                let file = Path::new("/site").join(file);
                let directories = file.parent().into_iter().flat_map(Path::ancestors);
                let mut below = directories.take_while(|above| above.starts_with(pattern.base()));
                let is_found = file == pattern.base() || below.all(|directory| pattern.enters(directory));
                prop_assert!(is_found || !pattern.matches(&file), "a file that is watched can be found");
            }
        }
    }
}
