//! `regent bench`: the benchmark suite is a program of its own, which this one gives way to.

use anyhow::{Context, Result, bail};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes `regent-bench`, which lies beside this program. Returns only when it cannot.
pub fn become_bench(arguments: &[OsString]) -> Result<Infallible> {
    let program = std::env::current_exe().context("this program's own path is unknown")?;
    let bench = program.with_file_name("regent-bench");
    if !bench.is_file() {
        bail!(
            "{} does not exist; in a checkout of Regent measure with `make bench`, which builds it",
            bench.display()
        );
    }
    Err(Command::new(&bench).args(arguments).exec())
        .with_context(|| format!("{} could not be started", bench.display()))
}
