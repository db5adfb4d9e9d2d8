//! Where a response ends, and what of its head is the script's.

use regent_rig::{Conn, Rig, Setup, get};

/// Whatever came before on this connection, the next response is the right one.
#[track_caller]
fn expect_next(rig: &Rig, client: &mut Conn) {
    client.send(get("/?next"));
    let call = rig.call();
    assert_eq!(call.uri(), "/?next");
    call.answer(200, "the next response");
    assert_eq!(client.response().expect(200).text(), "the next response");
}

#[test]
fn a_whole_page_has_its_true_length_whatever_the_script_says() {
    let rig = Setup::new().start();
    let mut client = rig.connect();
    for length in ["4", "0", "4000", "0004", "abc", "-1", "3,3", "+5", "0x4", "", "99999999999999999999999"] {
        client.send(get("/"));
        rig.call().answer_with(200, &[("Content-Length", length)], "page\r\nHTTP/1.1 200 OK\r\n\r\n");
        let page = client.response().expect(200);
        assert_eq!(page.header_all("content-length"), [page.body.len().to_string()], "{length}");
        assert!(page.text().starts_with("page\r\nHTTP/1.1"), "{length}");
    }
    expect_next(&rig, &mut client);
}

#[test]
fn a_response_to_head_has_no_body_and_the_length_that_the_script_knows() {
    let rig = Setup::new().start();
    let mut client = rig.connect();
    for (declared, body, length) in [("10", "", Some("10")), ("abc", "", None), ("10", "body", Some("4"))] {
        client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
        rig.call().answer_with(200, &[("Content-Length", declared)], body);
        let response = client.response_to_head().expect(200);
        assert_eq!(response.header("content-length"), length, "{declared} {body}");
        expect_next(&rig, &mut client);
    }
}

#[test]
fn a_streamed_response_to_head_is_whole_with_its_head() {
    let rig = Setup::new().start();
    let mut client = rig.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut call = rig.call();
    call.head(200, &[("Content-Length", "10")]).flush();
    assert_eq!(client.response_to_head().expect(200).header("content-length"), Some("10"));
    drop(call);
    expect_next(&rig, &mut client);
}

#[test]
fn a_status_without_content_has_none_whatever_the_script_prints() {
    let rig = Setup::new().start();
    let mut client = rig.connect();
    for status in [204, 304] {
        client.send(get("/"));
        rig.call().answer_with(status, &[("Content-Length", "4")], "body");
        assert_eq!(client.response().expect(status).header("content-length"), None);
        expect_next(&rig, &mut client);
    }
}

#[test]
fn a_status_without_content_has_none_when_it_is_streamed() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(204, &[]).body("body").flush();
    let response = client.response().expect(204);
    assert_eq!((response.header("content-length"), response.header("transfer-encoding")), (None, None));
    call.end();
    expect_next(&rig, &mut client);
}

#[test]
fn fields_of_the_connection_are_not_the_scripts() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let fields = [
        ("Transfer-Encoding", "chunked"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("Upgrade", "websocket"),
        ("Trailer", "X-Sum"),
        ("X-Own", "kept"),
    ];
    rig.call().answer_with(200, &fields, "page");
    let page = client.response().expect(200);
    for (name, _) in &fields[..5] {
        assert_eq!(page.header(name), None, "{name}");
    }
    assert_eq!((page.header("x-own"), page.text().as_str()), (Some("kept"), "page"));
    expect_next(&rig, &mut client);
}

#[test]
fn a_script_may_end_the_connection_after_its_response() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    rig.call().answer_with(200, &[("Connection", "close")], "last");
    let last = client.response().expect(200);
    assert_eq!((last.header("connection"), last.text().as_str()), (Some("close"), "last"));
    assert!(client.is_closed());
}

#[test]
fn fields_that_a_script_sends_twice_come_twice_and_in_order() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    rig.call().answer_with(200, &[("Set-Cookie", "a=1"), ("X-Else", "x"), ("Set-Cookie", "b=2")], "");
    assert_eq!(client.response().expect(200).header_all("set-cookie"), ["a=1", "b=2"]);
}

#[test]
fn the_server_names_itself_once() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    rig.answer("");
    assert_eq!(client.response().expect(200).header_all("server"), ["Regent"]);
}

#[test]
fn early_hints_come_before_the_response_and_before_it_is_made() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.informational(103, &[("Link", "</a.css>; rel=preload"), ("Connection", "close")]);
    let hints = client.read_until("\r\n\r\n");
    assert!(hints.starts_with("HTTP/1.1 103 Early Hints\r\n"), "{hints}");
    assert!(hints.to_lowercase().contains("link: </a.css>; rel=preload\r\n"), "{hints}");
    assert!(!hints.to_lowercase().contains("connection"), "{hints}");
    call.answer(200, "page");
    assert_eq!(client.response().expect(200).text(), "page");
}

#[test]
fn a_client_of_http_1_0_gets_no_hints() {
    let rig = Setup::new().start();
    let mut client = rig.send("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    let mut call = rig.call();
    call.informational(103, &[("Link", "</a.css>; rel=preload")]);
    call.answer(200, "page");
    let page = client.response().expect(200);
    assert_eq!((page.informational.len(), page.text().as_str()), (0, "page"));
}

#[test]
fn trailers_are_for_those_who_ask_for_them() {
    let rig = Setup::new().start();
    let mut client = rig.send("GET / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    let mut call = rig.call();
    call.head(200, &[]).body("page").trailers(&[("X-Sum", "42")]);
    call.end();
    let head = client.head().expect("a head").expect("a response");
    assert_eq!(head.header("trailer").map(str::to_lowercase).as_deref(), Some("x-sum"));
    let body = client.read_until("\r\n\r\n").to_lowercase();
    assert!(body.ends_with("0\r\nx-sum: 42\r\n\r\n"), "{body}");
    expect_next(&rig, &mut client);
}

#[test]
fn trailers_reach_nobody_who_has_not_asked() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[]).body("page").trailers(&[("X-Sum", "42")]);
    call.end();
    let page = client.response().expect(200);
    assert_eq!((page.header("trailer"), page.header("content-length")), (None, Some("4")));
    expect_next(&rig, &mut client);
}
