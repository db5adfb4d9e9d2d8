//! `regent import`: the configuration of another server as a Caddyfile.

use crate::arguments::{Import, ImportFile, ImportFrom};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes the Caddyfile, and says on the standard error what it does not say.
pub fn import(options: &Import) -> Result<()> {
    let ImportFrom::Nginx(ImportFile { file, output }) = &options.from;
    let imported = regent_import::nginx(file)?;
    match output {
        Some(output) => write_new(output, &imported.caddyfile)?,
        None => print!("{}", imported.caddyfile),
    }
    if imported.left_out.is_empty() {
        return Ok(());
    }
    eprintln!("Not translated, and to be looked at:");
    for left in &imported.left_out {
        eprintln!("  {}: {}: {}", left.place, left.text, left.why);
    }
    Ok(())
}

/// A file that is there already may be somebody's work.
fn write_new(path: &Path, text: &str) -> Result<()> {
    match File::create_new(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes()).with_context(|| format!("writing {}", path.display()))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            anyhow::bail!("{} is there already: name another file, or remove it", path.display())
        }
        Err(error) => Err(error).with_context(|| format!("writing {}", path.display())),
    }
}
