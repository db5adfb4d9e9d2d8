//! Real applications, from the distribution's packages, copied into a test's directory.

use crate::Server;
use crate::php::php_config;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory with an application's packages unpacked side by side (`usr/share/…`); fetched on first use.
///
/// Read only: it is shared by all runs of the tests. See `tools/fetch-app`.
pub fn packages_of(app: &str) -> PathBuf {
    let tool = repository().join("tools/fetch-app");
    let output = Command::new(&tool)
        .arg(app)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("running {}: {error}", tool.display()));
    assert!(
        output.status.success(),
        "tools/fetch-app {app} failed, and this test needs the real application: see its message above, \
         bring the network up and run it by hand"
    );
    PathBuf::from(String::from_utf8(output.stdout).expect("a path in UTF-8").trim_end())
}

/// An extension that is built for the PHP of the engine; `None`: it cannot be had here, and that was said.
pub fn extension(name: &str) -> Option<PathBuf> {
    let mut tool = Command::new(repository().join("tools/build-extension"));
    let output = tool.arg(name).stdin(Stdio::null()).output().expect("the tool can be started");
    if !output.status.success() {
        println!("skipped: the extension {name} cannot be had:\n{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(PathBuf::from(String::from_utf8(output.stdout).expect("a path in UTF-8").trim_end()))
}

/// The directories with the libraries of unpacked packages (`lib/x86_64-linux-gnu` and the like), for `LD_LIBRARY_PATH`.
pub fn libraries_of(packages: &Path) -> String {
    let mut found = Vec::new();
    for base in ["lib", "usr/lib"] {
        let Ok(entries) = fs::read_dir(packages.join(base)) else { continue };
        let directories = entries.filter_map(|entry| Some(entry.ok()?.path()));
        found.extend(directories.filter(|path| path.is_dir()).map(|path| path.display().to_string()));
    }
    found.join(":")
}

/// A directory of the tests' own applications and data.
pub fn fixture(name: &str) -> PathBuf {
    repository().join("tests/fixtures").join(name)
}

/// Copies a directory's content, links as links.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap_or_else(|error| panic!("making {}: {error}", to.display()));
    let entries = fs::read_dir(from).unwrap_or_else(|error| panic!("reading {}: {error}", from.display()));
    for entry in entries {
        let entry = entry.expect("the directory can be read to its end");
        let target = to.join(entry.file_name());
        let kind = entry.file_type().expect("an entry has a type");
        let copied = if kind.is_dir() {
            copy_tree(&entry.path(), &target);
            Ok(())
        } else if kind.is_symlink() {
            fs::read_link(entry.path()).and_then(|points_to| symlink(points_to, &target))
        } else {
            fs::copy(entry.path(), &target).map(drop)
        };
        copied.unwrap_or_else(|error| panic!("copying {}: {error}", entry.path().display()));
    }
}

/// Copies an application out of its unpacked packages, what links lead to in the place of the links. They lead to other
/// packages, also by absolute paths; links to what the packages do not have are left out.
pub fn copy_application(packages: &Path, from: &Path, to: &Path) {
    let kind = fs::symlink_metadata(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    if kind.is_symlink() {
        let target = fs::read_link(from).expect("it is a link");
        let target = match target.strip_prefix("/") {
            Ok(absolute) => packages.join(absolute),
            Err(_) => from.parent().expect("a link is in a directory").join(target),
        };
        if target.exists() {
            copy_application(packages, &target, to);
        }
    } else if kind.is_dir() {
        fs::create_dir_all(to).unwrap_or_else(|error| panic!("making {}: {error}", to.display()));
        for entry in fs::read_dir(from).expect("the packages can be read") {
            let entry = entry.expect("the directory can be read to its end");
            copy_application(packages, &entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).unwrap_or_else(|error| panic!("copying {}: {error}", from.display()));
    }
}

/// Runs a script with the command line program of the PHP that the engine is built with, and gives what it prints.
pub fn run_php(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(php_program())
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("PHP's command line program can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn php_program() -> PathBuf {
    PathBuf::from(php_config("--php-binary"))
}

/// Replaces a text in every PHP file below `directory`.
pub fn replace_in_php_files(directory: &Path, from: &str, to: &str) {
    for entry in fs::read_dir(directory).expect("the directory can be read") {
        let path = entry.expect("the directory can be read to its end").path();
        if path.is_dir() {
            replace_in_php_files(&path, from, to);
        } else if path.extension().is_some_and(|extension| extension == "php") {
            let text = fs::read(&path).expect("a file can be read");
            // Old applications have files that are not UTF-8; those name no paths.
            if let Ok(text) = String::from_utf8(text)
                && text.contains(from)
            {
                fs::write(&path, text.replace(from, to)).expect("a copy can be written");
            }
        }
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is within the repository")
}

/// Asks a worker's page with what PHP cannot fully parse: more cookies than it takes, a form without its boundary. The page is
/// answered each time, and what PHP says of the request is in the log. A query has no part in it: Symfony parses that itself.
pub fn check_unparsable_requests(server: &Server, page: &str) {
    let cookies: Vec<_> = (0..1001).map(|i| format!("c{i}=1")).collect();
    let requests = [
        server.request("GET", page).header("Cookie", cookies.join("; ")),
        server.request("POST", page).body("multipart/form-data", "--limit--\r\n"),
    ];
    for request in requests {
        let response = request.send();
        assert!(response.status < 500, "{} {}", response.status, response.text());
    }
    server.wait_for_log("PHP Request Startup: Input variables exceeded 1000");
    server.wait_for_log("Missing boundary in multipart/form-data POST data");
    server.get(page).expect(200);
}
