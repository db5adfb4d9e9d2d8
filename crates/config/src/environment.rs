//! What a configuration may depend on besides its text.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The environment variables and the working directory, passed in so that a configuration can be read for any.
#[derive(Debug, Clone)]
pub struct Environment {
    /// For `{$NAME}` and, where a value is needed at once, `{env.NAME}`.
    pub variables: BTreeMap<String, String>,
    /// What relative paths start from (of worker scripts, for example), but for imports.
    pub current_dir: PathBuf,
}

impl Environment {
    /// This process's. Variables that are not Unicode are left out.
    pub fn of_process() -> std::io::Result<Self> {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Ok(Self { variables, current_dir: std::env::current_dir()? })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    /// The path from the root of the file system, without `.` and, as in a URL, without `..`.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        let mut absolute = PathBuf::new();
        for component in self.current_dir.join(path).components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    absolute.pop();
                }
                _ => absolute.push(component),
            }
        }
        absolute
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute_and_clean() {
        let environment = Environment { variables: BTreeMap::new(), current_dir: "/srv/app".into() };
        for (path, expected) in [("./a/../b", "/srv/app/b"), ("/x/./y", "/x/y"), ("../../../z", "/z")] {
            assert_eq!(environment.absolute(Path::new(path)), Path::new(expected));
        }
    }
}
