use super::support::*;
use crate::{Acceptor, HandshakeError, Handshakes};
use proptest::prelude::*;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

fn limited(machine: &Machine, limit: usize) -> (Acceptor, Handshakes) {
    let handshakes = Handshakes::new(NonZeroUsize::new(limit).unwrap(), Duration::from_secs(10));
    let table = machine.tls().site_table(&[internal(&["localhost"])]).unwrap();
    (Acceptor::new(table, handshakes.clone()), handshakes)
}

async fn failure(acceptor: &Acceptor, stream: DuplexStream) -> HandshakeError {
    let error = acceptor.accept(stream, None).await.unwrap_err();
    *error.into_inner().unwrap().downcast().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stalled_handshake_times_out() {
    let machine = Machine::new();
    let (acceptor, handshakes) = limited(&machine, 8);
    let (mut silent, far) = duplex(1024);
    assert!(matches!(failure(&acceptor, far).await, HandshakeError::TimedOut));
    assert_eq!(silent.read(&mut [0]).await.unwrap(), 0, "its connection is closed");

    let (mut slow, far) = duplex(1024);
    slow.write_all(&[22, 3, 1, 2, 0, 1, 0]).await.unwrap();
    assert!(matches!(failure(&acceptor, far).await, HandshakeError::TimedOut));
    assert_eq!(handshakes.count(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_is_no_mystery() {
    let machine = Machine::new();
    let (acceptor, handshakes) = limited(&machine, 8);
    for bytes in [&[][..], &[22], &[22, 3, 1, 2, 0, 1, 0]] {
        let (mut near, far) = duplex(1024);
        near.write_all(bytes).await.unwrap();
        drop(near);
        assert!(matches!(failure(&acceptor, far).await, HandshakeError::Left), "{bytes:?}");
    }
    assert_eq!(handshakes.count(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_after_its_hello_is_none_either() {
    let machine = Machine::new();
    let (acceptor, _) = limited(&machine, 8);
    let mut client =
        rustls::ClientConnection::new(machine.client().into(), "localhost".try_into().unwrap()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let (mut near, far) = duplex(64 * 1024);
    near.write_all(&hello).await.unwrap();
    near.shutdown().await.unwrap();
    assert!(matches!(failure(&acceptor, far).await, HandshakeError::Left));
}

#[tokio::test]
async fn plain_http_is_told_so() {
    let machine = Machine::new();
    let (acceptor, _) = limited(&machine, 8);
    for request in
        ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST /a HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"]
    {
        let (mut near, far) = duplex(1024);
        let client = async {
            // In two parts, the first of which could be anything.
            near.write_all(&request.as_bytes()[..2]).await.unwrap();
            tokio::task::yield_now().await;
            near.write_all(&request.as_bytes()[2..]).await.unwrap();
            let mut response = String::new();
            near.read_to_string(&mut response).await.unwrap();
            drop(near);
            response
        };
        let (error, response) = tokio::join!(failure(&acceptor, far), client);
        assert!(matches!(error, HandshakeError::PlainHttp), "{error}");
        let expected = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
        assert_eq!(response, expected);
    }
}

#[tokio::test]
async fn what_is_no_tls_gets_an_alert() {
    let machine = Machine::new();
    let (acceptor, _) = limited(&machine, 8);
    let (mut near, far) = duplex(1024);
    near.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await.unwrap();
    assert!(matches!(failure(&acceptor, far).await, HandshakeError::Failed(_)));
    let mut alert = Vec::new();
    near.read_to_end(&mut alert).await.unwrap();
    assert_eq!(alert[0], 21, "{alert:?}");
}

/// Polls once.
async fn begin<F: Future>(handshake: std::pin::Pin<&mut F>) -> bool {
    let mut handshake = handshake;
    poll_fn(|cx| Poll::Ready(handshake.as_mut().poll(cx).is_pending())).await
}

#[tokio::test]
async fn of_too_many_handshakes_the_oldest_makes_way() {
    let machine = Machine::new();
    let (acceptor, handshakes) = limited(&machine, 2);
    let (_near, far) = duplex(1024);
    let mut oldest = pin!(failure(&acceptor, far));
    assert!(begin(oldest.as_mut()).await);
    let (_near, far) = duplex(1024);
    let mut other = pin!(failure(&acceptor, far));
    assert!(begin(other.as_mut()).await);
    assert_eq!(handshakes.count(), 2);

    connect(&acceptor, &machine.client(), "localhost").await;
    assert!(matches!(oldest.await, HandshakeError::Displaced));
    assert!(begin(other.as_mut()).await, "the younger one goes on");
    assert_eq!(handshakes.count(), 1, "a finished handshake counts no more");
}

#[tokio::test]
async fn a_handshake_that_is_dropped_counts_no_more() {
    let machine = Machine::new();
    let (acceptor, handshakes) = limited(&machine, 2);
    {
        let (_near, far) = duplex(1024);
        let mut dropped = pin!(failure(&acceptor, far));
        assert!(begin(dropped.as_mut()).await);
        assert_eq!(handshakes.count(), 1);
    }
    assert_eq!(handshakes.count(), 0);
}

/// Whatever is sent in place of a hello, the handshake ends with an error.
#[test]
fn garbage_ends_a_handshake() {
    let machine = Machine::new();
    let (acceptor, handshakes) = limited(&machine, 8);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut client =
        rustls::ClientConnection::new(machine.client().into(), "localhost".try_into().unwrap()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    let garbage = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..400),
        changes.prop_map(move |changes| {
            let mut bytes = hello.clone();
            for (index, value) in changes {
                let index = index.index(bytes.len());
                bytes[index] = value;
            }
            bytes
        }),
    ];
    proptest!(ProptestConfig::with_cases(64), |(bytes in garbage)| {
        runtime.block_on(async {
            let (mut near, far) = duplex(64 * 1024);
            near.write_all(&bytes).await.unwrap();
            near.shutdown().await.unwrap();
            assert!(acceptor.accept(far, None).await.is_err());
        });
    });
    assert_eq!(handshakes.count(), 0);
}
