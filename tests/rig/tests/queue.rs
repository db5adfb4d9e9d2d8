//! Who gets a thread, when, and who is turned away.

use regent_rig::{Call, Conn, Response, Rig, Setup, until};

/// A request that holds the only thread.
fn hold(rig: &Rig) -> (Conn, Call) {
    let client = rig.ask("/?holds");
    let call = rig.call();
    assert_eq!(call.uri(), "/?holds");
    (client, call)
}

/// The same, whose client has left.
fn hold_for_nobody(rig: &Rig) -> Call {
    let (client, held) = hold(rig);
    drop(client);
    held.wait_until_left();
    held
}

fn is_turned_away(response: Response) {
    let response = response.expect(503);
    let seconds: u64 = response.header("retry-after").expect("a time").parse().expect("seconds");
    assert!((1..=30).contains(&seconds), "{seconds}");
}

fn shed(rig: &Rig, reason: &str) -> f64 {
    rig.admin().metric("regent_shed_total", &[("pool", "classic"), ("reason", reason)])
}

#[test]
fn requests_start_in_the_order_in_which_they_came() {
    let rig = Setup::new().start();
    let (mut first, held) = hold(&rig);
    let mut clients = Vec::new();
    for number in 0..100 {
        clients.push(rig.ask(&format!("/?{number}")));
        rig.wait_for_queue(number + 1);
    }
    held.answer(200, "first");
    for (number, client) in clients.iter_mut().enumerate() {
        let call = rig.call();
        assert_eq!(call.uri(), format!("/?{number}"));
        call.answer(200, number.to_string());
        assert_eq!(client.response().expect(200).text(), number.to_string());
    }
    assert_eq!(first.response().expect(200).text(), "first");
}

#[test]
fn as_many_requests_run_as_there_are_threads() {
    let rig = Setup::new().threads(3).start();
    let mut clients: Vec<_> = (0..4).map(|number| rig.ask(&format!("/?{number}"))).collect();
    let calls = [rig.call(), rig.call(), rig.call()];
    rig.wait_for_queue(1);
    assert!(rig.try_call().is_none());
    calls.into_iter().for_each(|call| call.answer(200, "ok"));
    rig.answer("ok");
    clients.iter_mut().for_each(|client| assert_eq!(client.response().expect(200).text(), "ok"));
}

#[test]
fn the_response_of_a_later_request_does_not_wait_for_an_earlier_one() {
    let rig = Setup::new().threads(2).start();
    let (mut earlier, held) = hold(&rig);
    let mut later = rig.ask("/?later");
    rig.answer("later");
    assert_eq!(later.response().expect(200).text(), "later");
    held.answer(200, "earlier");
    assert_eq!(earlier.response().expect(200).text(), "earlier");
}

#[test]
fn more_than_max_queue_are_turned_away_on_connections_that_stay() {
    let rig =
        Setup::new().php("num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off\n\t\tmax_queue 2").start();
    let (_holder, held) = hold(&rig);
    let mut waiting = [rig.ask("/?1"), rig.ask("/?2")];
    rig.wait_for_queue(2);
    let mut refused = rig.ask("/?3");
    is_turned_away(refused.response());
    assert_eq!(shed(&rig, "queue_full"), 1.0);
    held.answer(200, "");
    for client in &mut waiting {
        rig.answer("waited");
        assert_eq!(client.response().expect(200).text(), "waited");
    }
    refused.send(regent_rig::get("/?4"));
    rig.answer("again");
    assert_eq!(refused.response().expect(200).text(), "again");
}

#[test]
fn who_has_waited_for_max_wait_time_is_answered_and_never_started() {
    let rig = Setup::new().php("num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time 100ms").start();
    let (_holder, held) = hold(&rig);
    let mut late = [rig.ask("/?1"), rig.ask("/?2"), rig.ask("/?3")];
    late.iter_mut().for_each(|client| is_turned_away(client.response()));
    assert_eq!(shed(&rig, "wait_time"), 3.0);
    held.answer(200, "");
    let _client = rig.ask("/?after");
    assert_eq!(rig.call().uri(), "/?after");
}

#[test]
fn a_request_whose_deadline_passes_while_it_waits_is_not_started() {
    let rig = Setup::new().site("deadline /urgent.php 100ms\n\tphp_server").file("urgent.php", "").start();
    let (_holder, held) = hold(&rig);
    is_turned_away(rig.ask("/urgent.php").response());
    assert_eq!(shed(&rig, "deadline"), 1.0);
    held.answer(200, "");
    let _client = rig.ask("/?after");
    assert_eq!(rig.call().uri(), "/?after");
}

#[test]
fn a_client_that_leaves_the_queue_is_never_started() {
    let rig = Setup::new().start();
    let (_holder, held) = hold(&rig);
    let mut leaving: Vec<_> = (0..3).map(|number| rig.ask(&format!("/?left{number}"))).collect();
    leaving.push(rig.send("GET /?last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    rig.wait_for_queue(4);
    let _staying = rig.ask("/?stays");
    rig.wait_for_queue(5);
    drop(leaving);
    rig.wait_for_queue(1);
    until("they are counted", || (shed(&rig, "client_gone") == 4.0).then_some(()));
    held.answer(200, "");
    assert_eq!(rig.call().uri(), "/?stays");
}

#[test]
fn clients_that_have_left_take_no_room_in_the_queue() {
    let rig =
        Setup::new().php("num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off\n\t\tmax_queue 1").start();
    let (_holder, held) = hold(&rig);
    let leaving = rig.ask("/?leaves");
    rig.wait_for_queue(1);
    drop(leaving);
    rig.wait_for_queue(0);
    let mut staying = rig.ask("/?stays");
    rig.wait_for_queue(1);
    held.answer(200, "");
    rig.answer("stayed");
    assert_eq!(staying.response().expect(200).text(), "stayed");
}

#[test]
fn the_engine_learns_that_the_client_of_what_it_runs_has_left() {
    let rig = Setup::new().start();
    let held = hold_for_nobody(&rig);
    drop(held);
    let mut next = rig.ask("/?next");
    rig.answer("next");
    assert_eq!(next.response().expect(200).text(), "next");
}

#[test]
fn a_thread_whose_client_has_left_is_free_only_when_it_is_done() {
    let rig = Setup::new().start();
    let held = hold_for_nobody(&rig);
    let _next = rig.ask("/?next");
    rig.wait_for_queue(1);
    assert!(rig.try_call().is_none());
    drop(held);
    assert_eq!(rig.call().uri(), "/?next");
}

#[test]
fn a_lane_of_one_thread_has_one_thread_and_keeps_the_order_of_all_its_routes() {
    let rig = Setup::new()
        .php("num_threads 3\n\t\tmax_threads 3\n\t\tmax_wait_time off\n\t\tlane reports {\n\t\t\tthreads 1\n\t\t}")
        .site("lane /report.php reports\n\tlane /export.php reports\n\tphp_server")
        .file("report.php", "")
        .file("export.php", "")
        .start();
    let targets: Vec<_> = ["/report.php?0", "/export.php?1", "/report.php?2", "/export.php?3"].into();
    let mut clients = Vec::new();
    for (number, target) in targets.iter().enumerate() {
        clients.push(rig.ask(target));
        let waiting = || rig.admin().metric("regent_lane_waiting", &[]) == number as f64;
        until("it runs, or waits in the lane", || waiting().then_some(()));
        if number == 0 {
            until("the first one runs", || (rig.admin().busy_threads().len() == 1).then_some(()));
        }
    }
    for target in &targets {
        let call = rig.call();
        assert_eq!(call.uri(), *target);
        let mut other = rig.ask("/?other");
        rig.answer("other");
        assert_eq!(other.response().expect(200).text(), "other");
        call.answer(200, "report");
    }
    clients.iter_mut().for_each(|client| assert_eq!(client.response().expect(200).text(), "report"));
}

#[test]
fn a_lane_takes_no_more_than_max_queue() {
    let rig = Setup::new()
        .php("num_threads 2\n\t\tmax_threads 2\n\t\tmax_wait_time off\n\t\tmax_queue 1\n\t\tlane reports {\n\t\t\tthreads 1\n\t\t}")
        .site("lane /report.php reports\n\tphp_server")
        .file("report.php", "")
        .start();
    let _running = rig.ask("/report.php");
    let held = rig.call();
    let mut waiting = rig.ask("/report.php?waits");
    until("it waits in the lane", || (rig.admin().metric("regent_lane_waiting", &[]) == 1.0).then_some(()));
    is_turned_away(rig.ask("/report.php").response());
    assert_eq!(shed(&rig, "queue_full"), 1.0);
    let mut other = rig.ask("/?other");
    rig.answer("other");
    assert_eq!(other.response().expect(200).text(), "other", "other routes have threads and room");
    held.answer(200, "");
    rig.answer("waited");
    assert_eq!(waiting.response().expect(200).text(), "waited");
}

#[test]
fn what_runs_for_longer_than_its_request_timeout_gets_504_and_the_engine_is_told() {
    let rig = Setup::new()
        .php("num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off\n\t\trequest_timeout 50ms")
        .start();
    let (mut client, held) = hold(&rig);
    client.response().expect(504);
    held.wait_until_left();
    drop(held);
    let mut next = rig.ask("/?next");
    rig.answer("next");
    assert_eq!(next.response().expect(200).text(), "next");
}

#[test]
fn the_time_in_the_queue_does_not_count_for_a_request_timeout() {
    let rig = Setup::new().site("php_server {\n\t\trequest_timeout 20s\n\t}").start();
    let (_holder, held) = hold(&rig);
    let _client = rig.ask("/?limited");
    rig.wait_for_queue(1);
    held.answer(200, "");
    let call = rig.call();
    let limit = call.time_limit().expect("it has one");
    assert_eq!(limit.as_secs(), 20);
}

#[test]
fn what_the_engine_ends_as_overdue_gets_504() {
    let rig = Setup::new().site("php_server {\n\t\trequest_timeout 10m\n\t}").start();
    let (mut client, held) = hold(&rig);
    held.end_overdue();
    client.response().expect(504);
    assert_eq!(
        rig.admin().metric("regent_requests_total", &[("pool", "classic"), ("class", "5xx"), ("route", "/")]),
        1.0
    );
}
