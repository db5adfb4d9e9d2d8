//! Patterns of paths in which `*` stands for any text, also with slashes.

use std::path::Path;

#[derive(Clone, Debug)]
pub struct Glob(Vec<String>);

impl Glob {
    pub fn new(text: &str) -> Self {
        Self(text.split('*').map(str::to_owned).collect())
    }

    pub fn fits(&self, path: &Path) -> bool {
        let [first, middle @ .., last] = self.0.as_slice() else {
            return path == Path::new(&self.0[0]);
        };
        let path = path.to_string_lossy();
        let Some(rest) = path.strip_prefix(first.as_str()).and_then(|rest| rest.strip_suffix(last.as_str()))
        else {
            return false;
        };
        let behind =
            |rest: &str, part: &String| rest.find(part.as_str()).map(|at| rest[at + part.len()..].to_owned());
        middle.iter().try_fold(rest.to_owned(), |rest, part| behind(&rest, part)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let fits = |glob: &str, path: &str| Glob::new(glob).fits(Path::new(path));
        assert!(fits("a/*.phpt", "a/b/c.phpt") && fits("*", "a") && fits("a/b", "a/b"));
        assert!(fits("a*b*c*", "a/xb/yc") && fits("*b*", "abc"));
        assert!(!fits("a/*.phpt", "b/a/c.phpt") && !fits("a", "a/b") && !fits("a*c*b", "a/b"));
    }
}
