//! Native modules, compiled by the tests that use them.

use crate::Setup;
use crate::compiled::compiled;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// The repository's own files.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the sources are there")
}

/// A source of `tests/fixtures/native`.
pub fn fixture(name: &str) -> PathBuf {
    repository().join("tests/fixtures/native").join(name)
}

/// Compiles a module in C, or in C++ when its name ends so, as the documentation says; `flags` are appended.
pub fn compile(source: &Path, library: &Path, flags: &[&str]) {
    let is_c = source.extension().is_some_and(|ending| ending == "c");
    let (compiler, standard) = if is_c { ("cc", "-std=c11") } else { ("c++", "-std=c++17") };
    let arguments = [&[standard, "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"], flags].concat();
    let kept = compiled(compiler, &arguments, source);
    fs::copy(kept, library).unwrap_or_else(|error| panic!("writing {}: {error}", library.display()));
}

/// Builds a crate of these files as the documentation says, offline, with the versions of this repository. Gives the
/// library's path. What it is built in is kept for the next run.
pub fn build_crate(name: &str, files: &[(&str, String)]) -> PathBuf {
    // Tests that build the same crate write the same files, which cargo must not read meanwhile.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = crate::server::built_directory().join("native-modules");
    let sources = kept.join("src").join(name);
    for (file, text) in files {
        let path = sources.join(file);
        fs::create_dir_all(path.parent().expect("it is in a directory"))
            .expect("the target directory is ours");
        write_changed(&path, text);
    }
    let lock = fs::read_to_string(repository().join("Cargo.lock")).expect("the sources are there");
    write_changed(&sources.join("Cargo.lock"), &lock);
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--offline", "--quiet"])
        .current_dir(&sources)
        .env("CARGO_TARGET_DIR", &kept)
        .env_remove("RUSTC_BOOTSTRAP")
        .output()
        .expect("cargo is there");
    assert_success(&output, &format!("building the crate {name}"));
    kept.join(format!("release/lib{}.so", name.replace('-', "_")))
}

/// So that cargo builds again what has changed, and nothing else.
fn write_changed(path: &Path, text: &str) {
    if fs::read_to_string(path).ok().as_deref() != Some(text) {
        fs::write(path, text).expect("the target directory is ours");
    }
}

/// The files of a crate in `directory`, to be built elsewhere: it depends on Regent's crates by a path.
pub fn crate_of(directory: &Path) -> Vec<(&'static str, String)> {
    let read = |file: &str| fs::read_to_string(directory.join(file)).expect("the sources are there");
    let manifest = read("Cargo.toml").lines().fold(String::new(), |text, line| text + &absolute(line) + "\n");
    vec![("Cargo.toml", manifest), ("src/lib.rs", read("src/lib.rs"))]
}

/// Panics with what was printed, if a command has failed.
pub fn assert_success(output: &Output, what: &str) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(output.status.success(), "{what}: {}\n{}", output.status, String::from_utf8_lossy(&text));
}

impl Setup {
    /// Compiles `source` into `DIRECTORY/lib{name}.so`.
    pub fn module(self, name: &str, source: &Path, flags: &[&str]) -> Self {
        compile(source, &self.directory().join(format!("lib{name}.so")), flags);
        self
    }

    /// The same for a source that stands in the test; `file` says by its ending what it is.
    pub fn module_text(self, name: &str, file: &str, text: &str) -> Self {
        let source = self.directory().join(file);
        fs::write(&source, text).expect("the temporary directory is ours");
        self.module(name, &source, &[])
    }
}

/// A line of a manifest, with the path of Regent's crates whole.
fn absolute(line: &str) -> String {
    match line.split_once("path = \"") {
        Some((before, after)) => {
            let (_, within) = after.split_once("crates/").expect("a path to Regent's crates");
            format!("{before}path = \"{}/crates/{within}", repository().display())
        }
        None => line.to_owned(),
    }
}
