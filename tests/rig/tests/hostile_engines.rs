//! Engines that write what no engine should.

use regent_rig::{Rig, Setup, get};

fn serves_on(rig: &Rig) {
    let mut client = rig.ask("/?next");
    let call = rig.call();
    assert_eq!(call.uri(), "/?next");
    call.answer(200, "next");
    assert_eq!(client.response().expect(200).text(), "next");
}

#[test]
fn what_ends_without_a_head_gets_502() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    rig.call().end();
    client.response().expect(502);
    serves_on(&rig);
}

#[test]
fn what_ends_without_a_word_gets_502() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    rig.call().end_without_a_word();
    client.response().expect(502);
    serves_on(&rig);
}

#[test]
fn a_response_that_loses_its_end_is_visibly_cut_short() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[]).body("half").flush();
    let head = client.head().expect("a head").expect("a response");
    call.end_without_a_word();
    client.rest_of(head).expect_err("it is not whole");
    serves_on(&rig);
}

#[test]
fn a_final_status_of_1xx_does_not_have_the_client_wait_for_ever() {
    let rig = Setup::new().start();
    let mut client = rig.connect();
    for status in [100, 101, 103, 199] {
        client.send(get("/"));
        rig.call().answer(status, "page");
        client.response().expect(500);
    }
    serves_on(&rig);
}

#[test]
fn a_status_that_is_none_costs_no_other_response() {
    let rig = Setup::new().start();
    for status in [0, 99, 1000, u16::MAX] {
        let mut client = rig.ask("/");
        let mut call = rig.call();
        call.head(status, &[]).body("page");
        call.end();
        let response = client.response();
        assert!(response.status >= 500, "{status}: {}", response.status);
    }
    serves_on(&rig);
}

#[test]
fn line_ends_in_fields_forge_nothing() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    let fields: [(&[u8], &[u8]); 5] = [
        (b"X-Split", b"a\r\nX-Forged: 1"),
        (b"X-Line", b"a\nX-Forged: 1"),
        (b"X-Name\r\nX-Forged", b"1"),
        (b"X-Nul", b"a\0b"),
        (b"X-Kept", b"kept"),
    ];
    call.raw_head(200, &fields).body("page");
    call.end();
    let page = client.response().expect(200);
    assert_eq!((page.header("x-forged"), page.header("x-kept")), (None, Some("kept")));
    assert_eq!(page.text(), "page");
    serves_on(&rig);
}

#[test]
fn names_that_are_none_are_dropped_and_the_rest_is_sent() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    let fields: [(&[u8], &[u8]); 6] = [
        (b"", b"empty"),
        (b"two words", b"x"),
        (b"X:Colon", b"x"),
        ("X-\u{e9}".as_bytes(), b"x"),
        (b"X-Latin-1", b"caf\xe9"),
        (b"X-Kept", b"kept"),
    ];
    call.raw_head(200, &fields);
    call.end();
    let page = client.response().expect(200);
    let own: Vec<_> = page.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
    assert!(own.contains(&"x-kept".to_owned()) && own.contains(&"x-latin-1".to_owned()), "{own:?}");
    assert!(!own.iter().any(|name| name.contains(' ') || name.is_empty()), "{own:?}");
}

#[test]
fn a_head_of_thirty_thousand_bytes_comes_whole() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let value = "v".repeat(3_000);
    let names: Vec<_> = (0..10).map(|number| format!("X-Long-{number}")).collect();
    let fields: Vec<_> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
    rig.call().answer_with(200, &fields, "page");
    let page = client.response().expect(200);
    assert!(names.iter().all(|name| page.header(name) == Some(&value)));
}

#[test]
fn a_body_before_its_head_is_still_one_response() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.body("before ").head(200, &[]).body("after");
    call.end();
    let response = client.response();
    assert!(matches!((response.status, response.text().as_str()), (200, "before after") | (502, _)));
    serves_on(&rig);
}

#[test]
fn two_heads_are_still_one_response() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[("X-First", "1")]).head(201, &[("X-Second", "1")]).body("page");
    call.end();
    let response = client.response();
    assert!([200, 201, 502].contains(&response.status), "{response:?}");
    serves_on(&rig);
}

#[test]
fn hundreds_of_hints_are_no_response() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    for number in 0..200 {
        call.informational(103, &[("Link", &format!("</{number}.css>; rel=preload"))]);
    }
    call.answer(200, "page");
    assert_eq!(client.response().expect(200).text(), "page");
    serves_on(&rig);
}
