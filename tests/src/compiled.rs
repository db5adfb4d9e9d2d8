//! What tests compile, kept for the next run under a name made of all that it was made of.

use crate::native::{assert_success, repository};
use aws_lc_rs::digest::{Context, SHA256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What `source` is with these arguments and the headers of `include/`: compiled now, or by an earlier run that has made it of the
/// same. The file is nobody's to change.
pub fn compiled(compiler: &str, arguments: &[&str], source: &Path) -> PathBuf {
    let kept = directory().join(key(compiler, arguments, source));
    if !kept.is_file() {
        // Another test may make the same at this moment: each has a name of its own until it is whole.
        let own = tempfile::tempdir_in(directory()).expect("the target directory is ours");
        let output = own.path().join("output");
        run(compiler, arguments, source, &output);
        fs::rename(&output, &kept).expect("they are on one file system");
    }
    kept
}

fn run(compiler: &str, arguments: &[&str], source: &Path, output: &Path) {
    // Options for the linker come after what is linked.
    let mut command = Command::new(compiler);
    command.arg("-I").arg(repository().join("include")).arg(source).arg("-o").arg(output).args(arguments);
    let result = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert_success(&result, &format!("compiling {}", source.display()));
}

/// The compiler and its version, the arguments, the source, and each header that it can include by its name alone.
fn key(compiler: &str, arguments: &[&str], source: &Path) -> String {
    static VERSION: OnceLock<Vec<u8>> = OnceLock::new();
    let mut context = Context::new(&SHA256);
    let mut add = |bytes: &[u8]| {
        context.update(&bytes.len().to_be_bytes());
        context.update(bytes);
    };
    add(VERSION.get_or_init(|| Command::new("cc").arg("--version").output().expect("there is cc").stdout));
    add(compiler.as_bytes());
    arguments.iter().for_each(|argument| add(argument.as_bytes()));
    add(&fs::read(source).expect("the source is there"));
    let beside = source.parent().expect("a file is in a directory");
    for header in [&repository().join("include"), beside].into_iter().flat_map(headers) {
        add(&fs::read(header).expect("it has just been listed"));
    }
    let digest = context.finish();
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn headers(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let paths = entries.map(|entry| entry.expect("it can be read to its end").path());
    let is_header = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "h" || ending == "hpp");
    let mut headers: Vec<_> = paths.filter(is_header).collect();
    headers.sort_unstable();
    headers
}

fn directory() -> PathBuf {
    let directory = crate::server::built_directory().join("compiled-by-tests");
    fs::create_dir_all(&directory).expect("the target directory is ours");
    directory
}
