//! Responses that a site makes anew, by what they say.
#![forbid(unsafe_code)]

use regent_tests::upstream::receive;
use regent_tests::{Setup, Upstream};
use std::io::{BufReader, Write};

/// X-Accel-Redirect, as Symfony's BinaryFileResponse and FrankenPHP's documentation have it.
const SITE: &str = "intercept {
        @accel header X-Accel-Redirect *
        handle_response @accel {
            root DIRECTORY/private
            rewrite {resp.header.X-Accel-Redirect}
            method GET
            header -X-Accel-Redirect
            file_server
        }
        @teapot status 418
        handle_response @teapot {
            rewrite /page.php?was={resp.status_code}
            php_server
        }
        replace_status 201
    }
    handle_errors {
        respond \"error {err.status_code}\"
    }
    php_server";

const DOWNLOAD: &str = "<?php
    header('Content-Type: application/pdf');
    header('X-Owner: ada');
    header('X-Accel-Redirect: ' . $_GET['file']);
    echo 'nobody sees this';";

fn setup() -> Setup {
    let setup = Setup::new()
        .site(SITE)
        .file("download.php", DOWNLOAD)
        .file("plain.php", "<?php echo 'plain';")
        .file("teapot.php", "<?php http_response_code(418); header('X-Kept: 1'); echo 'tea';")
        .file("page.php", "<?php echo 'page of ', $_GET['was'];");
    let private = setup.directory().join("private");
    std::fs::create_dir(&private).unwrap();
    std::fs::write(private.join("a b.pdf"), "0123456789").unwrap();
    setup
}

#[test]
fn a_script_can_have_a_private_file_sent() {
    let server = setup().start();
    for file in ["/a%2520b.pdf", "/a%20b.pdf"] {
        let answer = server.get(&format!("/download.php?file={file}")).expect(200);
        assert_eq!((answer.text().as_str(), answer.header("X-Owner")), ("0123456789", Some("ada")));
        assert_eq!(
            (answer.header("Content-Type"), answer.header("Content-Length")),
            (Some("application/pdf"), Some("10"))
        );
        assert_eq!(answer.header("X-Accel-Redirect"), None);
    }
    let part = server
        .request("GET", "/download.php?file=/a%2520b.pdf")
        .header("Range", "bytes=2-4")
        .send()
        .expect(206);
    assert_eq!(part.text(), "234");
    let head = server.request("HEAD", "/download.php?file=/a%2520b.pdf").send().expect(200);
    assert_eq!((head.body.len(), head.header("Content-Length")), (0, Some("10")));
    assert_eq!(server.get("/download.php?file=/none.pdf").expect(404).text(), "error 404");
    assert_eq!(server.get("/download.php?file=/../../etc/passwd").expect(404).text(), "error 404");
    server.stop();
}

#[test]
fn a_response_can_be_replaced_by_a_script_or_get_another_status() {
    let server = setup().start();
    let page = server.get("/teapot.php").expect(200);
    assert_eq!((page.text().as_str(), page.header("X-Kept")), ("page of 418", Some("1")));
    assert_eq!(server.get("/plain.php").expect(201).text(), "plain");
    server.stop();
}

#[test]
fn a_script_whose_response_is_replaced_runs_to_its_end() {
    const PRINTS: &str =
        "<?php for ($i = 0; $i < 8; $i++) { echo str_repeat('x', 100_000); } touch(__DIR__.'/done');";
    let site = "intercept {\nhandle_response {\nrespond \"replaced\" 200\n}\n}\nphp_server";
    let server = Setup::new().site(site).file("prints.php", PRINTS).start();
    assert_eq!(server.get("/prints.php").expect(200).text(), "replaced");
    assert!(server.root().join("done").exists());
    server.stop();
}

#[test]
fn a_connection_that_leaves_http_is_not_intercepted() {
    let upstream = Upstream::talking(|stream, number| {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        receive(&mut reader, number).expect("a request");
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello";
        (&stream).write_all(head.as_bytes()).expect("the server reads");
        let _ = std::io::copy(&mut reader, &mut std::io::sink());
    });
    let site = format!(
        "route {{\nintercept {{\nreplace_status 299\nhandle_response {{\nrespond no\n}}\n}}\nreverse_proxy {}\n}}",
        upstream.address()
    );
    let server = Setup::new().site(&site).start();
    let mut conn = server.connect();
    conn.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(conn.head().expect("a head").expect("a response").status, 101);
    conn.read_until("hello");
    drop(conn);
    server.stop();
}
