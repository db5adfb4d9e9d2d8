//! `templates`: responses that are executed as Go templates.
#![forbid(unsafe_code)]

use regent_tests::{Response, Server, Setup};

#[track_caller]
fn assert_text(server: &Server, target: &str, text: &str) -> Response {
    let response = server.get(target).expect(200);
    assert_eq!(response.text(), text, "{target}");
    response
}

#[test]
fn files_and_scripts_are_templates() {
    let server = Setup::new()
        .file("page.html", "{{.Req.URL.Query.Get \"x\"}} {{placeholder \"http.request.uri.path\"}} {{include \"part.html\" 7}}")
        .file("part.html", "<{{index .Args 0}}>")
        .file("style.css", "{{1}}")
        .file("hello.php", "<?php header('X-Script: yes'); echo '{{.Req.Method}} ', str_repeat('x', 100000);")
        .file("coded.php", "<?php header('Content-Encoding: gzip'); echo gzencode('{{1}}');")
        .site("templates\n\tphp_server")
        .start();
    let page = assert_text(&server, "/page.html?x=hi", "hi /page.html <7>");
    assert_eq!(page.header("content-length"), Some("17"));
    for gone in ["etag", "last-modified", "accept-ranges"] {
        assert_eq!(page.header(gone), None, "{gone}");
    }
    assert_text(&server, "/style.css", "{{1}}");
    let script = server.get("/hello.php").expect(200);
    assert_eq!((script.text().len(), &script.text()[..4]), (100_004, "GET "));
    assert_eq!(script.header("x-script"), Some("yes"));
    assert_eq!(server.get("/coded.php").expect(200).header("content-encoding"), Some("gzip"));
    server.stop();
}

#[test]
fn a_part_of_a_template_is_never_sent() {
    let server = Setup::new()
        .file("page.html", "{{/* secret */}}text")
        .file("film.mp4", "0123456789")
        .site("templates\n\tfile_server")
        .start();
    let range = |target: &str| {
        let mut conn = server.connect();
        conn.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\nRange: bytes=3-8\r\n\r\n"));
        conn.response()
    };
    assert_eq!(range("/page.html").expect(200).text(), "text");
    assert_eq!(range("/film.mp4").expect(206).text(), "345678");
    let mut conn = server.connect();
    conn.send("HEAD /page.html HTTP/1.1\r\nHost: x\r\n\r\n");
    let head = conn.head().unwrap().unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, None));
    server.stop();
}

#[test]
fn other_pages_of_the_site_are_included() {
    let server = Setup::new()
        .file("page.html", "[{{httpInclude \"/part.php?a=1\"}}|{{httpInclude \"/text\"}}]{{if eq (placeholder \"http.request.host\") \"x\"}}{{httpInclude \"/text\"}}{{end}}")
        .file("part.php", "<?php echo $_SERVER['REQUEST_METHOD'], $_GET['a'], $_SERVER['HTTP_ACCEPT_ENCODING'];")
        .file("loop.html", "{{httpInclude \"/loop.html\"}}")
        .file("missing.html", "{{httpInclude \"/none.html\"}}")
        .site("@pages path *.html\n\ttemplates @pages\n\trespond /text text\n\tphp_server {\n\t\ttry_files {path} =404\n\t}")
        .start();
    let mut conn = server.connect();
    conn.send("GET /page.html HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(conn.response().expect(200).text(), "[GET1identity|text]text");
    server.get("/loop.html").expect(500);
    server.get("/missing.html").expect(500);
    server.stop();
}

#[test]
fn templates_change_fields_and_ask_for_errors() {
    let server = Setup::new()
        .file("a.html", "{{.RespHeader.Set \"X-A\" \"b\"}}{{.RespHeader.Del \"X-Gone\"}}a")
        .file("none.html", "{{if not (fileExists \"x\")}}{{httpError 404}}{{end}}")
        .file("wrong.html", "{{if}}")
        .file("error.html", "<{{placeholder \"http.error.status_code\"}}>")
        .site(
            "header Cache-Control no-store\n\ttemplates\n\tfile_server\n\thandle_errors {\n\t\ttemplates\n\t\t\
             rewrite /error.html\n\t\tfile_server\n\t}",
        )
        .start();
    let page = assert_text(&server, "/a.html", "a");
    assert_eq!((page.header("x-a"), page.header("cache-control")), (Some("b"), Some("no-store")));
    assert_eq!(server.get("/none.html").expect(404).text(), "<404>");
    assert_eq!(server.get("/wrong.html").expect(500).text(), "<500>");
    assert_eq!(server.get("/no-such-file").expect(404).text(), "<404>");
    server.stop();
}

#[test]
fn one_that_would_run_for_ever_is_an_error_and_harms_nobody() {
    let server = Setup::new()
        .file("bomb.html", "{{define \"a\"}}{{template \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}")
        .file("big.php", "<?php echo str_repeat('x', 17 << 20);")
        .file("index.html", "{{1}}")
        .site("templates\n\tphp_server")
        .start();
    server.get("/bomb.html").expect(500);
    server.get("/big.php").expect(500);
    assert_text(&server, "/", "1");
    server.stop();
}
