//! Bodies of requests, on their way to the engine or into nothing.

use regent_rig::{Setup, get};

fn post(target: &str, fields: &str, body: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n{body}")
}

fn of_length(body: &str) -> String {
    post("/", &format!("Content-Length: {}\r\n", body.len()), body)
}

#[test]
fn a_body_with_a_length_comes_whole_and_with_its_length() {
    let rig = Setup::new().start();
    let _client = rig.send(of_length("a body"));
    let mut call = rig.call();
    assert_eq!(call.body_length(), Some(6));
    assert_eq!(call.variable("CONTENT_LENGTH"), Some("6"));
    assert_eq!(call.read_body(), b"a body");
}

#[test]
fn a_chunked_body_has_a_length_when_it_was_read_before() {
    let rig = Setup::new().start();
    let chunks = "3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nX-Trailer: 1\r\n\r\n";
    let _client = rig.send(post("/", "Transfer-Encoding: chunked\r\n", chunks));
    let mut call = rig.call();
    assert_eq!(call.body_length(), Some(7));
    assert_eq!(call.variable("CONTENT_LENGTH"), Some("7"));
    assert_eq!(call.read_body(), b"abcdefg");
}

#[test]
fn a_slow_client_holds_no_thread() {
    let rig = Setup::new().start();
    let mut slow = rig.send("POST /?slow HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
    slow.wait_until_read();
    let mut other = rig.ask("/?other");
    let call = rig.call();
    assert_eq!(call.uri(), "/?other");
    call.answer(200, "");
    other.response().expect(200);
    slow.send("def");
    let mut call = rig.call();
    assert_eq!(call.read_body(), b"abcdef");
    call.answer(200, "slow");
    assert_eq!(slow.response().expect(200).text(), "slow");
}

#[test]
fn without_buffering_the_engine_reads_the_body_as_it_comes() {
    let rig = Setup::new().site("php_server {\n\t\trequest_buffering off\n\t}").start();
    let mut client = rig.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
    let mut call = rig.call();
    assert_eq!(call.read_exactly(3), b"abc");
    client.send("def");
    assert_eq!(call.read_body(), b"def");
    call.answer(200, "ok");
    client.response().expect(200);
}

#[test]
fn a_script_learns_that_its_client_breaks_off_within_the_body() {
    let rig = Setup::new().site("php_server {\n\t\trequest_buffering off\n\t}").start();
    let client = rig.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
    let mut call = rig.call();
    assert_eq!(call.read_exactly(3), b"abc");
    drop(client);
    assert!(call.try_read_body().is_err());
}

#[test]
fn a_request_whose_body_breaks_off_is_never_started() {
    let rig = Setup::new().start();
    let client = rig.send("POST /?broken HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
    client.wait_until_read();
    drop(client);
    let _next = rig.ask("/?next");
    assert_eq!(rig.call().uri(), "/?next");
}

#[test]
fn a_body_that_is_larger_than_the_ring_comes_whole() {
    let rig = Setup::new().start();
    let body = "0123456789abcdef".repeat(64 * 1024);
    let _client = rig.send(of_length(&body));
    let mut call = rig.call();
    assert_eq!(call.body_length(), Some(1 << 20));
    assert!(call.read_body() == body.as_bytes());
}

#[test]
fn a_body_above_max_size_gets_413_and_no_engine() {
    let rig = Setup::new().site("request_body {\n\t\tmax_size 1KB\n\t}\n\tphp_server").start();
    let mut client = rig.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
    assert_eq!(client.response().expect(413).header("connection"), Some("close"));
    let _next = rig.send(of_length(&"x".repeat(1000)));
    assert_eq!(rig.call().body_length(), Some(1000));
}

#[test]
fn a_chunked_body_that_grows_above_max_size_gets_413_and_ends_the_connection() {
    let rig = Setup::new().site("request_body {\n\t\tmax_size 1KB\n\t}\n\tphp_server").start();
    let mut client = rig.send(post("/", "Transfer-Encoding: chunked\r\n", ""));
    client.send(format!("3e9\r\n{}\r\n", "x".repeat(1001)));
    assert_eq!(client.response().expect(413).header("connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn who_expects_100_gets_it_when_the_body_is_wanted() {
    let rig = Setup::new().start();
    let mut client =
        rig.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    client.read_until("HTTP/1.1 100 Continue\r\n\r\n");
    client.send("body");
    assert_eq!(rig.call().read_body(), b"body");
}

#[test]
fn who_expects_100_is_not_told_to_send_what_is_too_large() {
    let rig = Setup::new().site("request_body {\n\t\tmax_size 1KB\n\t}\n\tphp_server").start();
    let mut client =
        rig.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4000\r\n\r\n");
    let response = client.response().expect(413);
    assert!(response.informational.is_empty(), "{response:?}");
}

#[test]
fn an_unread_body_does_not_become_the_next_request() {
    let rig = Setup::new().start();
    let forged = get("/?forged");
    let mut client = rig.send(of_length(&forged));
    rig.answer("nobody has read it");
    client.response().expect(200);
    client.send(get("/?next"));
    assert_eq!(rig.call().uri(), "/?next");
}

#[test]
fn a_script_need_not_read_a_chunked_body_that_is_there() {
    let rig = Setup::new().start();
    let mut client = rig.send(post("/", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"));
    rig.answer("unread");
    assert_eq!(client.response().expect(200).text(), "unread");
    client.send(get("/?next"));
    assert_eq!(rig.call().uri(), "/?next");
}

#[test]
fn a_connection_ends_with_a_response_that_needs_nothing_of_its_chunked_body() {
    let rig = Setup::new().site("respond /said \"a text\" 403\n\tphp_server").start();
    let mut client = rig.send(post("/said", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n"));
    let response = client.response().expect(403);
    assert_eq!((response.header("connection"), response.text().as_str()), (Some("close"), "a text"));
    assert!(client.is_closed());
}

/// RFC 9112, section 6.3: chunks override the length, and the connection is good for nothing after that.
#[test]
fn a_length_beside_chunks_counts_for_nothing_and_smuggles_nothing() {
    let rig = Setup::new().start();
    let fields = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    let mut client = rig.send(post("/?both", fields, "0\r\n\r\n") + &get("/?smuggled"));
    let mut call = rig.call();
    assert_eq!((call.uri(), call.body_length()), ("/?both", Some(0)));
    assert_ne!(call.variable("CONTENT_LENGTH"), Some("5"));
    assert!(call.read_body().is_empty());
    call.answer(200, "");
    client.response().expect(200);
    assert!(client.is_closed());
    let _next = rig.ask("/?next");
    assert_eq!(rig.call().uri(), "/?next");
}

#[test]
fn chunks_that_are_none_end_the_connection_and_no_engine_sees_them() {
    let rig = Setup::new().start();
    let mut client = rig.send(post("/?bad", "Transfer-Encoding: chunked\r\n", "xyz\r\nabc\r\n0\r\n\r\n"));
    if let Ok(Some(response)) = client.try_response("POST") {
        response.expect(400);
    }
    let _next = rig.ask("/?next");
    assert_eq!(rig.call().uri(), "/?next");
}
