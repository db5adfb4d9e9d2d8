//! The command line and the configuration: what works, and what a mistake is answered with.
#![forbid(unsafe_code)]

use regent_tests::{Setup, regent_command};
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

const GOOD: &str = "http://127.0.0.1:9 {\n\troot * /srv\n\tphp_server\n}\n";

/// A directory with this text as `Caddyfile`.
fn with_caddyfile(text: &str) -> TempDir {
    let directory = TempDir::new().expect("a temporary directory can be made");
    std::fs::write(directory.path().join("Caddyfile"), text).expect("the directory is ours");
    directory
}

fn regent(directory: &Path, arguments: &[&str]) -> Output {
    regent_command(directory).args(arguments).output().expect("regent can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must fail, and gives what it said on standard error.
fn failure(directory: &Path, arguments: &[&str]) -> String {
    let output = regent(directory, arguments);
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{arguments:?} must fail: {}{said}", text(&output.stdout));
    assert!(!said.contains("panicked"), "{said}");
    said
}

// --- Commands ------------------------------------------------------------------------------------------------------

#[test]
fn version_names_itself() {
    let directory = with_caddyfile("");
    let output = regent(directory.path(), &["version"]);
    assert!(output.status.success());
    let said = text(&output.stdout);
    assert!(said.to_lowercase().contains("regent") && said.contains(env!("CARGO_PKG_VERSION")), "{said}");
}

#[test]
fn help_names_every_command() {
    let directory = with_caddyfile("");
    let output = regent(directory.path(), &["--help"]);
    assert!(output.status.success());
    let said = text(&output.stdout);
    for command in ["run", "php-server", "validate", "adapt", "fmt", "version"] {
        assert!(said.contains(command), "{command} is missing in {said}");
    }
}

#[test]
fn an_unknown_command_is_an_error() {
    let directory = with_caddyfile("");
    assert!(failure(directory.path(), &["rnu"]).contains("rnu"));
}

#[test]
fn validate_accepts_a_good_file() {
    let directory = with_caddyfile(GOOD);
    let output = regent(directory.path(), &["validate", "--config", "Caddyfile"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn adapt_prints_json() {
    let directory = with_caddyfile("http://127.0.0.1:9 {\n\trespond \"a text to be found\" 201\n}\n");
    let output = regent(directory.path(), &["adapt", "--config", "Caddyfile"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON on standard output");
    assert!(json.is_object());
    assert!(json.to_string().contains("a text to be found"), "{json:#}");
}

#[test]
fn fmt_prints_the_tidy_form() {
    let directory = with_caddyfile("localhost:9   {\nrespond    \"hi\"\n\n\n\nlog\n   }");
    let output = regent(directory.path(), &["fmt", "Caddyfile"]);
    assert_eq!(text(&output.stdout), "localhost:9 {\n\trespond \"hi\"\n\n\tlog\n}\n");
    let untouched = std::fs::read_to_string(directory.path().join("Caddyfile")).expect("it is there");
    assert!(untouched.starts_with("localhost:9   {"), "without --overwrite the file stays");
}

#[test]
fn fmt_overwrite_writes_it_and_changes_nothing_twice() {
    let directory = with_caddyfile("{\nadmin off\n}\nlocalhost:9 {\n# why\nphp_server {\nindex off\n}\n}\n");
    let read = || std::fs::read_to_string(directory.path().join("Caddyfile")).expect("it is there");
    assert!(regent(directory.path(), &["fmt", "--overwrite", "Caddyfile"]).status.success());
    let once = read();
    assert_eq!(once, "{\n\tadmin off\n}\n\nlocalhost:9 {\n\t# why\n\tphp_server {\n\t\tindex off\n\t}\n}\n");
    assert!(regent(directory.path(), &["fmt", "--overwrite", "Caddyfile"]).status.success());
    assert_eq!(read(), once);
}

#[test]
fn run_without_a_file_takes_the_caddyfile_of_the_directory() {
    let setup = Setup::new().file("index.php", "<?php echo 'found';").arguments(&["run"]);
    let server = setup.start();
    assert_eq!(server.get("/").expect(200).text(), "found");
    server.stop();
}

#[test]
fn run_says_where_it_serves() {
    let server = Setup::new().file("index.php", "<?php echo 'ok';").start();
    server.wait_for_log(&server.address().port().to_string());
    server.stop();
}

#[test]
fn php_server_needs_no_file() {
    let server = Setup::new()
        .file("index.php", "<?php echo 'classic ', $_SERVER['REQUEST_URI'];")
        .file("style.css", "a {}")
        .arguments(&["php-server", "-r", "ROOT", "-l", "ADDRESS"])
        .start();
    assert_eq!(server.get("/some/path").expect(200).text(), "classic /some/path");
    assert_eq!(server.get("/style.css").expect(200).text(), "a {}");
    server.stop();
}

#[test]
fn php_server_runs_workers() {
    let server = Setup::new()
        .file(
            "index.php",
            "<?php $n = 0; while (frankenphp_handle_request(function () use (&$n) { echo ++$n; })) { }",
        )
        .arguments(&["php-server", "-r", "ROOT", "-l", "ADDRESS", "-w", "ROOT/index.php,1"])
        .start();
    let first: u64 = server.get("/").expect(200).text().parse().expect("a number");
    assert_eq!(server.get("/").expect(200).text(), (first + 1).to_string());
    server.stop();
}

// --- Mistakes ------------------------------------------------------------------------------------------------------

#[test]
fn a_missing_file_is_named() {
    let directory = with_caddyfile("");
    for command in ["run", "validate", "adapt"] {
        assert!(
            failure(directory.path(), &[command, "--config", "nowhere/Caddyfile"])
                .contains("nowhere/Caddyfile")
        );
    }
    assert!(failure(directory.path(), &["fmt", "nowhere/Caddyfile"]).contains("nowhere/Caddyfile"));
}

#[test]
fn an_unknown_option_names_the_place_and_the_known_ones() {
    let directory =
        with_caddyfile("{\n\tfrankenphp {\n\t\tnum_thread 4\n\t}\n}\nlocalhost:9 {\n\tphp_server\n}\n");
    for command in ["run", "validate", "adapt"] {
        let said = failure(directory.path(), &[command, "--config", "Caddyfile"]);
        assert!(said.contains("Caddyfile:3:3"), "file, line and column: {said}");
        assert!(said.contains("num_thread"), "{said}");
        assert!(said.contains("num_threads"), "what was meant: {said}");
    }
}

#[test]
fn an_unknown_directive_names_the_likely_one() {
    let directory = with_caddyfile("localhost:9 {\n\troot * /srv\n\tphp_serve\n}\n");
    let said = failure(directory.path(), &["validate", "--config", "Caddyfile"]);
    assert!(said.contains("Caddyfile:3:2") && said.contains("php_server"), "{said}");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let directory = with_caddyfile(
        "{\n\tfrankenphp {\n\t\tnum_threads many\n\t}\n}\nlocalhost:9 {\n\tnonsense\n\tredir\n\tphp_server {\n\t\tunheard of\n\t}\n}\n",
    );
    let said = failure(directory.path(), &["validate", "--config", "Caddyfile"]);
    for line in [3, 7, 8, 10] {
        assert!(said.contains(&format!("Caddyfile:{line}:")), "line {line} is missing: {said}");
    }
}

#[test]
fn bad_values_are_explained() {
    for (line, word) in [
        ("num_threads 0", "num_threads"),
        ("num_threads -1", "num_threads"),
        ("num_threads 4\n\t\tmax_threads 2", "max_threads"),
        ("max_wait_time soon", "soon"),
        ("worker", "worker"),
        ("php_ini memory_limit", "php_ini"),
    ] {
        let directory = with_caddyfile(&format!("{{\n\tfrankenphp {{\n\t\t{line}\n\t}}\n}}\n{GOOD}"));
        let said = failure(directory.path(), &["validate", "--config", "Caddyfile"]);
        assert!(said.contains(word), "{line:?}: {said}");
    }
}

#[test]
fn braces_and_quotes_that_are_never_closed_are_errors() {
    for broken in [
        "localhost:9 {\n\tphp_server\n",
        "localhost:9 {\n\trespond \"never closed\n}\n",
        "localhost:9 {\n}\n}\n",
    ] {
        let directory = with_caddyfile(broken);
        let said = failure(directory.path(), &["validate", "--config", "Caddyfile"]);
        assert!(said.contains("Caddyfile:"), "{broken:?}: {said}");
    }
}

#[test]
fn validate_warns_of_a_worker_script_that_is_not_there_and_of_what_has_no_effect() {
    let text = "{\n\tadmin off\n\tmetrics {\n\t\tobserve_catchall_hosts\n\t}\n\tfrankenphp {\n\t\tworker nowhere.php\n\t}\n}\n\
                http://127.0.0.1:9/app {\n\tvulcain\n\tphp_server frankenphp\n}\n";
    let directory = with_caddyfile(text);
    let output = regent(directory.path(), &["validate", "--config", "Caddyfile"]);
    let said = text_of(&output);
    assert!(output.status.success(), "{said}");
    for part in [
        "4:3: `observe_catchall_hosts`",
        "7:10: the worker's file does not exist",
        "10:1: a path",
        "11:2: `vulcain`",
        "12:13: arguments",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

fn text_of(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn a_worker_script_that_is_not_there_is_an_error_at_the_start() {
    let directory = with_caddyfile(&format!(
        "{{\n\tadmin off\n\tfrankenphp {{\n\t\tworker nowhere.php\n\t}}\n}}\n{GOOD}"
    ));
    assert!(failure(directory.path(), &["run", "--config", "Caddyfile"]).contains("nowhere.php"));
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound");
    let directory = with_caddyfile(&format!("{{\n\tadmin off\n}}\nhttp://{address} {{\n\trespond ok\n}}\n"));
    let said = failure(directory.path(), &["run", "--config", "Caddyfile"]);
    assert!(said.contains(&address.port().to_string()) && said.to_lowercase().contains("in use"), "{said}");
}

// --- The file ------------------------------------------------------------------------------------------------------

#[test]
fn the_environment_fills_the_file_in() {
    let server = Setup::new()
        .env("GREETING", "from the environment")
        .caddyfile(
            "{\n\tadmin off\n}\nhttp://ADDRESS {\n\trespond /set \"{$GREETING}\"\n\trespond /default \"{$UNSET:a default}\"\n\
             \trespond /late \"{env.GREETING}\"\n}\n",
        )
        .start();
    assert_eq!(server.get("/set").expect(200).text(), "from the environment");
    assert_eq!(server.get("/default").expect(200).text(), "a default");
    assert_eq!(server.get("/late").expect(200).text(), "from the environment");
    server.stop();
}

#[test]
fn snippets_and_imports_are_read() {
    let setup = Setup::new().caddyfile(
        "{\n\tadmin off\n}\n(greet) {\n\theader X-Snippet {args[0]}\n}\nhttp://ADDRESS {\n\timport greet hello\n\timport sites/*.caddy\n}\n",
    );
    let sites = setup.directory().join("sites");
    std::fs::create_dir(&sites).expect("the directory is ours");
    std::fs::write(sites.join("a.caddy"), "respond /a \"file a\"\n").expect("the directory is ours");
    std::fs::write(sites.join("b.caddy"), "respond /b \"file b\"\n").expect("the directory is ours");
    let server = setup.start();
    let answer = server.get("/a").expect(200);
    assert_eq!((answer.text().as_str(), answer.header("x-snippet")), ("file a", Some("hello")));
    assert_eq!(server.get("/b").expect(200).text(), "file b");
    server.stop();
}

#[test]
fn validate_says_what_differs_from_caddy() {
    let directory = tempfile::tempdir().unwrap();
    let text = ":8080 {\n\ttemplates\n\tfile_server\n\tpush /a\n}\n";
    std::fs::write(directory.path().join("Caddyfile"), text).unwrap();
    let output = regent(directory.path(), &["validate", "--config", "Caddyfile"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Valid configuration\n");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in [
        "Caddyfile:2:2: `templates` is not quite Caddy's: ",
        "Caddyfile:3:2: `file_server` is not quite Caddy's: ",
        "Caddyfile:4:2: `push` has no effect: ",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let adapted = regent(directory.path(), &["adapt", "--config", "Caddyfile"]);
    assert!(!String::from_utf8_lossy(&adapted.stderr).contains("not quite"), "only who asks is told");
}
