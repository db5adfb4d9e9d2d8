//! The configuration as Caddy's JSON: served, changed in parts while requests go on, and kept.
#![forbid(unsafe_code)]

use regent_tests::{Response, Server, Setup, keep_asking, regent_command};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ROUTES: &str = "/config/apps/http/servers/srv0/routes";

/// A server with these routes, and an admin listener.
fn document(routes: &str) -> String {
    format!(
        r#"{{
  "admin": {{ "listen": "ADMIN" }},
  "apps": {{ "http": {{ "servers": {{ "srv0": {{
    "listen": ["ADDRESS"],
    "automatic_https": {{ "disable": true }},
    "routes": [{routes}]
  }} }} }} }}
}}"#
    )
}

/// A route that responds with this text at a path.
fn route(path: &str, text: &str) -> String {
    format!(
        r#"{{ "@id": "{text}", "match": [{{ "path": ["{path}"] }}], "handle": [{{ "handler": "static_response", "body": "{text}" }}] }}"#
    )
}

fn start(routes: &str) -> Server {
    let run = ["run", "--config", "DIRECTORY/Caddyfile", "--adapter", "json"];
    Setup::new().caddyfile(&document(routes)).arguments(&run).start()
}

/// `run` of a server that was started before, with these options.
fn run(directory: &Path, options: &[&str]) -> Command {
    let mut command = regent_command(directory);
    command.args(["run", "--adapter", "json", "--config"]).arg(directory.join("Caddyfile")).args(options);
    command
}

fn filled_in(server: &Server, text: &str) -> String {
    let (address, admin) = (server.address().to_string(), server.admin().address().to_string());
    text.replace("ADDRESS", &address).replace("ADMIN", &admin)
}

fn change(server: &Server, method: &str, target: &str, body: &str) -> Response {
    server.admin().request(method, target).body("application/json", filled_in(server, body)).send()
}

fn error(answer: &Response) -> String {
    answer.json()["error"].as_str().expect("a text").to_owned()
}

fn routes(server: &Server) -> Vec<Value> {
    server.admin().get(ROUTES).expect(200).json().as_array().expect("a list").clone()
}

#[test]
fn parts_are_changed_and_requests_are_answered_by_what_is_there() {
    let server = start(&route("/a", "one"));
    assert_eq!(server.get("/a").expect(200).text(), "one");
    let shown = server.admin().get("/config/").expect(200).json();
    let sent: Value = serde_json::from_str(&filled_in(&server, &document(&route("/a", "one")))).unwrap();
    assert_eq!(shown, sent, "the very document");

    change(&server, "PATCH", &format!("{ROUTES}/0/handle/0/body"), "\"other\"").expect(200);
    assert_eq!(server.get("/a").text(), "other");
    change(&server, "POST", ROUTES, &route("/b", "two")).expect(200);
    assert_eq!(server.get("/b").text(), "two");
    change(&server, "PUT", &format!("{ROUTES}/0"), &route("/b", "before")).expect(200);
    assert_eq!(server.get("/b").text(), "before");
    change(&server, "DELETE", "/id/before", "").expect(200);
    assert_eq!(server.get("/b").text(), "two");
    change(&server, "PATCH", "/id/two/handle/0/body", "\"by its name\"").expect(200);
    assert_eq!(server.get("/b").text(), "by its name");
    let more = format!("[{}, {}]", route("/c", "three"), route("/d", "four"));
    change(&server, "POST", &format!("{ROUTES}/..."), &more).expect(200);
    assert_eq!([server.get("/c").text(), server.get("/d").text()], ["three", "four"]);
    assert_eq!(routes(&server).len(), 4);
    server.stop();
}

#[test]
fn what_is_wrong_changes_nothing_and_is_named() {
    let server = start(&route("/a", "one"));
    let before = server.admin().get("/config/").expect(200).body;
    let wrong = document(&route("/a", "two")).replace("static_response", "statick_response");
    let refused = change(&server, "POST", "/load", &wrong).expect(400);
    assert!(error(&refused).contains("JSON:6:"), "{refused:?}");
    assert!(error(&refused).contains("statick_response"), "{refused:?}");
    let refused = change(&server, "POST", "/load", "{\n \"apps\": }").expect(400);
    assert!(error(&refused).contains("line 2 column 10"), "{refused:?}");
    for (method, target, body, status) in [
        ("POST", ROUTES, r#"{ "handle": [{ "handler": "no_such_handler" }] }"#, 400),
        ("POST", ROUTES, r#"{ "handle": [], "unknown": 1 }"#, 400),
        ("POST", ROUTES, r#"{ "@id": "one", "handle": [] }"#, 400),
        ("PUT", "/config/apps/http", "{}", 409),
        ("PATCH", "/config/apps/tls", "{}", 404),
        ("DELETE", "/id/gone", "", 404),
    ] {
        let refused = change(&server, method, target, body).expect(status);
        assert!(!error(&refused).is_empty(), "{method} {target}");
    }
    assert_eq!(server.admin().get("/config/").expect(200).body, before);
    assert_eq!(server.get("/a").text(), "one");
    server.stop();
}

#[test]
fn a_change_can_be_bound_to_what_was_read() {
    let server = start(&route("/a", "one"));
    let read = server.admin().get("/id/one").expect(200).header("etag").expect("a tag").to_owned();
    assert!(read.starts_with(&format!("\"{ROUTES}/0 ")), "{read}");
    let patch = |text: &str| {
        let request = server.admin().request("PATCH", "/id/one/handle/0/body").header("If-Match", &read);
        request.body("application/json", format!("\"{text}\"")).send()
    };
    patch("two").expect(200);
    assert!(error(&patch("three").expect(412)).contains("has changed"));
    assert_eq!(server.get("/a").text(), "two");
    server.stop();
}

#[test]
fn the_same_is_loaded_again_only_by_force() {
    let server = start(&route("/a", "one"));
    let same = filled_in(&server, &document(&route("/a", "one")));
    let load = |fields: &[(&str, &str)], text: &str| {
        let mut request = server.admin().request("POST", "/load");
        for (name, value) in fields {
            request = request.header(name, *value);
        }
        request.body("application/json", text).send().expect(200).json()["changed"].clone()
    };
    assert_eq!(load(&[], &same), json!(false));
    assert_eq!(load(&[("Cache-Control", "must-revalidate")], &same), json!(true));
    // A name means nothing to the server, and is kept.
    assert_eq!(load(&[], &same.replace("\"one\", \"match\"", "\"uno\", \"match\"")), json!(false));
    server.admin().get("/id/uno").expect(200);
    server.admin().get("/id/one").expect(404);
    server.stop();
}

/// Two clients that add at the same time both find theirs in the end.
#[test]
fn no_change_is_lost() {
    const ROUNDS: usize = 25;
    let server = start(&route("/a", "one"));
    std::thread::scope(|scope| {
        for client in ["x", "y"] {
            let server = &server;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let added = route(&format!("/{client}{round}"), &format!("{client} {round}"));
                    change(server, "POST", ROUTES, &added).expect(200);
                }
            });
        }
    });
    assert_eq!(routes(&server).len(), 1 + 2 * ROUNDS);
    for client in ["x", "y"] {
        for round in 0..ROUNDS {
            let text = server.get(&format!("/{client}{round}")).expect(200).text();
            assert_eq!(text, format!("{client} {round}"));
        }
    }
    server.stop();
}

#[test]
fn requests_go_on_while_it_changes() {
    let server = start(&route("/a", "one"));
    let answers = keep_asking(&server, 3, "/a", || {
        for round in 0..10 {
            change(&server, "PATCH", "/id/one/handle/0/body", &format!("\"{round}\"")).expect(200);
            change(&server, "PUT", &format!("{ROUTES}/0"), &route("/b", "two")).expect(200);
            change(&server, "DELETE", "/id/two", "").expect(200);
        }
    });
    assert!(!answers.is_empty());
    assert!(answers.iter().all(|answer| answer.status == 200 && !answer.body.is_empty()));
    assert_eq!(server.get("/a").text(), "9");
    server.stop();
}

#[test]
fn what_was_changed_is_resumed_and_handed_on() {
    let server = start(&route("/a", "one"));
    change(&server, "PATCH", "/id/one/handle/0/body", "\"two\"").expect(200);
    let document = server.admin().get("/config/").expect(200).json();
    let server = server.restart(|directory| run(directory, &[]));
    assert_eq!(server.get("/a").text(), "one", "only where it is asked for");
    let mut server = server.restart(|directory| run(directory, &["--resume"]));
    assert_eq!(server.get("/a").text(), "two");
    assert_eq!(server.admin().get("/config/").expect(200).json(), document);
    change(&server, "PATCH", "/id/one/handle/0/body", "\"three\"").expect(200);
    let document = server.admin().get("/config/").expect(200).json();
    let upgraded = server.admin().request("POST", "/regent/upgrade").send().expect(200).json();
    server.follow(u32::try_from(upgraded["process"].as_u64().expect("a number")).unwrap());
    assert_eq!(server.get("/a").text(), "three");
    assert_eq!(server.admin().get("/config/").expect(200).json(), document);
    server.stop();
}

#[test]
fn a_caddyfile_is_changed_in_parts_as_what_it_means() {
    let caddyfile = "{\n\tadmin ADMIN\n}\nhttp://:PORT {\n\tbind LOOPBACK\n\trespond /a \"first text\"\n}\n";
    let server = Setup::new().caddyfile(caddyfile).start();
    let servers = server.admin().get("/config/apps/http/servers").expect(200).json();
    let name = servers.as_object().and_then(|servers| servers.keys().next()).expect("a server").clone();
    let target = format!("/config/apps/http/servers/{name}/routes/0");
    let route = server.admin().get(&target).expect(200).text();
    assert!(route.contains("first text"), "{route}");
    change(&server, "PATCH", &target, &route.replace("first text", "second text")).expect(200);
    assert_eq!(server.get("/a").expect(200).text(), "second text");
    server.admin().request("POST", "/regent/reload").send().expect(200);
    assert_eq!(server.get("/a").expect(200).text(), "first text", "the file was not changed");
    server.stop();
}

#[test]
fn octane_restarts_workers_by_sending_back_what_it_read() {
    const COUNTER: &str = "<?php $served = 0; while (frankenphp_handle_request(function () use (&$served) { echo ++$served; })) {}";
    let server = Setup::new()
        .admin("ADMIN")
        .php_options("worker {\n\t\t\tfile ROOT/index.php\n\t\t\tnum 1\n\t\t}")
        .file("index.php", COUNTER)
        .start();
    assert_eq!([server.get("/").text(), server.get("/").text()], ["1", "2"]);
    let read = server.admin().get("/config/apps/frankenphp").expect(200);
    assert!(read.text().contains("index.php"), "{}", read.text());
    let sent = server.admin().request("PATCH", "/config/apps/frankenphp");
    let sent = sent.header("Cache-Control", "must-revalidate").body("application/json", read.body).send();
    assert_eq!(sent.expect(200).json()["restarted"], 1);
    assert_eq!(server.get("/").text(), "1");
    server.stop();
}

#[test]
fn pages_of_other_sites_change_nothing() {
    let server = start(&route("/a", "one"));
    for (field, value) in [("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")] {
        for (method, target) in [
            ("POST", ROUTES),
            ("PUT", "/config/apps/none"),
            ("PATCH", "/id/one"),
            ("DELETE", "/id/one"),
            ("DELETE", "/config/"),
            ("POST", "/load"),
        ] {
            let request = server.admin().request(method, target).header(field, value);
            request.body("application/json", "{}").send().expect(403);
        }
    }
    assert_eq!(server.get("/a").text(), "one");
    server.stop();
}

// --- The command line ----------------------------------------------------------------------------------------------

fn regent(directory: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = regent_command(directory);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("regent can be run");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads it");
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn files_are_known_by_their_names_and_adapters() {
    let directory = tempfile::tempdir().unwrap();
    let json =
        r#"{ "apps": { "http": { "servers": { "a": { "listen": ["127.0.0.1:9"], "routes": [] } } } } }"#;
    let caddyfile = "http://127.0.0.1:9 {\n\trespond \"a text\"\n}\n";
    for (name, content) in [
        ("caddy.json", json),
        ("site.conf", json),
        ("other.conf", caddyfile),
        ("Caddyfile", caddyfile),
        ("odd.json", caddyfile),
    ] {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let valid = |arguments: &[&str], input| {
        regent(directory.path(), &[&["validate", "--config"], arguments].concat(), input).status.success()
    };
    for arguments in [
        &["caddy.json"][..],
        &["site.conf"],
        &["other.conf"],
        &["Caddyfile", "--adapter", ""],
        &["site.conf", "--adapter", "json"],
        &["odd.json", "--adapter", "caddyfile"],
    ] {
        assert!(valid(arguments, ""), "{arguments:?}");
    }
    assert!(valid(&["-"], json) && valid(&["-"], caddyfile));
    assert!(!valid(&["odd.json"], "") && !valid(&["Caddyfile", "--adapter", "json"], ""));
    assert!(!valid(&["caddy.json", "--adapter", "yaml"], ""));
}

#[test]
fn adapt_prints_caddys_json_which_is_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("Caddyfile"), "http://127.0.0.1:9 {\n\trespond \"a text\"\n}\n").unwrap();
    let adapt = |options: &[&str], input: &str| {
        let output = regent(directory.path(), &[&["adapt"], options].concat(), input);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let compact = adapt(&[], "");
    let document: Value = serde_json::from_str(&compact).unwrap();
    assert_eq!(compact.lines().count(), 1);
    assert!(document["apps"]["http"]["servers"].is_object(), "{document:#}");
    let pretty = adapt(&["--pretty", "--validate"], "");
    assert!(pretty.lines().count() > 10);
    assert_eq!(serde_json::from_str::<Value>(&pretty).unwrap(), document);
    assert_eq!(serde_json::from_str::<Value>(&adapt(&["--config", "-"], &pretty)).unwrap(), document);
}

#[test]
fn what_comes_by_the_standard_input_is_served_and_kept() {
    let server = start(&route("/a", "one"));
    let text = filled_in(&server, &document(&route("/a", "by the input")));
    let mut server = server.restart(|directory| {
        let file = directory.join("input.json");
        fs::write(&file, &text).unwrap();
        let mut command = regent_command(directory);
        command.args(["run", "--config", "-"]).stdin(fs::File::open(file).unwrap());
        command
    });
    assert_eq!(server.get("/a").text(), "by the input");
    server.admin().request("POST", "/regent/reload").send().expect(200);
    let upgraded = server.admin().request("POST", "/regent/upgrade").send().expect(200).json();
    server.follow(u32::try_from(upgraded["process"].as_u64().expect("a number")).unwrap());
    server.admin().request("POST", "/regent/reload?force=true").send().expect(200);
    assert_eq!(server.get("/a").text(), "by the input");
    server.stop();
}
