//! Engines that die: what waited waits on, what ran is lost or run again, and what kills is refused.

use regent_rig::{Call, Conn, Rig, Setup, until};

fn retries(rig: &Rig) -> f64 {
    let page = rig.admin().get("/metrics").expect(200).text();
    let series = page.lines().filter(|line| line.starts_with("regent_retries_total{"));
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// A site with so many threads, and these options.
fn site(threads: usize, options: &str) -> Setup {
    let sizes = format!("num_threads {threads}\n\t\tmax_threads {threads}");
    Setup::new().php(&format!("{sizes}\n\t\tmax_wait_time off\n\t\t{options}"))
}

fn next_of(rig: &Rig, target: &str) -> (Conn, Call) {
    let client = rig.ask(target);
    let call = rig.call();
    assert_eq!(call.uri(), target);
    (client, call)
}

#[test]
fn requests_that_wait_survive_the_death_of_the_engine_in_their_order() {
    let rig = site(1, "").start();
    let (mut running, call) = next_of(&rig, "/?runs");
    let mut clients = Vec::new();
    for number in 0..5 {
        clients.push(rig.ask(&format!("/?{number}")));
        rig.wait_for_queue(number + 1);
    }
    call.crash();
    running.response().expect(502);
    for (number, client) in clients.iter_mut().enumerate() {
        let call = rig.call();
        assert_eq!((call.process(), call.uri()), (1, format!("/?{number}").as_str()));
        call.answer(200, "survived");
        assert_eq!(client.response().expect(200).text(), "survived");
    }
}

#[test]
fn what_ran_when_its_engine_died_gets_502_and_the_next_engine_serves() {
    let rig = site(1, "").start();
    let (mut client, call) = next_of(&rig, "/?dies");
    call.kill_process();
    client.response().expect(502);
    client.send(regent_rig::get("/?next"));
    let call = rig.call();
    assert_eq!(call.process(), 1);
    call.answer(200, "next");
    assert_eq!(client.response().expect(200).text(), "next");
    assert_eq!(rig.admin().metric("regent_engine_deaths_total", &[]), 1.0);
}

#[test]
fn a_response_that_had_begun_when_its_engine_died_is_visibly_cut_short() {
    let rig = site(1, "").start();
    let (mut client, mut call) = next_of(&rig, "/");
    call.head(200, &[]).body("begun").flush();
    let head = client.head().expect("a head").expect("a response");
    client.read_until("begun");
    call.kill_process();
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    let mut rest = Vec::new();
    let mut part = [0; 64];
    while let Ok(count @ 1..) = client.read_some(&mut part) {
        rest.extend_from_slice(&part[..count]);
    }
    assert!(!rest.ends_with(b"0\r\n\r\n"), "the client would take it for whole");
}

#[test]
fn nothing_is_run_again_unasked() {
    let rig = site(1, "").start();
    let (mut client, call) = next_of(&rig, "/");
    call.kill_process();
    client.response().expect(502);
    drop(call);
    let (_client, _call) = next_of(&rig, "/?next");
    assert_eq!(retries(&rig), 0.0);
}

#[test]
fn what_may_be_repeated_is_run_by_the_next_engine() {
    let rig = site(3, "retry").start();
    let mut clients: Vec<_> = (0..3).map(|number| rig.ask(&format!("/?{number}"))).collect();
    let calls = [rig.call(), rig.call(), rig.call()];
    calls[0].kill_process();
    let again = [rig.call(), rig.call(), rig.call()];
    assert!(again.iter().all(|call| call.process() == 1));
    let mut uris: Vec<_> = again.iter().map(|call| call.uri().to_owned()).collect();
    uris.sort();
    assert_eq!(uris, ["/?0", "/?1", "/?2"]);
    again.into_iter().for_each(|call| call.answer(200, "again"));
    clients.iter_mut().for_each(|client| assert_eq!(client.response().expect(200).text(), "again"));
    assert_eq!(retries(&rig), 3.0);
}

#[test]
fn methods_that_were_not_named_are_not_repeated() {
    let rig = site(5, "retry GET PUT").start();
    let request =
        |method: &str| format!("{method} /?{method} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
    let mut refused = ["POST", "DELETE", "PATCH"].map(|method| rig.send(request(method)));
    let mut named = ["PUT", "GET"].map(|method| rig.send(request(method)));
    let calls: Vec<_> = (0..5).map(|_| rig.call()).collect();
    calls[0].kill_process();
    refused.iter_mut().for_each(|client| drop(client.response().expect(502)));
    let mut again = [rig.call(), rig.call()];
    again.sort_by_key(|call| call.uri().to_owned());
    assert_eq!(again.each_ref().map(|call| (call.uri(), call.process())), [("/?GET", 1), ("/?PUT", 1)]);
    for mut call in again {
        assert_eq!(call.read_body(), b"body");
        call.answer(200, "again");
    }
    named.iter_mut().for_each(|client| assert_eq!(client.response().expect(200).text(), "again"));
    drop(calls);
}

#[test]
fn a_route_has_its_own_say_on_repeating() {
    let rig = site(2, "retry").site("retry /other.php off\n\tphp_server").file("other.php", "").start();
    let (mut other, _call) = next_of(&rig, "/other.php");
    let (mut index, call) = next_of(&rig, "/");
    call.kill_process();
    other.response().expect(502);
    let again = rig.call();
    assert_eq!(again.uri(), "/");
    again.answer(200, "again");
    index.response().expect(200);
}

#[test]
fn nothing_is_run_a_third_time() {
    let rig = site(1, "retry").start();
    let (mut client, first) = next_of(&rig, "/");
    first.kill_process();
    let second = rig.call();
    assert_eq!((second.uri(), second.process()), ("/", 1));
    second.kill_process();
    client.response().expect(502);
    drop((first, second));
    let (_client, call) = next_of(&rig, "/?next");
    assert_eq!(call.process(), 2);
}

#[test]
fn what_its_client_has_seen_something_of_is_not_repeated() {
    let rig = site(2, "retry").start();
    let (mut begun, mut first) = next_of(&rig, "/?begun");
    first.head(200, &[]).body("begun").flush();
    begun.read_until("begun");
    let (mut hinted, mut second) = next_of(&rig, "/?hinted");
    second.informational(103, &[("Link", "</a.css>; rel=preload")]);
    hinted.read_until("103 Early Hints");
    hinted.read_until("\r\n\r\n");
    first.kill_process();
    hinted.response().expect(502);
    let mut rest = Vec::new();
    let mut part = [0; 256];
    while let Ok(count @ 1..) = begun.read_some(&mut part) {
        rest.extend_from_slice(&part[..count]);
    }
    assert!(!rest.ends_with(b"0\r\n\r\n"), "the client would take it for whole");
    drop((first, second));
    let (_client, call) = next_of(&rig, "/?next");
    assert_eq!(call.process(), 1);
}

#[test]
fn what_has_written_nothing_that_a_client_has_seen_is_repeated() {
    let rig = site(1, "retry").start();
    let (mut client, mut call) = next_of(&rig, "/");
    call.head(200, &[]).body("never seen");
    call.kill_process();
    rig.answer("from the beginning");
    assert_eq!(client.response().expect(200).text(), "from the beginning");
}

#[test]
fn a_body_that_the_server_no_longer_has_is_not_sent_again() {
    let rig = site(2, "retry PUT").start();
    let put = |length: usize| {
        let head = format!("PUT /?{length} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        rig.send(head + &"x".repeat(length))
    };
    let (mut small, mut large) = (put(60_000), put(200_000));
    let calls = [rig.call(), rig.call()];
    calls[0].kill_process();
    large.response().expect(502);
    let mut again = rig.call();
    assert_eq!(again.uri(), "/?60000");
    assert_eq!(again.read_body().len(), 60_000);
    again.answer(200, "small");
    assert_eq!(small.response().expect(200).text(), "small");
    drop(calls);
}

#[test]
fn the_script_that_crashes_runs_once_and_what_ran_beside_it_again() {
    let rig = site(2, "retry").file("crash.php", "").start();
    let (mut crash, guilty) = next_of(&rig, "/crash.php");
    let (mut beside, _innocent) = next_of(&rig, "/?beside");
    guilty.crash();
    crash.response().expect(502);
    let again = rig.call();
    assert_eq!(again.uri(), "/?beside");
    again.answer(200, "again");
    assert_eq!(beside.response().expect(200).text(), "again");
}

#[test]
fn a_page_that_kills_its_engine_again_and_again_is_refused_alone() {
    let circuit = "circuit {\n\t\t\tfailures 2\n\t\t\tpause 10m\n\t\t\tmax_pause 10m\n\t\t}";
    let rig = site(1, circuit).file("crash.php", "").start();
    for _ in 0..2 {
        let (mut client, call) = next_of(&rig, "/crash.php");
        call.crash();
        client.response().expect(502);
    }
    let refused = rig.ask("/crash.php").response().expect(503);
    assert!(refused.header("retry-after").is_some());
    let labels = [("pool", "classic"), ("route", "/crash.php")];
    assert_eq!(rig.admin().metric("regent_circuit_open", &labels), 1.0);
    let mut other = rig.ask("/?other");
    rig.answer("other");
    assert_eq!(other.response().expect(200).text(), "other");
}

#[test]
fn a_client_whose_502_has_come_already_meets_the_open_circuit() {
    let circuit = "circuit {\n\t\t\tfailures 1\n\t\t\tpause 10m\n\t\t\tmax_pause 10m\n\t\t}";
    let rig = site(1, circuit).start();
    let (mut client, call) = next_of(&rig, "/");
    call.crash();
    client.response().expect(502);
    client.send(regent_rig::get("/"));
    client.response().expect(503);
}

#[test]
fn what_waits_for_a_page_whose_circuit_opens_is_refused_and_never_starts() {
    let circuit = "circuit {\n\t\t\tfailures 1\n\t\t\tpause 10m\n\t\t\tmax_pause 10m\n\t\t}";
    let rig = site(1, circuit).file("crash.php", "").start();
    let (mut client, call) = next_of(&rig, "/crash.php");
    let mut waiting = rig.ask("/crash.php?waits");
    rig.wait_for_queue(1);
    call.crash();
    client.response().expect(502);
    waiting.response().expect(503);
    let (_client, _call) = next_of(&rig, "/?next");
}

#[test]
fn an_engine_that_talks_nonsense_is_replaced() {
    let rig = site(1, "").start();
    let (mut client, call) = next_of(&rig, "/");
    call.talk_nonsense();
    client.response().expect(502);
    let (_client, call) = next_of(&rig, "/?next");
    assert_eq!(call.process(), 1);
}

#[test]
fn an_engine_that_hangs_up_is_replaced() {
    let rig = site(1, "").start();
    let (mut client, call) = next_of(&rig, "/");
    call.hang_up();
    client.response().expect(502);
    let (_client, call) = next_of(&rig, "/?next");
    assert_eq!(call.process(), 1);
}

#[test]
fn what_came_while_no_engine_was_there_is_answered_by_the_next() {
    let rig = site(1, "").start();
    // The third engine in a row that dies early is waited for.
    for death in 0..2 {
        let (mut client, call) = next_of(&rig, "/");
        assert_eq!(call.process(), death);
        call.kill_process();
        client.response().expect(502);
    }
    let mut client = rig.ask("/?patient");
    rig.answer("patient");
    assert_eq!(client.response().expect(200).text(), "patient");
    until("both are counted", || {
        (rig.admin().metric("regent_engine_deaths_total", &[]) == 2.0).then_some(())
    });
}

#[test]
fn with_several_processes_the_death_of_one_costs_what_its_threads_ran() {
    let rig = site(2, "engines 2").start();
    let mut clients = [rig.ask("/?0"), rig.ask("/?1")];
    let calls = [rig.call(), rig.call()];
    assert_ne!(calls[0].process(), calls[1].process());
    let dying: usize = calls[0].uri()[2..].parse().expect("a number");
    calls[0].kill_process();
    clients[dying].response().expect(502);
    let [_dead, other] = calls;
    other.answer(200, "goes on");
    assert_eq!(clients[1 - dying].response().expect(200).text(), "goes on");
    let (mut next, call) = next_of(&rig, "/?next");
    call.answer(200, "next");
    next.response().expect(200);
}

/// A thread that does not come back has its number until it ends. What was to take the place of the last ones found none, and was
/// never made up for: the pool had no thread, and what waited was never answered.
#[test]
fn a_pool_whose_stragglers_had_all_numbers_was_never_filled_again() {
    /// One, and those that there are for the places of others (`SPARE_THREADS`).
    const NUMBERS: usize = 17;
    let rig = site(1, "request_timeout off").start();
    let mut stragglers: Vec<_> = (0..NUMBERS)
        .map(|number| {
            let (client, call) = next_of(&rig, &format!("/?{number}"));
            call.straggle();
            (client, call)
        })
        .collect();
    let mut waiting = rig.ask("/?waits");
    rig.wait_for_queue(1);
    let (mut client, call) = stragglers.pop().expect("there are some");
    call.answer(200, "late");
    client.response().expect(200);
    rig.answer("served");
    assert_eq!(waiting.response().expect(200).text(), "served");
}
