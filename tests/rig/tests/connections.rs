//! Connections of HTTP/1.x between one request and the next.

use regent_rig::{Setup, get};

#[test]
fn pipelined_requests_are_answered_in_order_and_run_one_after_the_other() {
    let rig = Setup::new().threads(4).start();
    let mut client = rig.send((0..4).map(|number| get(&format!("/?{number}"))).collect::<String>());
    for number in 0..4 {
        let call = rig.call();
        assert_eq!(call.uri(), format!("/?{number}"));
        assert!(rig.try_call().is_none());
        call.answer(200, number.to_string());
    }
    for number in 0..4 {
        assert_eq!(client.response().expect(200).text(), number.to_string());
    }
}

#[test]
fn who_asks_for_the_end_of_the_connection_gets_it_after_the_response() {
    let rig = Setup::new().start();
    let mut client = rig.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    rig.answer("last");
    let last = client.response().expect(200);
    assert_eq!((last.header("connection"), last.text().as_str()), (Some("close"), "last"));
    assert!(client.is_closed());
}

#[test]
fn a_connection_of_http_1_0_ends_with_its_response() {
    let rig = Setup::new().start();
    let mut client = rig.send("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    let call = rig.call();
    assert_eq!(call.variable("SERVER_PROTOCOL"), Some("HTTP/1.0"));
    call.answer(200, "last");
    assert_eq!(client.response().expect(200).text(), "last");
    assert!(client.is_closed());
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let rig = Setup::new().start();
    let mut client = rig.connect();
    for byte in b"POST /?slow HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" {
        client.send([*byte]);
    }
    let mut call = rig.call();
    assert_eq!(call.read_body(), b"abc");
    call.answer(200, "slow");
    assert_eq!(client.response().expect(200).text(), "slow");
}

#[test]
fn what_is_no_request_gets_400_and_no_engine() {
    let rig = Setup::new().start();
    for bad in [
        "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    ] {
        let mut client = rig.send(bad);
        client.response().expect(400);
        assert!(client.is_closed(), "{bad:?}");
    }
    let _next = rig.ask("/?next");
    assert_eq!(rig.call().uri(), "/?next");
}

#[test]
fn a_client_that_has_sent_its_last_still_gets_its_response() {
    let rig = Setup::new().start();
    let mut client = rig.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let call = rig.call();
    call.answer(200, "page");
    assert_eq!(client.response().expect(200).text(), "page");
}

#[test]
fn one_connection_carries_engines_and_files_and_texts() {
    let rig = Setup::new().site("respond /text said\n\tphp_server").file("file.txt", "a file").start();
    let mut client = rig.ask("/file.txt");
    assert_eq!(client.response().expect(200).text(), "a file");
    client.send(get("/text"));
    assert_eq!(client.response().expect(200).text(), "said");
    client.send(get("/"));
    rig.answer("a script");
    assert_eq!(client.response().expect(200).text(), "a script");
    assert_eq!(rig.admin().metric("regent_connections_total", &[("protocol", "h1")]), 1.0);
}
