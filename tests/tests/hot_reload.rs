//! Pages in browsers are told of changed files.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Server, Setup};

const HUB: &str = "mercure {\nanonymous\n}\n";
const SHOW_URL: &str = "<?php echo $_SERVER['FRANKENPHP_HOT_RELOAD'] ?? 'none';";

/// A page that has subscribed at the URL that the script gave it.
fn subscribed(server: &Server) -> Conn {
    let url = server.get("/url.php").expect(200).text();
    assert!(url.starts_with("/.well-known/mercure?topic="), "{url}");
    let mut page = server.connect();
    page.send(format!("GET {url} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"));
    assert_eq!(page.response_to_head().status, 200);
    page
}

/// What the page is told when this file changes.
fn told(server: &Server, page: &mut Conn, file: &str, text: &str) -> String {
    server.write(file, text);
    page.read_until("]")
}

#[test]
fn a_page_is_told_of_a_changed_file_when_it_can_be_had() {
    let worker = "<?php $text = include __DIR__ . '/text.php'; \
                  while (frankenphp_handle_request(function () use ($text) { echo $text; })) {}";
    let site = format!("{HUB}php_server {{\nhot_reload\nworker ROOT/worker.php 1\n}}");
    let server = Setup::new()
        .site(&site)
        .file("worker.php", worker)
        .file("text.php", "<?php return 'first';")
        .file("url.php", SHOW_URL)
        .start();
    assert_eq!(server.get("/worker.php").text(), "first");
    let mut page = subscribed(&server);
    let event = told(&server, &mut page, "text.php", "<?php return 'second';");
    assert!(event.contains("data: [{\"path_name\":\"www/text.php\"}]"), "{event}");
    assert_eq!(server.get("/worker.php").text(), "second");
    server.stop();
}

#[test]
fn a_style_sheet_restarts_nothing_and_other_files_are_not_told_of() {
    let site = format!(
        "{HUB}php_server {{\nhot_reload ROOT/css {{\ntopic changes\nwatch \"ROOT/js/**/*.{{js,mjs}}\"\n}}\n}}"
    );
    let server = Setup::new()
        .site(&site)
        .file("css/a.css", "a {}")
        .file("js/deep/a.js", "1")
        .file("url.php", SHOW_URL)
        .start();
    let engine = server.engine();
    let mut page = subscribed(&server);
    server.write("js/deep/a.txt", "2");
    let event = told(&server, &mut page, "css/a.css", "a { color: red }");
    assert!(event.contains("[{\"path_name\":\"www/css/a.css\"}]"), "{event}");
    let event = told(&server, &mut page, "js/deep/a.js", "22");
    assert!(event.contains("[{\"path_name\":\"www/js/deep/a.js\"}]"), "{event}");
    assert_eq!(server.engine(), engine);
    server.stop();
}

#[test]
fn a_reload_begins_and_ends_it() {
    let caddyfile = |option: &str| {
        format!(
            "{{\nadmin ADMIN\n}}\nhttp://:PORT {{\nbind LOOPBACK\nroot ROOT\n{HUB}php_server {{\n{option}\n}}\n}}"
        )
    };
    let server = Setup::new().caddyfile(&caddyfile("")).file("url.php", SHOW_URL).start();
    let reload = |option: &str| {
        server.write_caddyfile(&caddyfile(option));
        server.admin().request("POST", "/regent/reload").send().expect(200);
    };
    assert_eq!(server.get("/url.php").text(), "none");
    reload("hot_reload ROOT/*.txt");
    let mut page = subscribed(&server);
    let event = told(&server, &mut page, "a.txt", "1");
    assert!(event.contains("www/a.txt"), "{event}");
    reload("");
    assert_eq!(server.get("/url.php").text(), "none");
    server.stop();
}

#[test]
fn php_server_has_a_hub_if_asked_for() {
    let server = Setup::new()
        .arguments(&["php-server", "--listen", "ADDRESS", "--root", "ROOT", "--mercure"])
        .env("MERCURE_PUBLISHER_JWT_KEY", "a publisher's secret of some length")
        .env("MERCURE_SUBSCRIBER_JWT_KEY", "a subscriber's secret of some length")
        .file(
            "index.php",
            "<?php echo function_exists('mercure_publish') ? mercure_publish('t', 'x') : 'none';",
        )
        .start();
    assert_eq!(server.get("/.well-known/mercure?topic=x").status, 401);
    assert!(server.get("/").expect(200).text().starts_with("urn:uuid:"));
    server.stop();
}

#[test]
fn php_server_says_what_a_hub_needs() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = regent_tests::regent_command(directory.path());
    let output = command.args(["php-server", "--mercure", "--listen", "127.0.0.1:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--mercure") && said.contains("MERCURE_PUBLISHER_JWT_KEY"), "{said}");
    assert!(!output.status.success());
}
