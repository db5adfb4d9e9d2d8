//! The configuration that was loaded last by the admin API, for `run --resume`.

use anyhow::{Context, Result};
use regent_server::{Language, Place};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

/// Where a configuration is that the command line does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Saved {
    /// Its text.
    Caddyfile(String),
    Json(String),
    File(PathBuf),
    /// A file whose name does not say what it is written in.
    FileIn(Language, PathBuf),
}

/// The file that it is kept in.
#[derive(Debug)]
pub struct Autosave(PathBuf);

impl Saved {
    /// `None`: the command line says it.
    pub fn of_place(place: Place) -> Option<Self> {
        match place {
            Place::Own => None,
            Place::Text(Language::Caddyfile, text) => Some(Self::Caddyfile(text)),
            Place::Text(Language::Json, text) => Some(Self::Json(text)),
            Place::File(path, None) => Some(Self::File(path)),
            Place::File(path, Some(language)) => Some(Self::FileIn(language, path)),
        }
    }

    pub fn into_place(self) -> Place {
        match self {
            Self::Caddyfile(text) => Place::Text(Language::Caddyfile, text),
            Self::Json(text) => Place::Text(Language::Json, text),
            Self::File(path) => Place::File(path, None),
            Self::FileIn(language, path) => Place::File(path, Some(language)),
        }
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("invariant: a path that was text once is text again")
    }

    pub fn of_text(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("this is no configuration that was kept")
    }
}

impl Autosave {
    /// In `$XDG_CONFIG_HOME`, or in `~/.config`, as Caddy's; `None`: the user has no such directory.
    pub fn of_user() -> Option<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))?;
        Some(Self(base.join("regent/autosave.json")))
    }

    /// What is kept; `None`: nothing.
    pub fn read(&self) -> Result<Option<Saved>> {
        let reading = || format!("reading {}", self.0.display());
        match fs::read_to_string(&self.0) {
            Ok(text) => Saved::of_text(&text).with_context(reading).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(reading),
        }
    }

    /// Keeps this instead; `None`: nothing. What goes wrong is for the log: the server goes on with it.
    pub fn replace(&self, saved: Option<&Saved>) {
        let replaced = match saved {
            Some(saved) => self.write(saved),
            None => fs::remove_file(&self.0),
        };
        match replaced {
            Err(error) if error.kind() != ErrorKind::NotFound || saved.is_some() => {
                tracing::warn!(%error, "the configuration is not kept for `run --resume` in {}", self.0.display());
            }
            _ => {}
        }
    }

    /// For the user's own eyes: there may be passwords in it.
    fn write(&self, saved: &Saved) -> io::Result<()> {
        let directory = self.0.parent().ok_or(ErrorKind::NotFound)?;
        fs::create_dir_all(directory)?;
        // Nobody but the user can open one of these.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(saved.to_text().as_bytes())?;
        file.persist(&self.0)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_kept_is_read_again_until_nothing_is() {
        let directory = tempfile::tempdir().unwrap();
        let autosave = Autosave(directory.path().join("regent/autosave.json"));
        assert_eq!(autosave.read().unwrap(), None);
        for saved in [
            Saved::Caddyfile(":80 {\n}\n".into()),
            Saved::Json("{\n  \"apps\": {}\n}".into()),
            Saved::File("/etc/a \"b\"".into()),
            Saved::FileIn(Language::Json, "/etc/a".into()),
        ] {
            assert_eq!(Saved::of_place(saved.clone().into_place()).as_ref(), Some(&saved));
            autosave.replace(Some(&saved));
            assert_eq!(autosave.read().unwrap(), Some(saved));
        }
        assert_eq!(fs::metadata(&autosave.0).unwrap().permissions().mode() & 0o777, 0o600);
        autosave.replace(None);
        assert_eq!(autosave.read().unwrap(), None);
        fs::write(&autosave.0, "{").unwrap();
        assert!(format!("{:#}", autosave.read().unwrap_err()).contains("autosave.json"));
    }
}
