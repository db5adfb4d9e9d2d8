//! Which files a text may `import`, and which may be read for its placeholders.

use std::path::{Component, Path, PathBuf};

/// Whose text it is decides it: the operator's may import what the server may read, a stranger's may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imports {
    Anywhere,
    /// Files of this directory, which is absolute, and of those below it, but for hidden ones such as `.env`.
    Within(PathBuf),
    Nowhere,
}

impl Imports {
    /// Whether the file may be read for the text; what is wrong with it otherwise.
    pub fn check(&self, file: &Path) -> Result<(), String> {
        self.check_name(file).and_then(|()| self.check_file(file))
    }

    /// Asked before anything is looked for: the response must not tell which files there are elsewhere.
    pub(crate) fn check_name(&self, path: &Path) -> Result<(), String> {
        let Self::Within(directory) = self else { return self.check_any() };
        let climbs = path.components().any(|component| component == Component::ParentDir);
        let real = directory.canonicalize();
        let mut names = [Some(directory), real.as_ref().ok()].into_iter().flatten();
        let below = names.find_map(|directory| path.strip_prefix(directory).ok());
        match below {
            Some(below) if !climbs && !is_hidden(below) => Ok(()),
            _ => Err(refusal(directory)),
        }
    }

    /// Whether the file lies where its name says: links lead elsewhere.
    pub(crate) fn check_file(&self, path: &Path) -> Result<(), String> {
        let Self::Within(directory) = self else { return self.check_any() };
        let Ok(file) = path.canonicalize() else { return Ok(()) };
        let directory_of_it = directory.canonicalize().unwrap_or_else(|_| directory.clone());
        match file.strip_prefix(&directory_of_it) {
            Ok(below) if !is_hidden(below) => Ok(()),
            _ => Err(refusal(directory)),
        }
    }

    fn check_any(&self) -> Result<(), String> {
        match self {
            Self::Nowhere => Err(
                "this text reaches no files, and imports snippets only: the server was started without a \
                 configuration file, in whose directory they would have to be"
                    .to_owned(),
            ),
            Self::Anywhere | Self::Within(_) => Ok(()),
        }
    }
}

fn refusal(directory: &Path) -> String {
    format!(
        "this text reaches files of the configuration's directory only, {}, written without `..`, and none that is hidden: \
         put the file there, or write what it says in its place",
        directory.display()
    )
}

fn is_hidden(path: &Path) -> bool {
    let mut names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.as_encoded_bytes()),
        _ => None,
    });
    names.any(|name| name.starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, parse};
    use std::fs;

    /// What becomes of `import TARGET` in a text that may import files of `conf`.
    fn import(directory: &Path, target: &str) -> Result<(), String> {
        let imports = Imports::Within(directory.join("conf"));
        let text = format!(":80 {{\n\timport {target}\n}}");
        let source = Source::from_text("body", &text, &directory.join("conf")).with_imports(imports);
        let errors = match parse(source, &|_| None) {
            Ok(parsed) => parsed.errors,
            Err(errors) => errors.0,
        };
        errors.first().map_or(Ok(()), |error| Err(error.to_string()))
    }

    #[test]
    fn a_body_imports_nothing_from_outside_of_the_configurations_directory() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        fs::create_dir_all(directory.join("conf/sites")).unwrap();
        fs::write(directory.join("secret"), "top secret").unwrap();
        fs::write(directory.join("conf/.env"), "PASSWORD=top").unwrap();
        fs::write(directory.join("conf/sites/a.conf"), "a").unwrap();
        fs::write(directory.join("conf/b.conf"), "import ../secret").unwrap();
        std::os::unix::fs::symlink("../secret", directory.join("conf/link")).unwrap();
        for allowed in ["sites/a.conf", "sites/*.conf", "./sites/a.conf", "none/*.conf"] {
            assert_eq!(import(directory, allowed), Ok(()), "{allowed}");
        }
        let absolute = directory.join("secret").display().to_string();
        let absent = directory.join("absent").display().to_string();
        for refused in [
            &absolute,
            &absent,
            "../secret",
            "sites/../b.conf",
            "../*",
            "/etc/*",
            "link",
            "l*",
            ".env",
            ".e*",
            "b.conf",
        ] {
            let error = import(directory, refused).expect_err(refused);
            assert!(error.contains("configuration's directory only"), "{refused}: {error}");
            assert!(!error.contains("top"), "{refused}: {error}");
        }
    }

    #[test]
    fn without_a_configuration_file_there_are_no_files_to_import() {
        let source =
            Source::from_text("body", "import /etc/hostname", Path::new("/")).with_imports(Imports::Nowhere);
        let errors = parse(source, &|_| None).unwrap().errors;
        assert!(errors[0].message.contains("snippets only"), "{errors:?}");
    }
}
