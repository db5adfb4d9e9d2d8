//! `request_body`: bounds of bodies, and other bodies in their place.
#![forbid(unsafe_code)]

use regent_tests::Setup;

const ECHO: &str = "<?php echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['CONTENT_LENGTH'] ?? '-', ' ', \
                    file_get_contents('php://input');";

#[test]
fn a_body_that_is_set_takes_the_place_of_the_clients() {
    let server = Setup::new()
        .file("index.php", ECHO)
        .site(
            "request_body /set/* {\n\t\tset \"{method} of {path}\"\n\t}\n\trewrite /index.php\n\tphp_server",
        )
        .start();
    assert_eq!(server.get("/set/a").expect(200).text(), "GET 13 GET of /set/a");
    let mut conn = server.connect();
    conn.send("POST /set/b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(conn.response().expect(200).text(), "POST 14 POST of /set/b");
    let mut conn = server.connect();
    conn.send("POST /set/b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    let answer = conn.response().expect(200);
    assert_eq!(answer.text(), "POST 14 POST of /set/b");
    assert_eq!(answer.header("connection"), Some("close"), "what follows may not be what it seems");
    let mut conn = server.connect();
    conn.send("POST /plain HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(conn.response().expect(200).text(), "POST 5 hello");
    server.stop();
}

#[test]
fn a_body_that_takes_longer_than_its_route_allows_gets_408() {
    let server = Setup::new()
        .file("index.php", ECHO)
        .site("request_body /brief/* {\n\t\tread_timeout 300ms\n\t}\n\trewrite /index.php\n\tphp_server")
        .start();
    let mut conn = server.connect();
    conn.send("POST /brief/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel");
    conn.response().expect(408);
    let mut conn = server.connect();
    conn.send("POST /brief/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(conn.response().expect(200).text(), "POST 5 hello");
    server.stop();
}

#[test]
fn a_body_that_is_silent_for_longer_than_its_route_allows_gets_408() {
    let server = Setup::new()
        .file("index.php", ECHO)
        .site("timeouts /brief/* {\n\t\tread_timeout 300ms\n\t}\n\trewrite /index.php\n\tphp_server")
        .start();
    let mut conn = server.connect();
    conn.send("POST /brief/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel");
    conn.response().expect(408);
    let mut conn = server.connect();
    conn.send("POST /brief/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(conn.response().expect(200).text(), "POST 5 hello");
    server.stop();
}
