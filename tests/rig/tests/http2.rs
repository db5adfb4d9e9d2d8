//! HTTP/2, without TLS.

use regent_rig::{DEADLINE, Rig, Setup};
use regent_tests::h2::Http2;
use std::thread::JoinHandle;

fn started(threads: usize) -> Rig {
    Setup::new().threads(threads).global("servers {\n\t\tprotocols h1 h2c\n\t}").start()
}

/// What a client on a thread of its own gets for these requests, which it sends side by side over one connection: statuses and
/// bodies, in their order.
fn ask(
    rig: &Rig,
    requests: &'static [(&'static str, Option<&'static [u8]>)],
) -> JoinHandle<Vec<(u16, String)>> {
    let address = rig.address();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let connection = Http2::connect_plain(address).await.expect("the server speaks it");
            let send = |(target, body): &(&'static str, Option<&'static [u8]>)| {
                let (connection, target, body) = (connection.clone(), *target, *body);
                tokio::spawn(async move {
                    let asking = tokio::time::timeout(DEADLINE, connection.ask(target, body));
                    let received = asking.await.expect("a response in time").expect("a response");
                    (received.status.as_u16(), received.text().to_owned())
                })
            };
            let asked: Vec<_> = requests.iter().map(send).collect();
            let mut responses = Vec::new();
            for asked in asked {
                responses.push(asked.await.expect("it does not panic"));
            }
            responses
        })
    })
}

#[test]
fn streams_of_one_connection_run_side_by_side() {
    let rig = started(3);
    let client = ask(&rig, &[("/?0", None), ("/?1", None), ("/?2", None)]);
    let mut calls = [rig.call(), rig.call(), rig.call()];
    calls.reverse();
    for call in calls {
        assert_eq!(call.variable("SERVER_PROTOCOL"), Some("HTTP/2.0"));
        let uri = call.uri().to_owned();
        call.answer(200, uri);
    }
    let expected = ["/?0", "/?1", "/?2"].map(|uri| (200, uri.to_owned()));
    assert_eq!(client.join().expect("it gets its responses"), expected);
}

#[test]
fn a_body_comes_over_a_stream_as_over_a_connection() {
    let rig = started(1);
    let client = ask(&rig, &[("/", Some(b"a body"))]);
    let mut call = rig.call();
    assert_eq!(call.variable("REQUEST_METHOD"), Some("POST"));
    assert_eq!(call.read_body(), b"a body");
    call.answer(201, "made");
    assert_eq!(client.join().expect("it gets its response"), [(201, "made".to_owned())]);
}

#[test]
fn the_death_of_an_engine_costs_a_stream_and_not_the_connection() {
    let rig = started(2);
    let client = ask(&rig, &[("/?0", None), ("/?1", None)]);
    let calls = [rig.call(), rig.call()];
    calls[0].kill_process();
    assert_eq!(
        client.join().expect("it gets its responses").iter().map(|(status, _)| *status).collect::<Vec<_>>(),
        [502, 502]
    );
    drop(calls);
    let next = ask(&rig, &[("/?next", None)]);
    rig.answer("next");
    assert_eq!(next.join().expect("it gets its response"), [(200, "next".to_owned())]);
}

#[test]
fn http_1_1_is_spoken_beside_it() {
    let rig = started(1);
    let mut client = rig.ask("/");
    rig.answer("plain");
    assert_eq!(client.response().expect(200).text(), "plain");
}
