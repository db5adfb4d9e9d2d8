//! `regent php-cli`: PHP's own command line program, of the same PHP that serves the site.

use crate::serve;
use anyhow::{Context, Result};
use regent_server::EngineKind;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What `regent-php` has to be told to become PHP's program: it knows the PHP that it is linked with.
const OPTION: &str = "--cli";

/// Becomes PHP. Returns only when it cannot.
pub fn become_php(arguments: &[OsString]) -> Result<Infallible> {
    let engine = serve::program(EngineKind::Php)?;
    Err(Command::new(&engine).arg(OPTION).args(arguments).exec())
        .with_context(|| format!("{} could not be started", engine.display()))
}
