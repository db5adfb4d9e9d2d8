//! The native module that is measured: Regent's own example, compiled anew in each run's work directory, so that
//! neither the source tree nor a library of another compiler is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::programs::{COMPILER, COMPILER_PACKAGE, find, version_line};
use crate::interrupt::Interrupt;
use crate::site::Site;
use crate::supervise::run_to_end;

/// The module and what it includes.
const SOURCES: [(&str, &str); 3] = [
    ("data.cpp", include_str!("../../../examples/native/cpp/data.cpp")),
    ("regent.hpp", include_str!("../../../include/regent.hpp")),
    ("regent.h", include_str!("../../../include/regent.h")),
];

/// As the documentation has it.
const FLAGS: [&str; 5] = ["-std=c++17", "-O2", "-shared", "-fPIC", "-I."];

/// The directory below the site's own, and in it the library, whose name is the service's: `data`.
const DIRECTORY: &str = "module";
const LIBRARY: &str = "libdata.so";
pub const SERVICE: &str = "data";

/// Time that the compiler may take.
const COMPILATION: Duration = Duration::from_secs(120);

/// Where the library is, once it is compiled.
pub fn library(site: &Site) -> PathBuf {
    site.path().join(DIRECTORY).join(LIBRARY)
}

/// Compiles the module when it is asked for first in a run; returns the compiler's name and version. An error says what
/// is missing; what the compiler has to say itself goes to standard error.
pub fn compile_once(site: &Site, interrupt: &Interrupt) -> Result<String> {
    let compiler = find(COMPILER).with_context(|| {
        format!(
            "there is no {COMPILER} to compile the native module with; install the package {COMPILER_PACKAGE}, or \
             leave native and native-inline out of --servers"
        )
    })?;
    if !library(site).exists() {
        compile(&compiler, &site.path().join(DIRECTORY), interrupt)
            .context("the native module could not be compiled")?;
    }
    Ok(version_line(&compiler, "--version"))
}

fn compile(compiler: &Path, directory: &Path, interrupt: &Interrupt) -> Result<()> {
    fs::create_dir_all(directory)?;
    for (name, text) in SOURCES {
        fs::write(directory.join(name), text)?;
    }
    let mut command = Command::new(compiler);
    command.current_dir(directory).args(FLAGS).args([SOURCES[0].0, "-o", "part"]);
    let (status, _) = run_to_end(command, COMPILATION, interrupt)?;
    ensure!(status.success(), "{} has failed ({status})", compiler.display());
    // Only a whole library has the name, also when an earlier attempt was interrupted.
    Ok(fs::rename(directory.join("part"), directory.join(LIBRARY))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_compiled_once_in_a_run() {
        let site = Site::create().expect("a directory");
        compile_once(&site, &Interrupt::default()).expect("the machine has a compiler");
        let made = || fs::metadata(library(&site)).and_then(|data| data.modified()).expect("it exists");
        let first = made();
        assert_eq!(fs::read(library(&site)).expect("readable")[..4], *b"\x7fELF");
        compile_once(&site, &Interrupt::default()).expect("it is there");
        assert_eq!(made(), first);
    }

    #[test]
    fn a_module_that_cannot_be_compiled_leaves_no_library() {
        let site = Site::create().expect("a directory");
        let directory = site.path().join(DIRECTORY);
        let error = compile(Path::new("false"), &directory, &Interrupt::default()).expect_err("it fails");
        assert!(error.to_string().contains("false has failed"), "{error}");
        assert!(!library(&site).exists());
    }
}
