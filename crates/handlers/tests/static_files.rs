//! `file_server`: what is served, and how.

use crate::common::*;
use regent_config::*;
use regent_handlers::{Action, Sites, Target};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

fn serving(dir: &Path, server: FileServer) -> Sites {
    site(vec![root(dir), always(Handler::FileServer(server))])
}

#[test]
fn types_come_from_the_ending() {
    let dir = directory(&[
        ("a.html", ""),
        ("a.js", ""),
        ("a.css", ""),
        ("a.png", ""),
        ("a.json", ""),
        ("a.md", ""),
        ("a.nope", ""),
        ("a", ""),
    ]);
    let sites = serving(dir.path(), FileServer::default());
    for (uri, want) in [
        ("/a.html", "text/html; charset=utf-8"),
        ("/a.js", "text/javascript; charset=utf-8"),
        ("/a.css", "text/css; charset=utf-8"),
        ("/a.md", "text/markdown; charset=utf-8"),
        ("/a.png", "image/png"),
        ("/a.json", "application/json"),
        ("/a.nope", "application/octet-stream"),
        ("/a", "application/octet-stream"),
    ] {
        let answer = get(&sites, uri);
        assert_eq!((answer.status, answer.header("content-type")), (200, want), "{uri}");
    }
}

#[test]
fn directories_have_indexes_and_canonical_paths() {
    let dir = directory(&[("index.html", "top"), ("d/index.txt", "d"), ("empty/", ""), ("f", "f")]);
    let sites = serving(dir.path(), FileServer::default());
    assert_eq!(get(&sites, "/").text(), "top");
    assert_eq!(get(&sites, "/d/").text(), "d");
    for (uri, location) in
        [("/d?x=1", "/d/?x=1"), ("/f/", "/f"), ("//x/../d", "/d/"), ("/index.html/", "/index.html")]
    {
        let answer = get(&sites, uri);
        assert_eq!((answer.status, answer.header("location")), (308, location), "{uri}");
    }
    assert_eq!(get(&sites, "/empty/").status, 404);
    assert_eq!(get(&sites, "/empty").status, 404);
    let lax = serving(dir.path(), FileServer { canonical_uris: false, ..FileServer::default() });
    assert_eq!(get(&lax, "/d").text(), "d");
    assert_eq!(get(&lax, "/f/").text(), "f");
}

#[test]
fn a_stripped_prefix_is_kept_in_redirects() {
    let dir = directory(&[("d/index.html", "d"), ("index.html", "top")]);
    let strip = always(Handler::Rewrite(Rewrite::StripPrefix(Template::text("/files"))));
    let files = always(Handler::FileServer(FileServer::default()));
    let sites = site(vec![root(dir.path()), strip, files]);
    assert_eq!(get(&sites, "/files/d").header("location"), "/files/d/");
    assert_eq!(get(&sites, "/files/").text(), "top");
}

#[test]
fn other_methods_are_refused() {
    let dir = directory(&[("f", "f")]);
    let sites = serving(dir.path(), FileServer::default());
    let answer = send(&sites, "POST", "/f", &[]);
    assert_eq!((answer.status, answer.header("allow")), (405, "GET, HEAD"));
    assert_eq!(send(&sites, "POST", "/none", &[]).status, 404);
    let head = send(&sites, "HEAD", "/f", &[("range", "bytes=0-0")]);
    assert_eq!((head.status, head.header("content-length")), (200, "1"));
}

#[test]
fn a_rewritten_method_keeps_the_framing_of_the_clients() {
    let dir = directory(&[("f", "content")]);
    for (sent, rewritten, body) in
        [("GET", "HEAD", "content"), ("HEAD", "GET", ""), ("POST", "GET", "content")]
    {
        let method = always(Handler::Rewrite(Rewrite::Method(Template::text(rewritten))));
        let files = always(Handler::FileServer(FileServer::default()));
        let sites = site(vec![root(dir.path()), method, files]);
        let answer = send(&sites, sent, "/f", &[]);
        assert_eq!(
            (answer.status, answer.text(), answer.header("content-length")),
            (200, body, "7"),
            "{sent}"
        );
    }
}

#[test]
fn pass_thru_goes_to_the_next_route() {
    let dir = directory(&[("f", "f")]);
    let files = FileServer { pass_thru: true, ..FileServer::default() };
    let sites = site(vec![root(dir.path()), always(Handler::FileServer(files)), always(respond("next"))]);
    assert_eq!(get(&sites, "/f").text(), "f");
    assert_eq!(get(&sites, "/none").text(), "next");
    assert_eq!(send(&sites, "POST", "/f", &[]).text(), "next");
}

#[test]
fn a_configured_status_is_used() {
    let dir = directory(&[("sorry.html", "sorry")]);
    let sites = serving(
        dir.path(),
        FileServer { status: Some(Box::new(Template::text("503"))), ..FileServer::default() },
    );
    let answer = send(&sites, "GET", "/sorry.html", &[("if-none-match", "*"), ("range", "bytes=0-0")]);
    assert_eq!((answer.status, answer.text()), (503, "sorry"));
}

#[test]
fn special_files_are_not_there() {
    let dir = directory(&[("f", "f")]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.path().join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o644),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("device")).unwrap();
    std::os::unix::fs::symlink("loop", dir.path().join("loop")).unwrap();
    let sites = serving(dir.path(), FileServer::default());
    for uri in ["/fifo", "/socket", "/device", "/loop", "/f/x", &format!("/{}", "x".repeat(300))] {
        assert_eq!(get(&sites, uri).status, 404, "{uri}");
    }
}

#[test]
fn symlinks_are_followed() {
    let (dir, other) = (directory(&[("f", "")]), directory(&[("x", "elsewhere")]));
    std::os::unix::fs::symlink(other.path().join("x"), dir.path().join("link")).unwrap();
    assert_eq!(get(&serving(dir.path(), FileServer::default()), "/link").text(), "elsewhere");
}

#[test]
fn hidden_files_are_not_there() {
    let dir =
        directory(&[(".env", ""), ("a.bak", ""), (".well-known/x", "yes"), (".git/config", ""), ("ok", "")]);
    let sites =
        serving(dir.path(), FileServer { hide: vec![Template::text("*.bak")], ..FileServer::default() });
    for (uri, want) in [
        ("/.env", 404),
        ("/%2eenv", 404),
        ("/a.bak", 404),
        ("/.git/config", 404),
        ("/.well-known/x", 200),
        ("/ok", 200),
    ] {
        assert_eq!(get(&sites, uri).status, want, "{uri}");
    }
}

#[test]
fn conditional_requests() {
    let dir = directory(&[("f.txt", "content")]);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    File::options().write(true).open(dir.path().join("f.txt")).unwrap().set_modified(time).unwrap();
    let sites = serving(dir.path(), FileServer::default());
    let first = get(&sites, "/f.txt");
    let etag = first.header("etag").to_owned();
    assert_eq!(first.header("last-modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert!(etag.starts_with('"') && etag.ends_with('"'));

    let again = send(&sites, "GET", "/f.txt", &[("if-none-match", &etag)]);
    assert_eq!((again.status, again.text(), again.header("etag")), (304, "", etag.as_str()));
    assert!(!again.headers.contains_key("content-length") && !again.headers.contains_key("content-type"));
    assert_eq!(send(&sites, "HEAD", "/f.txt", &[("if-none-match", &etag)]).status, 304);
    assert_eq!(send(&sites, "GET", "/f.txt", &[("if-match", "\"other\"")]).status, 412);

    std::fs::write(dir.path().join("f.txt"), "changed").unwrap();
    assert_ne!(get(&sites, "/f.txt").header("etag"), etag);
}

#[test]
fn ranges() {
    let dir = directory(&[("f.txt", "0123456789")]);
    let sites = serving(dir.path(), FileServer::default());
    assert_eq!(get(&sites, "/f.txt").header("accept-ranges"), "bytes");
    for (range, status, body, content_range) in [
        ("bytes=2-4", 206, "234", "bytes 2-4/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"),
        ("bytes=5-", 206, "56789", "bytes 5-9/10"),
        ("bytes=20-", 416, "416 Range Not Satisfiable\n", "bytes */10"),
        ("bytes=4-2", 200, "0123456789", ""),
    ] {
        let answer = send(&sites, "GET", "/f.txt", &[("range", range)]);
        assert_eq!(
            (answer.status, answer.text(), answer.header("content-range")),
            (status, body, content_range),
            "{range}"
        );
    }
    let etag = get(&sites, "/f.txt").header("etag").to_owned();
    assert_eq!(send(&sites, "GET", "/f.txt", &[("range", "bytes=0-0"), ("if-range", &etag)]).status, 206);
    assert_eq!(send(&sites, "GET", "/f.txt", &[("range", "bytes=0-0"), ("if-range", "\"old\"")]).status, 200);
}

#[test]
fn several_ranges_are_a_multipart_answer() {
    let dir = directory(&[("f.txt", "0123456789")]);
    let answer =
        send(&serving(dir.path(), FileServer::default()), "GET", "/f.txt", &[("range", "bytes=0-1,-2")]);
    assert_eq!(answer.status, 206);
    let boundary = answer.header("content-type").strip_prefix("multipart/byteranges; boundary=").unwrap();
    let part = |range: &str, text: &str| {
        format!(
            "--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes {range}/10\r\n\r\n{text}\r\n"
        )
    };
    let want = part("0-1", "01") + &part("8-9", "89") + &format!("--{boundary}--\r\n");
    assert_eq!(answer.text(), want);
}

#[test]
fn precompressed_copies_are_chosen_by_the_client() {
    let dir = directory(&[
        ("f.js", "plain"),
        ("f.js.gz", "gzipped"),
        ("f.js.br", "brotli"),
        ("g.js", "only plain"),
    ]);
    let precompressed = ["br", "zstd", "gzip"].map(str::to_owned).to_vec();
    let sites = serving(dir.path(), FileServer { precompressed, ..FileServer::default() });
    for (accept, body, coding) in [
        ("gzip, br, zstd", "brotli", "br"),
        ("gzip;q=1, br;q=0.5", "gzipped", "gzip"),
        ("zstd", "plain", ""),
        ("", "plain", ""),
    ] {
        let answer = send(&sites, "GET", "/f.js", &[("accept-encoding", accept)]);
        assert_eq!((answer.text(), answer.header("content-encoding")), (body, coding), "{accept}");
        assert_eq!(answer.header("vary"), "Accept-Encoding");
        assert_eq!(answer.header("content-type"), "text/javascript; charset=utf-8");
    }
    assert_eq!(send(&sites, "GET", "/g.js", &[("accept-encoding", "br")]).text(), "only plain");
    let tags =
        |accept| send(&sites, "GET", "/f.js", &[("accept-encoding", accept)]).header("etag").to_owned();
    assert_ne!(tags("gzip"), tags("br"));
}

#[test]
fn large_files_arrive_whole() {
    let content = "x".repeat(1_000_000);
    let dir = directory(&[("big", &content)]);
    let sites = serving(dir.path(), FileServer::default());
    assert_eq!(get(&sites, "/big").text(), content);
    assert_eq!(send(&sites, "GET", "/big", &[("range", "bytes=1-900000")]).body.len(), 900_000);
}

#[test]
fn a_header_directive_decides_the_type() {
    let dir = directory(&[("f.txt", "x")]);
    let set = |name: &str, value: &str| HeaderOp {
        kind: HeaderOpKind::Set,
        name: Template::text(name),
        value: Template::text(value),
        deferred: false,
    };
    let header =
        always(Handler::Header(vec![set("Content-Type", "text/x-mine"), set("Cache-Control", "no-store")]));
    let sites = site(vec![root(dir.path()), header, always(Handler::FileServer(FileServer::default()))]);
    let answer = get(&sites, "/f.txt");
    assert_eq!((answer.header("content-type"), answer.header("cache-control")), ("text/x-mine", "no-store"));
    assert_eq!(answer.headers.get_all("content-type").iter().count(), 1);
}

/// From the second request on, a file that was not changed for some seconds is in memory; every build takes longer.
#[test]
fn a_file_in_memory_is_answered_as_from_the_disk() {
    let content = include_str!("../Cargo.toml");
    let sites = serving(Path::new(env!("CARGO_MANIFEST_DIR")), FileServer::default());
    let etag = send(&sites, "HEAD", "/Cargo.toml", &[]).header("etag").to_owned();
    for _ in 0..2 {
        let whole = get(&sites, "/Cargo.toml");
        assert_eq!((whole.text(), whole.header("etag")), (content, &*etag));
        let part = send(&sites, "GET", "/Cargo.toml", &[("range", "bytes=1-8")]);
        assert_eq!((part.status, part.text()), (206, &content[1..9]));
        let parts = send(&sites, "GET", "/Cargo.toml", &[("range", "bytes=1-8,-4")]);
        let (first, last) = (&content[1..9], &content[content.len() - 4..]);
        assert!(parts.text().contains(&format!("\r\n\r\n{first}\r\n--")), "{}", parts.text());
        assert!(parts.text().contains(&format!("\r\n\r\n{last}\r\n--")), "{}", parts.text());
        let unchanged = send(&sites, "GET", "/Cargo.toml", &[("if-none-match", &etag)]);
        assert_eq!((unchanged.status, unchanged.text()), (304, ""));
        let head = send(&sites, "HEAD", "/Cargo.toml", &[]);
        assert_eq!(head.header("content-length"), content.len().to_string());
    }
}

#[test]
fn a_file_that_changes_is_answered_anew_at_once() {
    let dir = directory(&[("f", "one")]);
    let sites = serving(dir.path(), FileServer::default());
    for text in ["one", "two", "three"] {
        std::fs::write(dir.path().join("f"), text).unwrap();
        assert_eq!(get(&sites, "/f").text(), text);
        assert_eq!(get(&sites, "/f").text(), text);
    }
    std::fs::remove_file(dir.path().join("f")).unwrap();
    assert_eq!(get(&sites, "/f").status, 404);
}

#[test]
fn source_is_hidden_wherever_php_stands_in_the_site() {
    let dir = directory(&[("a.php", "<?php secret();"), ("a.css", "css")]);
    let blocks = [
        "handle /x* {\nphp\n}",
        "handle_path /x/* {\nphp\n}",
        "route /x* {\nroute {\nphp\n}\n}",
        "handle_errors {\nphp\n}",
        "handle_errors 404 {\nroute {\nphp_server\n}\n}",
        "intercept {\n@gone status 410\nhandle_response @gone {\nphp\n}\n}",
        "reverse_proxy /x 127.0.0.1:1 {\nhandle_response {\nphp\n}\n}",
        "reverse_proxy /x 127.0.0.1:1 {\nhandle_response {\nreverse_proxy 127.0.0.1:1 {\nhandle_response {\nphp\n}\n}\n}\n}",
        "forward_auth /x 127.0.0.1:1 {\nuri /\nhandle_response {\nphp\n}\n}",
        "invoke /x named",
        // Another server runs it, and this one must not show it either.
        "php_fastcgi /x* 127.0.0.1:1",
        "reverse_proxy /x 127.0.0.1:1 {\ntransport fastcgi {\nsplit .php\n}\n}",
    ];
    for block in blocks {
        let root = dir.path().display();
        let text =
            format!("&(named) {{\nphp\n}}\n:80 {{\nroot {root}\n{block}\nhandle /a* {{\nfile_server\n}}\n}}");
        let sites = caddyfile(&text);
        assert_eq!(get(&sites, "/a.css").text(), "css", "{block}");
        match sites.route(&mut exchange("GET", "/a.php", &[])) {
            Action::Respond(response) => assert_eq!(response.status(), 404, "{block}"),
            // Its page of the error is a script's.
            Action::Forward(Target::Php(_)) => {}
            _ => panic!("{block}"),
        }
    }
}

/// A site of a directory whose `header` has this ETag.
fn serving_with_etag(dir: &Path, etag: &str) -> Sites {
    let root = dir.display();
    caddyfile(&format!(
        ":80 {{\nroot {root}\nheader ETag `{etag}`\nfile_server {{\nprecompressed gzip\netag_file_extensions .etag\n}}\n}}"
    ))
}

#[test]
fn a_validator_that_was_set_before_the_file_server_is_kept() {
    let dir = directory(&[
        ("a.css", "css"),
        ("b.css", "css"),
        ("b.css.gz", "gz"),
        ("c.css", ""),
        ("c.css.etag", "\"own\""),
    ]);
    let sites = serving_with_etag(dir.path(), "\"release-7\"");
    let gzip = ("accept-encoding", "gzip");
    for (uri, fields, status) in [
        ("/a.css", &[][..], 200),
        ("/b.css", &[gzip][..], 200),
        ("/c.css", &[], 200),
        ("/a.css", &[("if-none-match", "\"release-7\"")], 304),
        ("/a.css", &[("if-none-match", "W/\"release-7\"")], 304),
        ("/a.css", &[("if-none-match", "\"release-6\"")], 200),
        ("/a.css", &[("if-match", "\"release-7\"")], 200),
        ("/a.css", &[("range", "bytes=0-1"), ("if-range", "\"release-7\"")], 206),
        ("/a.css", &[("range", "bytes=0-1"), ("if-range", "\"release-6\"")], 200),
    ] {
        let answer = send(&sites, "GET", uri, fields);
        assert_eq!((answer.status, answer.header("etag")), (status, "\"release-7\""), "{uri} {fields:?}");
    }
    assert_eq!(send(&sites, "GET", "/a.css", &[("if-match", "\"release-6\"")]).status, 412);
}

#[test]
fn a_weak_validator_is_no_strong_one() {
    let dir = directory(&[("a.css", "css")]);
    let sites = serving_with_etag(dir.path(), "W/\"7\"");
    for (fields, status) in [
        (&[("if-none-match", "W/\"7\"")][..], 304),
        (&[("if-none-match", "\"7\"")], 304),
        (&[("if-match", "W/\"7\"")], 412),
        (&[("if-match", "\"7\"")], 412),
        (&[("range", "bytes=0-1"), ("if-range", "W/\"7\"")], 200),
    ] {
        assert_eq!(send(&sites, "GET", "/a.css", fields).status, status, "{fields:?}");
    }
}

#[test]
fn fields_of_the_file_server_stand_once() {
    let dir = directory(&[("a.css", "css"), ("a.css.gz", "gz")]);
    let root = dir.path().display();
    let sites = caddyfile(&format!(
        ":80 {{\nroot {root}\nheader {{\nAccept-Ranges none\nContent-Encoding br\nLast-Modified never\n}}\n\
         file_server {{\nprecompressed gzip\n}}\n}}"
    ));
    let answer = send(&sites, "GET", "/a.css", &[("accept-encoding", "gzip")]);
    for (name, want) in [("accept-ranges", "bytes"), ("content-encoding", "gzip")] {
        let values: Vec<_> = answer.headers.get_all(name).iter().collect();
        assert_eq!(values, [want], "{name}");
    }
    assert_eq!(answer.headers.get_all("last-modified").iter().count(), 1);
}

#[test]
fn the_request_says_which_index_and_which_status() {
    let dir = directory(&[("a.test.html", "of a"), ("index.html", "of all"), ("gone/a.test.html", "gone")]);
    let root = dir.path().display();
    let sites = caddyfile(&format!(
        ":80 {{\nroot {root}\nfile_server /gone/* {{\nindex {{host}}.html\nstatus {{query.s}}\n}}\n\
         file_server {{\nindex {{host}}.html ../{{header.X-Up}} index.html\n}}\n}}"
    ));
    let of_host = |uri: &str, host: &str| send(&sites, "GET", uri, &[("host", host)]);
    assert_eq!(of_host("/", "a.test").text(), "of a");
    assert_eq!(of_host("/", "b.test").text(), "of all");
    let up = send(&sites, "GET", "/gone/", &[("host", "b.test"), ("x-up", "../index.html")]);
    assert_eq!(up.status, 404);
    assert_eq!(of_host("/gone/?s=410", "a.test").status, 410);
    assert_eq!(of_host("/gone/?s=x", "a.test").status, 500);
}

#[test]
fn a_page_of_an_error_can_have_its_status_written_down() {
    let dir = directory(&[("error.html", "page")]);
    let root = dir.path().display();
    let sites = caddyfile(&format!(
        ":80 {{\nroot {root}\nerror /x 418\nhandle_errors {{\nrewrite /error.html\nfile_server {{\nstatus {{err.status_code}}\n}}\n}}\n}}"
    ));
    let answer = get(&sites, "/x");
    assert_eq!((answer.status, answer.text()), (418, "page"));
}
