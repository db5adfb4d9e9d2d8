//! The native modules of the documentation and of the examples: compiled as it says there, and asked.
#![forbid(unsafe_code)]

use regent_tests::native::{assert_success, build_crate, compile, crate_of, repository};
use regent_tests::{Server, Setup, docs};
use std::fs;
use std::process::Command;

const PAGE: &str = "docs/native.md";

#[test]
fn a_new_user_writes_fifteen_lines_compiles_them_with_one_command_and_is_answered() {
    let setup = Setup::new();
    let directory = setup.directory();
    std::os::unix::fs::symlink(repository().join("include"), directory.join("include")).unwrap();
    let module = &blocks("cpp")[0];
    assert!(module.lines().count() <= 15, "{module}");
    fs::write(directory.join("hello.cpp"), module).unwrap();
    let command = &blocks("sh")[0];
    assert_eq!(command.lines().count(), 1, "{command}");
    let output = Command::new("sh").args(["-c", command]).current_dir(directory).output().unwrap();
    assert_success(&output, command);

    let configuration = blocks("caddyfile")[0].replace(":8080", "ADDRESS").replace("public", "ROOT");
    assert_eq!(configuration.matches("native ").count(), 1, "{configuration}");
    let server = setup.caddyfile(&format!("{{\n\tadmin off\n}}\n{configuration}")).start();
    for curl in blocks("sh")[1].lines().filter(|line| line.starts_with("curl ")) {
        let (_, target) = curl.trim_end_matches('\'').split_once("8080").unwrap();
        let answer = server.get(target);
        match target {
            "/hello/you" => assert_eq!(answer.expect(200).text(), "Hello you\n"),
            _ => assert_eq!(answer.expect(400).json(), problem_of(&blocks("json")[0]), "{target}"),
        }
    }
    server.stop();
}

#[test]
fn the_modules_of_the_documentation_do_what_it_says() {
    let setup = Setup::new();
    let sources = setup.directory().join("src");
    fs::create_dir(&sources).unwrap();
    for block in blocks("cpp").iter().chain(&blocks("c")) {
        fs::write(sources.join(file_of(block)), block).unwrap();
    }
    let modules = ["users", "streams", "greeter", "ping", "stock", "shop", "figures"];
    let mut setup = setup.module("count", &sources.join("count.c"), &[]);
    for module in modules {
        setup = setup.module(module, &sources.join(format!("{module}.cpp")), &[]);
    }
    fs::copy(build_crate("shout", &crate_of_the_page()), setup.directory().join("libshout.so")).unwrap();
    let served = ["count", "users", "streams", "greeter", "ping", "shop", "figures", "shout"];
    let site: String = served
        .iter()
        .map(|module| {
            let options = if *module == "greeter" { " {\n\t\t\tconfig most 2\n\t\t}" } else { "" };
            format!("handle_path /{module}/* {{\n\t\tnative DIRECTORY/lib{module}.so{options}\n\t}}\n\t")
        })
        .collect();
    let server = setup
        .php_options("num_threads 2\n\t\tmodule DIRECTORY/libstock.so")
        .site(&format!("{site}php_server"))
        .start();
    check_users(&server);
    check_streams(&server);
    check_the_smaller_ones(&server);
    check_shout(&server);
    server.stop();
}

#[test]
fn the_examples_do_what_they_promise() {
    let examples = repository().join("examples/native");
    let mut setup = Setup::new();
    fs::create_dir_all(setup.directory().join("build")).unwrap();
    for (library, source) in [
        ("hello_c", "c/hello.c"),
        ("hello", "cpp/hello.cpp"),
        ("data", "cpp/data.cpp"),
        ("notes", "cpp/notes.cpp"),
    ] {
        compile(&examples.join(source), &setup.directory().join(format!("build/lib{library}.so")), &[]);
    }
    let release = setup.directory().join("rust/target/release");
    fs::create_dir_all(&release).unwrap();
    fs::copy(build_crate("hello-rust", &crate_of(&examples.join("rust"))), release.join("libhello_rust.so"))
        .unwrap();
    let configuration = fs::read_to_string(examples.join("Caddyfile")).unwrap();
    let (admin, port) = ("admin localhost:{$ADMIN_PORT:2019}", "{$PORT:8080}");
    assert!(configuration.contains(admin) && configuration.contains(port), "{configuration}");
    setup = setup.caddyfile(&configuration.replace(admin, "admin off").replace(port, "PORT"));
    let server = setup.start();
    check_hello(&server);
    check_notes(&server);
    check_data(&server);
    check_rust(&server);
    server.stop();
}

fn check_users(server: &Server) {
    let users = |query: &str| server.get(&format!("/users/users{query}"));
    let all = users("?page=2&id=3&id=4&age=30&order=age").expect(200).json();
    assert_eq!(all, serde_json::json!({"page": 2, "order": "age", "ids": [3, 4], "age": 30}));
    let defaults = serde_json::json!({"page": 1, "order": "name", "ids": [], "age": null});
    assert_eq!(users("").expect(200).json(), defaults);
    assert_eq!(detail(users("?page=0")), "query field `page` must be from 1 to 1000");
    let post = |body: &str| server.post("/users/users", "application/json", body);
    let made =
        post(r#"{"user": {"name": "Zoë", "age": 30}, "addresses": [{"street": "Main", "city": "Bonn"}]}"#);
    assert_eq!(made.header("location"), Some("/users/Zoë"));
    assert_eq!(made.expect(201).json(), serde_json::json!({"name": "Zoë", "age": 30, "city": "Bonn"}));
    assert_eq!(
        detail(post(r#"{"user": {"name": "root", "age": -1}}"#)),
        "JSON value `/user/age` must be an integer from 0 to 255, not -1; JSON value `/user/name` is taken"
    );
    let homes = r#"{"user": {"name": "a", "age": 1}, "addresses": [{"street": "1"}, {"street": "2"}, {"street": "3"}]}"#;
    assert_eq!(post(homes).expect(409).json()["detail"], "too many homes");
    assert_eq!(
        detail(post(r#"{"user": {"name": "a", "age": 1}, "addresses": [{"city": "Bonn"}]}"#)),
        "JSON value `/addresses/0/street` is missing"
    );
}

fn check_streams(server: &Server) {
    let lines = "line\n".repeat(100_000);
    assert_eq!(server.post("/streams/lines", "text/plain", lines).expect(200).text(), "100000");
    assert_eq!(server.get("/streams/ticks/2").expect(200).text(), "data: 1\n\ndata: 2\n\n");
    let raw = server
        .raw("GET /streams/ticks/2 HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n");
    assert!(raw.to_lowercase().ends_with("0\r\nx-ticks: 2\r\n\r\n"), "{raw}");
}

fn check_the_smaller_ones(server: &Server) {
    assert_eq!(server.get("/greeter/greet/you").expect(200).text(), "Hello, you");
    server.get("/greeter/greet/you").expect(200);
    assert_eq!(server.get("/greeter/greet/you").expect(503).json()["detail"], "that was enough for today");
    server.wait_for_log("greeting you");
    assert_eq!(server.get("/ping/ping").expect(200).text(), "pong\n");
    assert_eq!(server.get("/count/count").expect(200).text(), "1\n");
    assert_eq!(server.get("/count/count").expect(200).text(), "2\n");
    assert_eq!(server.get("/shop/left/tea").expect(200).text(), "3");
    assert_eq!(server.get("/shop/left/salt").expect(200).text(), "0");
    server.get("/figures/nothing").expect(404);
    let figures = server.get("/figures/stats").expect(200).json();
    assert_eq!((&figures["answers"]["4xx"], &figures["running"]), (&1.into(), &1.into()), "{figures}");
    let shown: serde_json::Value = serde_json::from_str(&blocks("json")[1]).unwrap();
    assert!(shown.as_object().unwrap().keys().eq(figures.as_object().unwrap().keys()), "{shown} {figures}");
}

fn check_shout(server: &Server) {
    let shout = |body: &str| server.post("/shout/shout?times=2", "application/json", body);
    let shouted = shout(r#"{"words": ["what", "is"]}"#).expect(200).json();
    assert_eq!(shouted, serde_json::json!({"text": "WHAT ISWHAT IS"}));
    let wrong = detail(shout(r#"{"words": ["a", 7]}"#));
    assert!(
        wrong.starts_with("JSON value `/words/1`: invalid type: integer `7`, expected a string"),
        "{wrong}"
    );
    let eleven = format!("{{\"words\": {:?}}}", ["a"; 11]);
    assert_eq!(detail(shout(&eleven)), "more than 10 words");
}

fn check_hello(server: &Server) {
    assert_eq!(server.get("/c/hello/J%C3%B6").expect(200).text(), "Hello Jö\n");
    assert_eq!(server.post("/c/length", "text/plain", "x".repeat(300_000)).expect(200).text(), "300000\n");
    assert_eq!(server.get("/cpp/hello/you").expect(200).text(), "Good day, you\n");
    assert_eq!(server.get("/cpp/add?a=1&b=2").expect(200).json()["sum"], 3);
    assert_eq!(detail(server.get("/cpp/add")), "query field `a` is missing");
    assert_eq!(detail(server.get("/cpp/add?a=1001")), "query field `a` must be from -1000 to 1000");
}

fn check_notes(server: &Server) {
    let note = r#"{"title": "milk", "priority": 3, "tags": ["shop"]}"#;
    let made = server.post("/notes", "application/json", note);
    assert_eq!(made.header("location"), Some("/notes/1"));
    let expected = serde_json::json!({"id": 1, "title": "milk", "priority": 3, "tags": ["shop"]});
    assert_eq!(made.expect(201).json(), expected);
    assert_eq!(server.get("/notes/1").expect(200).json(), expected);
    assert_eq!(server.get("/notes?priority=4").expect(200).json(), serde_json::json!([]));
    let put = |body: &str| server.request("PUT", "/notes/1").body("application/json", body).send();
    assert_eq!(put(r#"{"title": "tea"}"#).expect(200).json()["title"], "tea");
    assert_eq!(
        detail(put(r#"{"title": "", "priority": "high"}"#)),
        "JSON value `/title` must have 1 to 80 characters; JSON value `/priority` must be an integer from \
         -2147483648 to 2147483647, not the string `high`"
    );
    assert!(detail(put("{")).starts_with("the body is not valid JSON"));
    let refused = server.request("PATCH", "/notes/1").send().expect(405);
    assert_eq!(refused.header("allow"), Some("DELETE, GET, HEAD, OPTIONS, PUT"));
    assert_eq!(server.request("DELETE", "/notes/1").send().expect(204).text(), "");
    assert_eq!(server.get("/notes/1").expect(404).json()["detail"], "there is no note 1");
    server.get("/notes/1/nothing").expect(404);
}

fn check_data(server: &Server) {
    assert_eq!(server.get("/bench/data/5").expect(200).text(), ".....");
    let large = server.get("/bench/data/65536").expect(200);
    assert_eq!((large.header("content-length"), large.body.len()), (Some("65536"), 65_536));
    assert_eq!(detail(server.get("/bench/data/65537")), "path parameter `count` must be from 0 to 65536");
    let figures = server.get("/bench/stats").expect(200).json();
    assert_eq!(figures["answers"]["2xx"], 2, "{figures}");
    assert_eq!(figures["answers"]["4xx"], 1, "{figures}");
    assert_eq!(figures["requests"], 4, "{figures}");
}

fn check_rust(server: &Server) {
    assert_eq!(server.get("/rust/hello/you").expect(200).text(), "Hello you\n");
    let mean = |body: &str| server.post("/rust/mean", "application/json", body);
    let expected = serde_json::json!({"count": 2, "mean": 1.5});
    assert_eq!(mean(r#"{"numbers": [1, 2]}"#).expect(200).json(), expected);
    assert_eq!(detail(mean(r#"{"numbers": []}"#)), "`numbers` must not be empty");
    assert!(detail(mean(r#"{"numbers": [1, "2"]}"#)).starts_with("JSON value `/numbers/1`: invalid type"));
    assert_eq!(server.get("/rust/count/4?step=2").expect(200).text(), "0\n2\n4\n");
    assert_eq!(
        detail(server.get("/rust/count/x")),
        "path parameter `to` is `x`: invalid digit found in string"
    );
    let long = "abc".repeat(100_000);
    assert_eq!(server.post("/rust/upper", "text/plain", &*long).expect(200).text(), long.to_uppercase());
    let figures = server.get("/rust/stats").expect(200).json();
    assert_eq!(figures["answers"]["4xx"], 3, "{figures}");
}

/// The reason of a 400.
fn detail(answer: regent_tests::Response) -> String {
    let answer = answer.expect(400);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    answer.json()["detail"].as_str().expect("a text").to_owned()
}

fn problem_of(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

/// The blocks of one language in the page, in order.
fn blocks(language: &str) -> Vec<String> {
    docs::blocks(PAGE, language)
}

/// The name that a block begins with, in a comment.
fn file_of(block: &str) -> &str {
    let first = block.lines().next().unwrap_or_default();
    first.trim_start_matches(['/', '*', '#', ' ']).trim_end_matches([' ', '*', '/'])
}

fn crate_of_the_page() -> Vec<(&'static str, String)> {
    let manifest =
        blocks("toml")[0].replace("regent/crates", &repository().join("crates").display().to_string());
    vec![("Cargo.toml", format!("{manifest}\n[workspace]\n")), ("src/lib.rs", blocks("rust")[0].clone())]
}
