//! `run --pidfile FILE`.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Removed when dropped, unless another process has written it since.
pub struct PidFile {
    path: PathBuf,
    text: String,
}

impl PidFile {
    /// # Errors
    /// When it cannot be written.
    pub fn write(path: &Path) -> Result<Self> {
        let text = format!("{}\n", std::process::id());
        fs::write(path, &text).with_context(|| format!("writing the process ID to {}", path.display()))?;
        Ok(Self { path: path.to_owned(), text })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let is_ours = fs::read_to_string(&self.path).is_ok_and(|text| text == self.text);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, "the file {} was not removed", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_goes_with_the_server_unless_another_has_taken_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("regent.pid");
        let file = PidFile::write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        drop(file);
        assert!(!path.exists());
        let file = PidFile::write(&path).unwrap();
        fs::write(&path, "1\n").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let Err(error) = PidFile::write(Path::new("/nonexistent/regent.pid")) else {
            panic!("it was written")
        };
        assert!(error.to_string().contains("/nonexistent/regent.pid"), "{error}");
    }
}
