//! Connections of a server that leaves them.

use super::serve;
use super::tests::{SETTINGS, hello};
use regent_net::Drain;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(start_paused = true)]
async fn a_drain_ends_an_idle_connection() {
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let drain = Drain::default();
    let mut answer = Vec::new();
    let client = async {
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let first = client.read(&mut [0; 1024]).await.unwrap();
        drain.begin();
        client.read_to_end(&mut answer).await.unwrap();
        first
    };
    let (served, first) =
        tokio::join!(serve(server, Rc::default(), &SETTINGS, &drain, Rc::default(), hello), client);
    served.unwrap();
    assert!(first > 0 && answer.is_empty());
}

/// Two parts, each after a pause; the server begins to leave before one of them.
async fn asked_in_a_drain(head: [&[u8]; 2], pause: Duration, before: usize) -> String {
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let drain = Drain::default();
    let mut answer = Vec::new();
    let client = async {
        for (index, part) in head.into_iter().enumerate() {
            if index == before {
                drain.begin();
            }
            tokio::time::sleep(pause).await;
            // It may have been closed.
            let _ = client.write_all(part).await;
        }
        client.read_to_end(&mut answer).await.unwrap();
    };
    let (served, ()) =
        tokio::join!(serve(server, Rc::default(), &SETTINGS, &drain, Rc::default(), hello), client);
    drop(served);
    String::from_utf8(answer).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_was_closed_before_its_first_request_had_come() {
    let head: [&[u8]; 2] = [b"GET / HTTP/1.1\r\nHo", b"st: a\r\n\r\n"];
    for before in [0, 1] {
        let answer = asked_in_a_drain(head, Duration::from_millis(500), before).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("hello"), "{answer}");
    }
    let answer = asked_in_a_drain(head, Duration::from_millis(2500), 0).await;
    assert_eq!(answer, "", "not for ever");
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_a_running_request_end() {
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let drain = &Drain::default();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let service = |request, head_time| {
        Box::pin(async move {
            drain.begin();
            tokio::time::sleep(Duration::from_secs(5)).await;
            hello(request, head_time).await
        })
    };
    let (served, _) = tokio::join!(
        serve(server, Rc::default(), &SETTINGS, drain, Rc::default(), service),
        client.read_to_end(&mut answer)
    );
    served.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        answer.to_ascii_lowercase().contains("connection: close") && answer.ends_with("hello"),
        "{answer}"
    );
}
