//! A Symfony application, in classic mode and in worker mode.
#![forbid(unsafe_code)]

use regent_tests::apps::{check_unparsable_requests, copy_tree, fixture, packages_of};
use regent_tests::{Server, Setup, in_parallel};

#[derive(Clone, Copy, Debug)]
enum Mode {
    Classic,
    Worker,
}

fn start(mode: Mode) -> Server {
    let library = packages_of("symfony").join("usr/share/php");
    // Deprecations are of this Symfony's age, not of the server.
    let php = "php_ini error_reporting 8191\n\t\tphp_ini zend.assertions -1";
    let library = library.display();
    let (php_options, site) = match mode {
        Mode::Classic => (
            format!("num_threads 2\n\t\t{php}"),
            format!("php_server {{\n\t\troot ROOT/public\n\t\tenv SYMFONY_LIBRARY {library}\n\t}}"),
        ),
        Mode::Worker => (
            format!(
                "num_threads 3\n\t\t{php}\n\t\tworker {{\n\t\t\tfile ROOT/public/worker.php\n\t\t\tnum 1\n\t\t\tenv SYMFONY_LIBRARY {library}\n\t\t}}"
            ),
            "php_server {\n\t\troot ROOT/public\n\t\tindex worker.php\n\t}".to_owned(),
        ),
    };
    let setup = Setup::new().php_options(&php_options).site(&site);
    copy_tree(&fixture("symfony"), &setup.root());
    setup.start()
}

fn memory_in_php(server: &Server) -> u64 {
    server.get("/probe").expect(200).json()["memory"].as_u64().expect("a number of bytes")
}

/// Goes through the whole application.
fn check_application(server: &Server) {
    assert!(server.get("/?name=%3CAda%3E").expect(200).text().contains("<h1>Hello, &lt;Ada&gt;</h1>"));
    let note = server.get("/notes/12").expect(200).text();
    assert!(note.contains("Note &lt;12&gt;") && note.contains("lookups: 1"), "services are reset: {note}");
    let created = server.post("/notes", "application/json", r#"{"title":"New"}"#).expect(201);
    assert_eq!(created.header("location"), Some("/notes/7"));
    assert_eq!(created.json(), serde_json::json!({"title": "New", "length": 15}));
    server.get("/notes/none").expect(404);
    server.post("/notes/12", "text/plain", "x").expect(405);
    server.get("/failure").expect(500);
    assert_eq!(server.get("/stream").expect(200).text(), "one\ntwo\nthree\n");
    let probe = server.get("/probe?x=1").expect(200).json();
    assert_eq!(probe["uri"], "/probe?x=1");
    assert_eq!(probe["base_url"], "");
    assert_eq!(probe["scheme_and_host"], format!("http://{}", server.address()));
}

/// Counts the visits of two visitors who take turns.
fn check_sessions(server: &Server) {
    let visit = |cookie: Option<&str>| {
        let request = server.request("GET", "/visits");
        let request = match cookie {
            Some(cookie) => request.header("Cookie", cookie),
            None => request,
        };
        let answer = request.send().expect(200);
        let cookie =
            answer.header("set-cookie").and_then(|cookie| cookie.split(';').next()).map(str::to_owned);
        (answer.json()["visits"].as_u64().expect("a number"), cookie)
    };
    let (one, ada) = visit(None);
    let (two, grace) = visit(None);
    assert_eq!((one, two), (1, 1));
    let (ada, grace) = (ada.expect("a cookie"), grace.expect("a cookie"));
    assert_ne!(ada, grace);
    for expected in 2..5 {
        assert_eq!(visit(Some(&ada)).0, expected);
        assert_eq!(visit(Some(&grace)).0, expected);
    }
}

#[test]
fn it_runs_in_classic_mode() {
    let server = start(Mode::Classic);
    check_application(&server);
    check_sessions(&server);
    server.stop();
}

#[test]
fn it_runs_in_worker_mode() {
    let server = start(Mode::Worker);
    check_application(&server);
    check_sessions(&server);
    check_application(&server);
    server.stop();
}

#[test]
fn ten_thousand_requests_in_worker_mode_leave_memory_as_it_was() {
    let server = start(Mode::Worker);
    let ask = |count: usize| {
        in_parallel(4, |client| {
            let mut conn = server.connect();
            for i in 0..count / 4 {
                conn.send(format!("GET /notes/{} HTTP/1.1\r\nHost: x\r\n\r\n", client * 10 + i % 10));
                assert!(conn.response().expect(200).text().contains("lookups: 1"));
            }
        });
    };
    ask(1000);
    let before = (memory_in_php(&server), server.memory().1.written);
    ask(10_000);
    let after = (memory_in_php(&server), server.memory().1.written);
    println!("memory_get_usage: {} → {} bytes; engine: {} → {} bytes", before.0, after.0, before.1, after.1);
    assert!(after.0 <= before.0 + (64 << 10), "PHP's memory grew from {} to {} bytes", before.0, after.0);
    // A hundred bytes a request would be a megabyte; less is the allocator's and opcache's own.
    assert!(after.1 <= before.1 + (1 << 20), "the engine grew from {} to {} bytes", before.1, after.1);
    server.stop();
}

/// Its handler of errors throws, as that of each Symfony application.
#[test]
fn requests_that_php_cannot_fully_parse_end_no_worker() {
    let server = start(Mode::Worker);
    check_unparsable_requests(&server, "/probe");
    server.stop();
}
