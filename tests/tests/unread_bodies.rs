//! Answers to requests whose body nobody reads: closing a socket with unread bytes resets the connection, and the reset
//! can take the answer with it.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup};

const LENGTH: usize = 5_000_000;

/// Sends all of the request before it looks for an answer, as simple clients do, on several connections.
#[track_caller]
fn assert_answered(server: &Server, target: &str, fields: &str, status: u16) {
    for _ in 0..10 {
        let mut conn = server.connect();
        conn.send(format!("POST {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
        let body = vec![b'a'; LENGTH];
        match fields.contains("chunked") {
            true => {
                conn.send(format!("{LENGTH:x}\r\n"));
                conn.send(&body);
                conn.send("\r\n0\r\n\r\n");
            }
            false => conn.send(&body),
        }
        let answer = conn.response().expect(status);
        assert_eq!(answer.header("connection"), Some("close"), "{target}");
        assert!(conn.is_closed(), "{target}");
    }
}

#[test]
fn the_answer_to_a_request_whose_body_nobody_reads_comes_whole() {
    let server = Setup::new()
        .site(
            "respond /said \"a text\" 403\n\tredir /moved /elsewhere\n\thandle /missing {\n\t\tfile_server\n\t}\n\
             \tphp_server",
        )
        .start();
    for (target, status) in [("/said", 403), ("/moved", 302), ("/missing", 404)] {
        assert_answered(&server, target, &format!("Content-Length: {LENGTH}\r\n"), status);
        assert_answered(&server, target, "Transfer-Encoding: chunked\r\n", status);
    }
    server.stop();
}

#[test]
fn an_offer_to_upgrade_does_not_cost_the_answer() {
    let server = Setup::new()
        .file("index.php", "<?php echo 'never';")
        .site("request_body {\n\t\tmax_size 1KB\n\t}\n\tphp_server")
        .start();
    let fields = format!(
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\
         Content-Length: {LENGTH}\r\n"
    );
    assert_answered(&server, "/", &fields, 413);
    server.stop();
}

/// hyper would hand the socket over when it has ended, with what it could not send yet.
#[test]
fn the_last_answer_comes_whole_to_a_client_that_offers_to_upgrade() {
    const SIZE: usize = 20_000_000;
    let server = Setup::new().file("large.txt", vec![b'a'; SIZE]).file("index.php", "<?php").start();
    let mut conn = server.connect();
    conn.send(
        "GET /large.txt HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    );
    assert_eq!(conn.response().expect(200).body.len(), SIZE);
    server.stop();
}
