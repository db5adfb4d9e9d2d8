//! The applications come by a tool and with fixtures of Regent's sources, so this suite needs a checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// A directory with Regent's sources.
#[derive(Debug)]
pub struct Checkout(PathBuf);

impl Checkout {
    /// The given one, or that of which this program was built.
    pub fn find(given: Option<&Path>) -> Result<Self> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"));
        let directory = given.unwrap_or(built);
        ensure!(
            directory.join("tools/fetch-app").is_file(),
            "{} is no checkout of Regent, whose tools/fetch-app brings the applications: name one with --checkout",
            directory.display()
        );
        Ok(Self(directory.to_owned()))
    }

    /// The directory with an application's packages unpacked side by side (`usr/share/…`), which is read only; fetched on
    /// first use.
    pub fn packages_of(&self, application: &str) -> Result<PathBuf> {
        let tool = self.0.join("tools/fetch-app");
        let output = Command::new(&tool)
            .arg(application)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("{} could not be run", tool.display()))?;
        ensure!(output.status.success(), "{} {application} failed: see its message above", tool.display());
        Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))
    }

    /// An application that the tests bring along.
    pub fn fixture(&self, name: &str) -> PathBuf {
        self.0.join("tests/fixtures").join(name)
    }
}

/// Copies a file or directory out of unpacked packages, what links lead to in the place of the links. They lead to other
/// packages, also by absolute paths; links to what the packages do not have are left out.
pub fn copy(packages: &Path, from: &Path, to: &Path) -> Result<()> {
    let kind = fs::symlink_metadata(from).with_context(|| format!("{} is missing", from.display()))?;
    if kind.is_symlink() {
        let target = fs::read_link(from)?;
        let target = match target.strip_prefix("/") {
            Ok(absolute) => packages.join(absolute),
            Err(_) => from.parent().unwrap_or(packages).join(target),
        };
        if target.exists() { copy(packages, &target, to) } else { Ok(()) }
    } else if kind.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(packages, &entry.path(), &to.join(entry.file_name()))?;
        }
        Ok(())
    } else {
        fs::copy(from, to).with_context(|| format!("{} cannot be copied", from.display()))?;
        Ok(())
    }
}

/// Replaces a text in every PHP file below `directory`; files that are not UTF-8 name no paths.
pub fn replace_in_php_files(directory: &Path, from: &str, to: &str) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            replace_in_php_files(&path, from, to)?;
        } else if path.extension().is_some_and(|extension| extension == "php")
            && let Ok(text) = fs::read_to_string(&path)
            && text.contains(from)
        {
            fs::write(&path, text.replace(from, to))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_links_lead_to_is_copied() {
        let directory = tempfile::tempdir().expect("a directory");
        let packages = directory.path().join("packages");
        fs::create_dir_all(packages.join("etc")).expect("made");
        fs::create_dir_all(packages.join("usr/app")).expect("made");
        fs::write(packages.join("etc/a.php"), "<?php // '/usr/app'").expect("written");
        symlink("/etc/a.php", packages.join("usr/app/absolute.php")).expect("made");
        symlink("../../etc/a.php", packages.join("usr/app/relative.php")).expect("made");
        symlink("/etc/none.php", packages.join("usr/app/none.php")).expect("made");
        let copied = directory.path().join("copy");
        copy(&packages, &packages.join("usr/app"), &copied).expect("copied");
        replace_in_php_files(&copied, "'/usr/", "'/srv/").expect("replaced");
        for name in ["absolute.php", "relative.php"] {
            let text = fs::read_to_string(copied.join(name)).expect("copied");
            assert_eq!(text, "<?php // '/srv/app'");
        }
        assert!(!copied.join("none.php").exists());
        let original = fs::read_to_string(packages.join("etc/a.php")).expect("there");
        assert!(original.contains("/usr/app"), "the packages stay as they are");
    }

    #[test]
    fn a_directory_without_the_tool_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = Checkout::find(Some(directory.path())).expect_err("it has no tool").to_string();
        assert!(error.contains("--checkout"), "{error}");
        assert!(Checkout::find(None).is_ok(), "the tests run in a checkout");
    }
}
