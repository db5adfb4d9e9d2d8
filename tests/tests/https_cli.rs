//! The command line where HTTPS is concerned.
#![forbid(unsafe_code)]

use regent_tests::{DEADLINE, Setup, own_address, regent_command};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc;
use tempfile::TempDir;

const FRANKENPHP: &str =
    include_str!("../../crates/config/tests/golden/frankenphp-default-localhost.caddyfile");
/// Where the local CA is, below the home directory.
const STORAGE: &str = ".local/share/caddy";

/// The home and working directory of a command, with these files.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().expect("a temporary directory can be made");
    fs::create_dir(directory.path().join("public")).expect("the directory is ours");
    for (name, content) in files {
        fs::write(directory.path().join(name), content).expect("the directory is ours");
    }
    directory
}

fn regent(directory: &Path, arguments: &[&str]) -> Output {
    regent_command(directory).args(arguments).output().expect("regent can be run")
}

/// What a command says on standard output; it must succeed.
fn success(directory: &Path, arguments: &[&str]) -> String {
    let output = regent(directory, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command says on standard error; it must fail with exit code 1.
fn failure(directory: &Path, arguments: &[&str]) -> String {
    let output = regent(directory, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?} must fail");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server that is killed when it is dropped.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // It has ended already if it could not start.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first line of a server's log that has `text`; it must come before the server ends.
fn line_with(directory: &Path, arguments: &[&str], text: &str) -> String {
    let mut command = regent_command(directory);
    let mut server =
        Started(command.args(arguments).stderr(Stdio::piped()).spawn().expect("regent can be run"));
    let lines = BufReader::new(server.0.stderr.take().expect("it is piped")).lines();
    let (sender, receiver) = mpsc::channel();
    // Ends with the server.
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut log = String::new();
    while let Ok(line) = receiver.recv_timeout(DEADLINE) {
        if line.contains(text) {
            return line;
        }
        log += &line;
        log.push('\n');
    }
    panic!("the log of {arguments:?} has no {text:?}:\n{log}");
}

// --- php-server and file-server ------------------------------------------------------------------------------------

#[test]
fn php_server_with_a_domain_has_https_with_a_certificate_of_the_local_ca() {
    let directory = directory(&[("public/index.php", "<?php")]);
    let address = own_address();
    let arguments = ["php-server", "--domain", "localhost", "--listen", &address.to_string()];
    let line = line_with(directory.path(), &arguments, "serving ");
    assert!(line.contains(&format!("serving https://localhost:{}", address.port())), "{line}");
    assert!(directory.path().join(STORAGE).join("pki/authorities/local/root.crt").is_file());
}

#[test]
fn a_domain_that_is_none_is_an_error() {
    let directory = directory(&[]);
    for command in ["php-server", "file-server"] {
        let said = failure(directory.path(), &[command, "--domain", "https://localhost"]);
        assert!(said.contains("`https://localhost` is no domain; write one such as"), "{said}");
    }
}

#[test]
fn file_server_serves_files_and_runs_no_script() {
    let server = Setup::new()
        .file("page.php", "<?php echo 'run';")
        .file("style.css", "a { color: red }")
        .file("style.css.gz", "not really gzip")
        .arguments(&["file-server", "-r", "ROOT", "-l", "ADDRESS", "--precompressed", "gzip,br", "-a", "-b"])
        .start();
    assert_eq!(server.get("/page.php").expect(200).text(), "<?php echo 'run';");
    assert_eq!(server.get("/style.css").expect(200).text(), "a { color: red }");
    let compressed = server.request("GET", "/style.css").header("Accept-Encoding", "gzip").send();
    assert_eq!(compressed.expect(200).text(), "not really gzip");
    assert!(server.get("/").expect(200).text().contains("./style.css.gz"), "its directory is listed");
    server.wait_for_log("/style.css");
    server.stop();
}

// --- validate, adapt and fmt ---------------------------------------------------------------------------------------

#[test]
fn frankenphps_own_caddyfile_is_valid_for_localhost_and_nothing_is_made_of_it() {
    let directory = directory(&[("Caddyfile", FRANKENPHP)]);
    assert_eq!(success(directory.path(), &["validate"]), "Valid configuration\n");
    let adapted: serde_json::Value =
        serde_json::from_str(&success(directory.path(), &["adapt"])).expect("it is JSON");
    let hosts = &adapted["apps"]["http"]["servers"]["srv0"]["routes"][0]["match"][0]["host"];
    assert_eq!(hosts, &serde_json::json!(["localhost"]), "{adapted:#}");
    success(directory.path(), &["fmt", "--overwrite"]);
    assert_eq!(success(directory.path(), &["validate"]), "Valid configuration\n");
    assert!(!directory.path().join(STORAGE).exists(), "a CA was made");
}

#[test]
fn validate_looks_into_certificates() {
    let caddyfile = "{\n\tadmin off\n}\nlocalhost {\n\ttls a.crt a.key\n}\n127.0.0.1 {\n\ttls internal {\n\t\tclient_auth {\n\
                     \t\t\ttrust_pool file ca.pem\n\t\t}\n\t}\n}\n";
    let files = [("Caddyfile", caddyfile), ("a.crt", "nonsense"), ("a.key", ""), ("ca.pem", "")];
    let directory = directory(&files);
    let said = failure(directory.path(), &["validate"]);
    assert!(said.contains("a.crt holds no certificate"), "{said}");
    assert!(said.contains("ca.pem holds no certificate"), "all errors at once: {said}");
}

// --- trust and untrust ---------------------------------------------------------------------------------------------
// `trust` would change this machine; the unit tests of the command do so in a directory.

#[test]
fn untrust_says_where_it_looked_for_a_ca() {
    let directory = directory(&[("Caddyfile", "{\n\tstorage file_system certificates\n}\n")]);
    let said = failure(directory.path(), &["untrust"]);
    assert!(
        said.contains(&format!("there is no local CA in {}", directory.path().join(STORAGE).display())),
        "{said}"
    );
    let said = failure(directory.path(), &["untrust", "--config", "Caddyfile"]);
    assert!(said.contains(&format!("{}", directory.path().join("certificates").display())), "{said}");
    let said = failure(directory.path(), &["untrust", "--ca-storage", "other"]);
    assert!(said.contains(&format!("{}", directory.path().join("other").display())), "{said}");
    let said = failure(directory.path(), &["untrust", "--cert", "Caddyfile"]);
    assert!(said.contains("Caddyfile holds no certificate"), "{said}");
}
