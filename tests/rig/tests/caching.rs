//! `cache`: who runs a script, and who gets what it has made for another.

use regent_rig::{Conn, Response, Rig, Setup, until};
use std::ops::Range;

fn started(wait: &str, threads: usize) -> Rig {
    Setup::new().threads(threads).site(&format!("cache {{\n\t\twait {wait}\n\t}}\n\tphp_server")).start()
}

fn is_hit(response: &Response) -> bool {
    response.header("cache-status").is_some_and(|status| status.contains("; hit"))
}

fn ask(rig: &Rig, me: usize) -> Conn {
    ask_together(rig, me..me + 1).remove(0)
}

/// Clients that have all been heard.
fn ask_together(rig: &Rig, clients: Range<usize>) -> Vec<Conn> {
    let request = |me: usize| format!("GET /page HTTP/1.1\r\nHost: x\r\nX-Me: {me}\r\n\r\n");
    let clients: Vec<_> = clients.map(|me| rig.send(request(me))).collect();
    Conn::wait_until_all_read(&clients);
    clients
}

#[test]
fn what_may_be_stored_is_given_again_without_an_engine() {
    let rig = started("10m", 1);
    let mut client = ask(&rig, 0);
    rig.call().answer_with(200, &[("Cache-Control", "max-age=60")], "page");
    assert!(!is_hit(&client.response().expect(200)));
    let again = ask(&rig, 1).response().expect(200);
    assert!(is_hit(&again) && again.text() == "page", "{again:?}");
    assert!(rig.try_call().is_none());
}

#[test]
fn a_stampede_on_a_cold_page_runs_one_script() {
    const CLIENTS: usize = 50;
    let rig = started("10m", 4);
    let mut clients = ask_together(&rig, 0..CLIENTS);
    let call = rig.call();
    assert!(rig.try_call().is_none(), "a second run");
    call.answer_with(200, &[("Cache-Control", "max-age=3600")], "page".repeat(20_000));
    let responses = clients.iter_mut().map(|client| client.response().expect(200));
    let hits = responses.filter(|response| response.body.len() == 80_000 && is_hit(response)).count();
    assert_eq!(hits, CLIENTS - 1);
    assert!(rig.try_call().is_none(), "a second run");
}

#[test]
fn those_who_waited_for_a_private_page_each_get_their_own() {
    let rig = started("10m", 4);
    let mut clients = ask_together(&rig, 0..4);
    let first = rig.call();
    assert!(rig.try_call().is_none(), "all others wait for it");
    let me = first.variable("HTTP_X_ME").expect("each has said it").to_owned();
    first.answer_with(200, &[("Cache-Control", "private")], me);
    for _ in 1..4 {
        let call = rig.call();
        let me = call.variable("HTTP_X_ME").expect("each has said it").to_owned();
        call.answer_with(200, &[("Cache-Control", "private")], me);
    }
    for (me, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.response().expect(200).text(), me.to_string());
    }
    // It is known by now that nobody has to wait for another.
    let mut two = [ask(&rig, 0), ask(&rig, 1)];
    let calls = [rig.call(), rig.call()];
    calls.into_iter().for_each(|call| call.answer(200, "own"));
    two.iter_mut().for_each(|client| drop(client.response().expect(200)));
}

#[test]
fn a_fetch_goes_on_when_the_client_leaves_that_asked() {
    let rig = started("10m", 1);
    let leader = ask(&rig, 0);
    let call = rig.call();
    let mut follower = ask(&rig, 1);
    drop(leader);
    let is_noticed = || rig.admin().metric("regent_connections", &[("protocol", "h1")]) == 1.0;
    until("the server has noticed", || is_noticed().then_some(()));
    call.answer_with(200, &[("Cache-Control", "max-age=60")], "page");
    let response = follower.response().expect(200);
    assert!(is_hit(&response) && response.text() == "page", "{response:?}");
    assert!(rig.try_call().is_none(), "a second run");
}

#[test]
fn a_wait_for_another_has_an_end() {
    let rig = started("20ms", 2);
    let mut clients = [ask(&rig, 0), ask(&rig, 1)];
    let calls = [rig.call(), rig.call()];
    calls.into_iter().for_each(|call| call.answer_with(200, &[("Cache-Control", "max-age=60")], "page"));
    clients.iter_mut().for_each(|client| assert_eq!(client.response().expect(200).text(), "page"));
}

#[test]
fn what_breaks_off_is_not_stored() {
    let rig = started("10m", 1);
    let mut client = ask(&rig, 0);
    let mut call = rig.call();
    call.head(200, &[("Cache-Control", "max-age=60")]).body("half").flush();
    let head = client.head().expect("a head").expect("a response");
    call.break_off();
    client.rest_of(head).expect_err("it is not whole");
    let mut again = ask(&rig, 1);
    rig.call().answer_with(200, &[("Cache-Control", "max-age=60")], "whole");
    assert_eq!(again.response().expect(200).text(), "whole");
}

#[test]
fn those_who_wait_for_a_page_that_dies_with_its_engine_are_not_left_waiting() {
    let rig = started("10m", 1);
    let mut leader = ask(&rig, 0);
    let call = rig.call();
    let mut follower = ask(&rig, 1);
    call.crash();
    leader.response().expect(502);
    let call = rig.call();
    assert_eq!((call.process(), call.variable("HTTP_X_ME")), (1, Some("1")));
    call.answer(200, "its own");
    assert_eq!(follower.response().expect(200).text(), "its own");
}
