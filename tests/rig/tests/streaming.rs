//! Responses that leave while they are being made.

use regent_rig::{Conn, Rig, Setup, get};

#[track_caller]
fn expect_next(rig: &Rig, client: &mut Conn) {
    client.send(get("/?next"));
    let call = rig.call();
    assert_eq!(call.uri(), "/?next");
    call.answer(200, "next");
    assert_eq!(client.response().expect(200).text(), "next");
}

#[test]
fn what_is_flushed_leaves_at_once() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[]).body("first").flush();
    let head = client.head().expect("a head").expect("a response");
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    client.read_until("first\r\n");
    call.body("second").flush();
    client.read_until("second\r\n");
    call.end();
    client.read_until("0\r\n\r\n");
    expect_next(&rig, &mut client);
}

#[test]
fn a_flushed_head_leaves_before_any_body() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(201, &[("X-Early", "yes")]).flush();
    let head = client.head().expect("a head").expect("a response");
    assert_eq!((head.status, head.header("x-early")), (201, Some("yes")));
    call.body("later");
    call.end();
    assert_eq!(client.rest_of(head).expect("it is whole").text(), "later");
}

#[test]
fn a_streamed_page_is_cut_at_its_length_and_the_script_runs_on() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[("Content-Length", "6")]).body("page").flush();
    let head = client.head().expect("a head").expect("a response");
    call.body("s!HTTP/1.1 200 OK\r\n\r\nforged").flush();
    let page = client.rest_of(head).expect("it is whole");
    assert_eq!((page.header_all("content-length"), page.text().as_str()), (vec!["6"], "pages!"));
    call.body(vec![b'x'; 200_000]);
    call.end();
    expect_next(&rig, &mut client);
}

#[test]
fn a_streamed_page_that_is_shorter_than_it_said_ends_its_connection() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[("Content-Length", "10")]).body("page").flush();
    let head = client.head().expect("a head").expect("a response");
    call.end();
    client.rest_of(head).expect_err("six bytes are missing");
}

#[test]
fn a_streamed_page_without_a_plain_length_comes_in_chunks() {
    let rig = Setup::new().start();
    let mut client = rig.connect();
    for length in ["abc", "-1", "3,3", "+5", "0x4", "4 4", "", "4;", "99999999999999999999999999"] {
        client.send(get("/"));
        let mut call = rig.call();
        call.head(200, &[("Content-Length", length)]).body("page").flush();
        let head = client.head().expect("a head").expect("a response");
        let framing = (head.header("content-length"), head.header("transfer-encoding"));
        assert_eq!(framing, (None, Some("chunked")), "{length}");
        call.body("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
        call.end();
        let page = client.rest_of(head).expect("it is whole").text();
        assert!(page.starts_with("pageHTTP/1.1") && page.ends_with("forged"), "{length}");
        expect_next(&rig, &mut client);
    }
    expect_next(&rig, &mut client);
}

#[test]
fn a_client_of_http_1_0_gets_a_streamed_page_up_to_the_end_of_its_connection() {
    let rig = Setup::new().start();
    let mut client = rig.send("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    let mut call = rig.call();
    call.head(200, &[]).body("first").flush();
    client.read_until("first");
    call.body(" and more");
    call.end();
    client.read_until(" and more");
    assert!(client.is_closed());
}

#[test]
fn a_script_that_cannot_end_its_response_breaks_the_connection_off() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[]).body("half").flush();
    let head = client.head().expect("a head").expect("a response");
    call.break_off();
    client.rest_of(head).expect_err("it is not whole");
}

#[test]
fn a_response_that_broke_off_before_it_left_is_not_taken_for_whole() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[]).body("half");
    call.break_off();
    assert!(client.try_response("GET").is_err());
}

#[test]
fn a_response_that_has_begun_is_cut_short_when_its_time_is_over() {
    let rig = Setup::new().site("php_server {\n\t\trequest_timeout 10m\n\t}").start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[]).body("half").flush();
    let head = client.head().expect("a head").expect("a response");
    call.end_overdue();
    client.rest_of(head).expect_err("it is not whole");
}

#[test]
fn a_slow_reader_holds_no_thread() {
    const LENGTH: usize = 8 << 20;
    let rig = Setup::new().start();
    let mut slow = rig.ask("/?slow");
    // The thread is free again though the client has read nothing.
    rig.call().answer(200, vec![b'x'; LENGTH]);
    let mut other = rig.ask("/?other");
    rig.answer("other");
    assert_eq!(other.response().expect(200).text(), "other");
    let body = slow.response().expect(200).body;
    assert!(body.len() == LENGTH && body.iter().all(|byte| *byte == b'x'));
}

#[test]
fn a_script_learns_that_the_client_of_its_stream_has_left() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[]).body("first").flush();
    client.read_until("first");
    drop(client);
    call.wait_until_left();
    drop(call);
    let mut next = rig.ask("/?next");
    rig.answer("next");
    next.response().expect(200);
}

#[test]
fn lines_for_the_log_are_no_part_of_the_response() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.log("before the head");
    call.head(200, &[]).body("page").log("within the body");
    call.end();
    assert_eq!(client.response().expect(200).text(), "page");
}
