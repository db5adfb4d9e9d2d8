//! `include/regent.hpp` without a server, on a host of the test's own.
#![forbid(unsafe_code)]

use regent_tests::compiled::compiled;
use regent_tests::native::{assert_success, compile, fixture, repository};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

#[test]
fn the_wrapper_does_what_it_says() {
    assert_success(&run(&[], b""), "the wrapper's tests");
}

#[test]
fn every_character_is_sent_as_json_that_others_read() {
    let all: String = (char::MIN..=char::MAX).collect();
    assert_eq!(read_json(&run(&["json"], all.as_bytes())), all);
}

#[test]
fn bytes_that_are_no_text_are_sent_as_valid_json() {
    // Each pair of bytes, with a letter behind it that must come through.
    let pairs = (0..=u16::MAX).flat_map(|pair| [&pair.to_be_bytes()[..], b"z"].concat());
    let input: Vec<u8> = pairs.collect();
    let text = read_json(&run(&["json"], &input));
    assert!(text.contains('\u{fffd}'));
    assert!(text.matches('z').count() >= 65_536, "no byte takes its neighbour along");
}

#[test]
fn a_module_shows_nothing_of_the_wrapper_to_others() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("libnotes.so");
    compile(&repository().join("examples/native/cpp/notes.cpp"), &library, &[]);
    let output =
        Command::new("nm").args(["-DC", "--defined-only"]).arg(&library).output().expect("nm is there");
    assert_success(&output, "nm");
    let symbols = String::from_utf8(output.stdout).unwrap();
    assert!(symbols.contains(" T regent_module\n"), "{symbols}");
    let shown: Vec<_> = symbols.lines().filter(|line| line.contains("regent::")).collect();
    assert!(shown.is_empty(), "{shown:#?}");
}

#[test]
fn a_handler_that_cannot_be_shared_does_not_compile() {
    for (handler, reason) in [
        ("[n = 0](regent::Request&) mutable { return regent::json(++n); }", "it is not `mutable`"),
        ("[](int) { return \"\"; }", "a handler takes a regent::Request&"),
        (
            "[](regent::Request& r) { return regent::json(r.query<int>(\"n\", \"x\")); }",
            "the default is not of the type",
        ),
        (
            "[](regent::Request&) { struct Own {}; Own* own = nullptr; return regent::json(own); }",
            "to_json(const T&)",
        ),
    ] {
        let errors = errors_of(&format!("REGENT_MODULE(\"m\", \"1\") {{ app.get(\"/\", {handler}); }}"));
        assert!(errors.contains(reason), "{handler}:\n{errors}");
    }
}

/// The program of the wrapper's tests, with sanitizers, run on this input.
fn run(arguments: &[&str], input: &[u8]) -> Output {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let mut child = Command::new(PROGRAM.get_or_init(program))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // Beside reading, since both are more than a pipe holds. A program that has ended is told by its status.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    })
}

fn program() -> PathBuf {
    let mut arguments =
        vec!["-std=c++17", "-O0", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"];
    arguments.extend(["-Wno-missing-field-initializers", "-fsanitize=address,undefined", "-pthread"]);
    compiled("c++", &arguments, &fixture("wrapper.cpp"))
}

fn read_json(output: &Output) -> String {
    assert_success(output, "printing JSON");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn errors_of(module: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("module.cpp");
    std::fs::write(&source, format!("#include \"regent.hpp\"\n{module}\n")).unwrap();
    let output = Command::new("c++")
        .args(["-std=c++17", "-fsyntax-only", "-I"])
        .arg(repository().join("include"))
        .arg(&source)
        .output()
        .expect("a C++ compiler is there");
    assert!(!output.status.success(), "{module} compiles");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
