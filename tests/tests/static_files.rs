//! Files, and the directives around them.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup};

/// The path of a request, sent as it is: with dots and percent signs.
fn raw_status(server: &Server, target: &str) -> u16 {
    let raw = server.raw(format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    raw.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{target}: {raw}"))
}

// --- file_server ---------------------------------------------------------------------------------------------------

#[test]
fn a_file_has_its_type_length_and_validators() {
    let server = Setup::new()
        .site("file_server")
        .file("page.html", "<p>page</p>")
        .file("style.css", "a {}")
        .file("app.js", "1;")
        .file("image.svg", "<svg/>")
        .file("data.json", "{}")
        .file("a b.txt", "spaced")
        .start();
    let page = server.get("/page.html").expect(200);
    assert_eq!(page.text(), "<p>page</p>");
    assert_eq!(page.header("content-length"), Some("11"));
    assert!(page.header("last-modified").is_some_and(|date| date.ends_with(" GMT")));
    assert!(page.header("etag").is_some_and(|tag| tag.ends_with('"')));
    assert_eq!(page.header("accept-ranges"), Some("bytes"));
    for (path, kind) in [
        ("/page.html", "text/html; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/image.svg", "image/svg+xml"),
        ("/data.json", "application/json"),
    ] {
        assert_eq!(server.get(path).expect(200).header("content-type"), Some(kind), "{path}");
    }
    assert_eq!(server.get("/a%20b.txt").expect(200).text(), "spaced");
    server.stop();
}

#[test]
fn what_has_not_changed_is_304() {
    let server = Setup::new().site("file_server").file("page.html", "<p>page</p>").start();
    let page = server.get("/page.html").expect(200);
    let tag = page.header("etag").expect("a tag");
    let date = page.header("last-modified").expect("a date");
    let again =
        server.request("GET", "/page.html").header("If-None-Match", format!("\"other\", {tag}")).send();
    assert!(again.expect(304).body.is_empty());
    server.request("GET", "/page.html").header("If-Modified-Since", date).send().expect(304);
    server.request("GET", "/page.html").header("If-None-Match", "\"other\"").send().expect(200);
    server.request("GET", "/page.html").header("If-Match", "\"other\"").send().expect(412);
    server.stop();
}

#[test]
fn ranges_are_served() {
    let server = Setup::new().site("file_server").file("digits.txt", "0123456789").start();
    let range = |range: &str| server.request("GET", "/digits.txt").header("Range", range).send();
    for (asked, content, described) in [
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=0-99", "0123456789", "bytes 0-9/10"),
    ] {
        let answer = range(asked).expect(206);
        assert_eq!(
            (answer.text().as_str(), answer.header("content-range")),
            (content, Some(described)),
            "{asked}"
        );
    }
    assert_eq!(range("bytes=10-").expect(416).header("content-range"), Some("bytes */10"));
    assert_eq!(range("lines=1-2").expect(200).text(), "0123456789", "an unknown unit is ignored");
    server.stop();
}

#[test]
fn directories_have_an_index_and_a_slash() {
    let server = Setup::new()
        .site("file_server")
        .file("docs/index.html", "the index")
        .file("bare/file.txt", "x")
        .start();
    assert_eq!(server.get("/docs/").expect(200).text(), "the index");
    let redirect = server.get("/docs?q=1").expect(308);
    assert_eq!(redirect.header("location"), Some("/docs/?q=1"));
    server.get("/bare/").expect(404);
    let redirect = server.get("/bare/file.txt/").expect(308);
    assert_eq!(redirect.header("location"), Some("/bare/file.txt"));
    server.stop();
}

#[test]
fn a_double_slash_does_not_redirect_to_another_host() {
    let server = Setup::new().site("file_server").file("evil.test/index.html", "x").start();
    let raw = server.raw("GET //evil.test HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").to_lowercase();
    assert!(!raw.contains("location: //"), "{raw}");
    server.stop();
}

#[test]
fn nothing_outside_the_root_is_served() {
    let setup = Setup::new().site("file_server").file("inside.txt", "inside");
    std::fs::write(setup.directory().join("secret.txt"), "secret").expect("the directory is ours");
    let server = setup.start();
    for target in [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/x/../../secret.txt",
        "/.%2e/secret.txt",
        "/..%5csecret.txt",
        "/inside.txt%00.html",
        "//../secret.txt",
    ] {
        let raw = server.raw(format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        assert!(raw.starts_with("HTTP/1.1 4") && !raw.ends_with("secret"), "{target}: {raw}");
    }
    assert_eq!(raw_status(&server, "/x/../inside.txt"), 200);
    server.stop();
}

#[test]
fn hidden_files_stay_hidden() {
    let server = Setup::new()
        .site("file_server {\n\t\thide *.bak private\n\t}")
        .file(".env", "PASSWORD=1")
        .file(".git/config", "x")
        .file("a.bak", "x")
        .file("private/a.txt", "x")
        .file("public/a.txt", "x")
        .start();
    for path in ["/.env", "/.git/config", "/a.bak", "/private/a.txt"] {
        server.get(path).expect(404);
    }
    server.get("/public/a.txt").expect(200);
    server.stop();
}

#[test]
fn files_take_no_posts() {
    let server = Setup::new().site("file_server").file("a.txt", "a").start();
    let refused = server.post("/a.txt", "text/plain", "x").expect(405);
    assert!(refused.header("allow").is_some_and(|allowed| allowed.contains("GET")));
    server.request("HEAD", "/a.txt").send().expect(200);
    server.stop();
}

#[test]
fn precompressed_files_are_chosen_by_the_client() {
    let server = Setup::new()
        .site("file_server {\n\t\tprecompressed br gzip\n\t}")
        .file("a.css", "plain")
        .file("a.css.gz", "as gzip")
        .file("a.css.br", "as brotli")
        .start();
    let ask =
        |accepts: &str| server.request("GET", "/a.css").header("Accept-Encoding", accepts).send().expect(200);
    let answer = ask("gzip, br");
    assert_eq!((answer.text().as_str(), answer.header("content-encoding")), ("as brotli", Some("br")));
    assert_eq!(answer.header("content-type"), Some("text/css; charset=utf-8"));
    assert!(answer.header("vary").is_some_and(|vary| vary.to_lowercase().contains("accept-encoding")));
    assert_eq!(ask("gzip").text(), "as gzip");
    assert_eq!(ask("br;q=0, identity").text(), "plain");
    assert_eq!(server.get("/a.css").text(), "plain");
    server.stop();
}

// --- php_server's files --------------------------------------------------------------------------------------------

#[test]
fn php_sources_are_never_sent_as_text() {
    let source = "<?php /* SOURCE */ echo 'ran';";
    let server =
        Setup::new().file("index.php", source).file("lib/tool.php", source).file("upper.PHP", source).start();
    for target in [
        "/index.php",
        "/lib/tool.php",
        "/lib/tool.php/",
        "/lib/tool.php/x",
        "/index%2ephp",
        "/index.php%20",
        "/index.php.",
        "/lib//tool.php",
        "/./index.php",
        "/upper.PHP",
        "/index.php%00",
        "/index.php::$DATA",
        "/lib/tool.php%2f",
    ] {
        let raw = server.raw(format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        assert!(!raw.contains("SOURCE"), "{target}: {raw}");
    }
    assert_eq!(server.get("/lib/tool.php").expect(200).text(), "ran");
    server.stop();
}

#[test]
fn php_server_goes_through_its_steps() {
    let script = "<?php echo basename(__DIR__), ' ', $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['REQUEST_URI'];";
    let server = Setup::new()
        .file("index.php", script)
        .file("blog/index.php", script)
        .file("file.txt", "a file")
        .file("page", "a file without an extension")
        .start();
    assert_eq!(server.get("/").expect(200).text(), "www /index.php /");
    assert_eq!(server.get("/blog?x=1").expect(308).header("location"), Some("/blog/?x=1"));
    assert_eq!(server.get("/blog/").expect(200).text(), "blog /blog/index.php /blog/");
    assert_eq!(server.get("/blog/post").expect(200).text(), "www /index.php /blog/post");
    assert_eq!(server.get("/file.txt").expect(200).text(), "a file");
    assert_eq!(server.get("/page").expect(200).text(), "a file without an extension");
    server.stop();
}

#[test]
fn php_server_can_leave_files_alone() {
    let server = Setup::new()
        .site("php_server {\n\t\tfile_server off\n\t}")
        .file("index.php", "<?php echo 'php';")
        .file("file.txt", "a file")
        .start();
    assert_eq!(server.get("/x").expect(200).text(), "php");
    assert_ne!(server.get("/file.txt").text(), "a file");
    server.stop();
}

// --- Directives ----------------------------------------------------------------------------------------------------

#[test]
fn routes_take_what_matches_first() {
    let server = Setup::new()
        .site(
            "@api path /api/*\n\thandle @api {\n\t\trespond \"api {path}\" 202\n\t}\n\thandle_path /files/* {\n\t\tfile_server\n\t}\n\
             \tredir /old /new?{query} 301\n\trewrite /alias /real.txt\n\t@posts method POST\n\trespond @posts \"posted\"\n\tfile_server",
        )
        .file("real.txt", "the real file")
        .start();
    assert_eq!(server.get("/api/users").expect(202).text(), "api /api/users");
    assert_eq!(server.get("/files/real.txt").expect(200).text(), "the real file");
    assert_eq!(server.get("/old?a=1").expect(301).header("location"), Some("/new?a=1"));
    assert_eq!(server.get("/alias").expect(200).text(), "the real file");
    assert_eq!(server.post("/anything", "text/plain", "x").expect(200).text(), "posted");
    server.get("/nothing").expect(404);
    server.stop();
}

#[test]
fn headers_are_set_added_defaulted_and_removed() {
    let server = Setup::new()
        .site("header {\n\t\tX-Set one\n\t\t+X-Many two\n\t\t?X-Default three\n\t\t-X-Powered-By\n\t}\n\tphp_server")
        .file("index.php", "<?php header('X-Many: one'); if (isset($_GET['own'])) { header('X-Default: own'); }")
        .start();
    let answer = server.get("/").expect(200);
    assert_eq!(answer.header("x-set"), Some("one"));
    assert_eq!(answer.header_all("x-many").len(), 2);
    assert_eq!(answer.header("x-default"), Some("three"));
    assert_eq!(answer.header("x-powered-by"), None);
    assert_eq!(server.get("/?own").header_all("x-default"), ["own"]);
    server.stop();
}

#[test]
fn sites_are_told_apart_by_host() {
    let server = Setup::new()
        .caddyfile(
            "{\n\tadmin off\n}\nhttp://:PORT {\n\tbind LOOPBACK\n\trespond \"any host\"\n}\n\
             http://one.test:PORT, http://*.wild.test:PORT {\n\tbind LOOPBACK\n\trespond \"host {host}\"\n}\n",
        )
        .start();
    let ask = |host: &str| server.request("GET", "/").header("Host", host).send().expect(200).text();
    assert_eq!(ask("one.test"), "host one.test");
    assert_eq!(ask("ONE.test:1234"), "host one.test");
    assert_eq!(ask("a.wild.test"), "host a.wild.test");
    assert_eq!(ask("a.b.wild.test"), "any host");
    assert_eq!(ask("two.test"), "any host");
    server.stop();
}

#[test]
fn a_validator_can_be_made_beforehand() {
    let server = Setup::new()
        .site("file_server {\netag_file_extensions .sha256\n}")
        .file("a.css", "a {}")
        .file("a.css.sha256", "\"abc\"\n")
        .file("b.css", "b {}")
        .start();
    assert_eq!(server.get("/a.css").expect(200).header("etag"), Some("\"abc\""));
    server.request("GET", "/a.css").header("If-None-Match", "\"abc\"").send().expect(304);
    assert_ne!(server.get("/b.css").expect(200).header("etag"), Some("\"abc\""));
    server.write("a.css.sha256", "\"def\"");
    server.request("GET", "/a.css").header("If-None-Match", "\"abc\"").send().expect(200);
    server.stop();
}
