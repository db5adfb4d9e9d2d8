//! Response headers that are larger than what the engine shares with the server for a response.
#![forbid(unsafe_code)]

use regent_tests::h2::Http2;
use regent_tests::h3::{Http3, block_on};
use regent_tests::{Response, Server, Setup, TlsClient};

/// Some tens of thousands of bytes in one field, and hundreds of fields: cache tags and debug bars.
const LARGE: &str = "<?php header('X-Tags: ' . str_repeat('t', 60_000)); \
    for ($i = 0; $i < 700; $i++) { header(\"X-Part-$i: \" . str_repeat('p', 90)); } echo 'the page';";

fn assert_large<'a>(header: impl Fn(&str) -> Option<&'a str>, text: &str) {
    assert_eq!(header("x-tags").map(str::len), Some(60_000));
    assert!((0..700).all(|number| header(&format!("x-part-{number}")).map(str::len) == Some(90)));
    assert_eq!(text, "the page");
}

#[test]
fn a_header_of_128_kib_was_a_500_with_the_page_and_without_the_header() {
    const WORKER: &str = "<?php do { $more = frankenphp_handle_request(function () { include __DIR__ . '/large.php'; }); } while ($more);";
    let server = Setup::new()
        .caddyfile(
            "{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind LOOPBACK\n\thttps_port TLSPORT\n\tauto_https disable_redirects\n\t\
             frankenphp {\n\t\tnum_threads 2\n\t\tworker ROOT/worker.php 1\n\t}\n}\n\
             http://:PORT, localhost {\n\troot ROOT\n\tphp_server\n}\n",
        )
        .env("XDG_DATA_HOME", "DIRECTORY/data")
        .file("large.php", LARGE)
        .file("worker.php", WORKER)
        .start();
    for target in ["/large.php", "/worker.php"] {
        let answer = server.get(target).expect(200);
        assert_large(|name| answer.header(name), &answer.text());
    }
    let client = TlsClient::trusting(&server.directory().join("data/caddy/pki/authorities/local/root.crt"));
    block_on(async {
        let http2 = Http2::connect(&client, server.tls_address(), "localhost").await.expect("a connection");
        let answer = http2.ask("/large.php", None).await.expect("a response").expect(200);
        assert_large(|name| answer.header(name), answer.text());
        let mut http3 =
            Http3::connect(&client, server.tls_address(), "localhost").await.expect("a connection");
        let request = http3.request("GET", "/large.php");
        let answer = http3.send(request).await.expect("a response").expect(200);
        assert_large(|name| answer.header(name), answer.text());
    });
    server.stop();
}

/// A site that lets 16 KiB through.
fn strict(script: &str) -> Server {
    Setup::new()
        .php_options("num_threads 2\n\t\tmax_response_header 16KiB")
        .site("php_server\n\thandle_errors 500 {\n\t\trespond \"ours: {err.status_code}\"\n\t}")
        .file("index.php", script)
        .file("ok.php", "<?php echo 'ok';")
        .start()
}

fn assert_refused(answer: &Response) {
    assert_eq!((answer.status, answer.text().as_str()), (500, "ours: 500"));
    assert!(answer.header("x-tags").is_none() && answer.header("set-cookie").is_none());
}

#[test]
fn what_is_refused_takes_its_body_with_it_and_has_the_page_of_the_site() {
    const HEAD: &str =
        "<?php header('Set-Cookie: a=b'); header('X-Tags: ' . str_repeat('t', 17_000)); echo 'secret';";
    for end in [
        "",
        " flush(); echo 'more'; flush();",
        " echo str_repeat('x', 200_000);",
        " fastcgi_finish_request();",
    ] {
        let server = strict(&format!(
            "{HEAD}{end} file_put_contents(__DIR__ . '/done', 'all of it'); error_log('goes on');"
        ));
        let mut conn = server.connect();
        for _ in 0..2 {
            conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_refused(&conn.response());
        }
        assert_eq!(server.wait_for_file("done"), "all of it", "its script goes on");
        server.wait_for_log("the fields of the response have 17");
        server.wait_for_log("goes on");
        assert_eq!(server.get("/ok.php").expect(200).text(), "ok");
        server.stop();
    }
}

#[test]
fn early_hints_that_are_too_large_are_left_out_and_the_response_is_not() {
    let server = strict(
        "<?php header('Link: ' . str_repeat('l', 17_000)); headers_send(103); header_remove('Link'); echo 'the page';",
    );
    let answer = server.get("/").expect(200);
    assert_eq!((answer.text().as_str(), answer.informational.len()), ("the page", 0));
    server.wait_for_log("the fields of an informational response have 17");
    server.stop();
}

#[test]
fn early_hints_of_40_kib_arrive() {
    let server = Setup::new()
        .file(
            "index.php",
            "<?php header('Link: ' . str_repeat('l', 40_000)); headers_send(103); echo 'the page';",
        )
        .start();
    let answer = server.get("/").expect(200);
    assert_eq!(answer.informational[0].header("link").map(str::len), Some(40_000));
    assert_eq!(answer.text(), "the page");
    server.stop();
}

/// Its client has done nothing wrong.
#[test]
fn a_site_whose_env_no_slot_holds_is_to_blame_and_not_its_client() {
    let server = Setup::new()
        .site(&format!("php_server {{\n\t\tenv LARGE {}\n\t}}", "e".repeat(200_000)))
        .file("index.php", "<?php echo strlen(getenv('LARGE'));")
        .start();
    server.get("/").expect(500);
    server.wait_for_log("the `env` of its site is more than an engine has room for");
    server.stop();
}
