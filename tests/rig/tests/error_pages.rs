//! `handle_errors` where an engine failed, or had no room.

use regent_rig::{Conn, Response, Rig, Setup};

const STATIC_PAGES: &str =
    "handle_errors {\n\t\theader X-Page yes\n\t\trespond \"page of {err.status_code}\"\n\t}\n\tphp_server";
const SCRIPT_PAGE: &str = "handle_errors {\n\t\trewrite /error.php\n\t\tphp {\n\t\t\tenv ERROR {err.status_code}\n\t\t\t\
                           env WHY {err.message}\n\t\t}\n\t}\n\tphp_server";

fn is_page(response: Response, status: u16) {
    let response = response.expect(status);
    assert_eq!(response.header("x-page"), Some("yes"));
    assert_eq!(response.text(), format!("page of {status}"));
}

fn setup(site: &str) -> Setup {
    Setup::new().site(site).file("error.php", "")
}

/// The engine is asked for the page of this error, and makes it.
fn make_page(rig: &Rig, client: &mut Conn, status: u16, uri: &str) {
    let call = rig.call();
    assert_eq!(call.variable("ERROR"), Some(status.to_string().as_str()));
    assert!(call.variable("SCRIPT_FILENAME").is_some_and(|file| file.ends_with("/error.php")));
    assert_eq!((call.uri(), call.body_length()), (uri, Some(0)));
    call.answer(200, "made by a script");
    assert_eq!(client.response().expect(status).text(), "made by a script");
}

#[test]
fn a_request_that_died_with_its_engine_gets_its_page() {
    let rig = setup(STATIC_PAGES).start();
    let mut client = rig.ask("/");
    rig.call().crash();
    is_page(client.response(), 502);
}

#[test]
fn a_script_is_the_page_of_a_request_that_died_with_its_engine() {
    let rig = setup(SCRIPT_PAGE).start();
    let mut client = rig.send("POST /?dies HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
    rig.call().crash();
    make_page(&rig, &mut client, 502, "/?dies");
}

#[test]
fn a_page_whose_engine_dies_too_is_not_asked_for_again() {
    let rig = setup(SCRIPT_PAGE).start();
    let mut client = rig.ask("/");
    rig.call().crash();
    let page = rig.call();
    assert_eq!(page.variable("ERROR"), Some("502"));
    page.crash();
    client.response().expect(502);
    let _next = rig.ask("/?next");
    assert_eq!(rig.call().uri(), "/?next");
}

#[test]
fn who_is_turned_away_gets_its_page_and_keeps_its_connection() {
    let options = "num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off\n\t\tmax_queue 1";
    let rig = setup(STATIC_PAGES).php(options).start();
    let _holder = rig.ask("/");
    let held = rig.call();
    let _waiting = rig.ask("/?waits");
    rig.wait_for_queue(1);
    let mut client = rig.ask("/");
    let response = client.response();
    assert!(response.header("retry-after").is_some());
    is_page(response, 503);
    held.answer(200, "");
    rig.answer("");
    client.send(regent_rig::get("/?again"));
    rig.answer("again");
    assert_eq!(client.response().expect(200).text(), "again");
}

#[test]
fn what_ran_for_too_long_gets_its_page() {
    let rig = setup(STATIC_PAGES).start();
    let mut client = rig.ask("/");
    rig.call().end_overdue();
    is_page(client.response(), 504);
}

#[test]
fn a_body_that_is_too_large_gets_its_page() {
    let rig = setup(&format!("request_body {{\n\t\tmax_size 1KB\n\t}}\n\t{STATIC_PAGES}")).start();
    let mut client = rig.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n");
    is_page(client.response(), 413);
}

#[test]
fn a_script_is_the_page_of_a_body_that_is_too_large() {
    let rig = setup(&format!("request_body {{\n\t\tmax_size 1KB\n\t}}\n\t{SCRIPT_PAGE}")).start();
    let mut client = rig.send("POST /?large HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n");
    make_page(&rig, &mut client, 413, "/?large");
}

#[test]
fn what_a_script_answers_is_no_error_of_the_server() {
    let rig = setup(STATIC_PAGES).start();
    for status in [404, 500, 503] {
        let mut client = rig.ask("/");
        rig.call().answer(status, "its own");
        assert_eq!(client.response().expect(status).text(), "its own");
    }
}

#[test]
fn a_response_that_has_begun_gets_no_page() {
    let rig = setup(STATIC_PAGES).start();
    let mut client = rig.ask("/");
    let mut call = rig.call();
    call.head(200, &[]).body("begun").flush();
    let head = client.head().expect("a head").expect("a response");
    call.crash();
    assert_eq!((head.status, head.header("x-page")), (200, None));
    client.rest_of(head).expect_err("it is not whole");
}
