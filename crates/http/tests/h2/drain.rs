//! The end of a connection in good order (RFC 9113 §6.8).

use crate::raw::{ACK, DATA, GOAWAY, NO_ERROR, PING, Raw, frame, get};
use crate::server::{Responding, SETTINGS, hello, local, settle, start, whole};
use http::{Request, Response};
use regent_exchange::{Informational, RequestBody};
use std::rc::Rc;
use tokio::sync::Notify;

/// A service that waits for this.
fn waiting(go: &Rc<Notify>) -> impl Fn(Request<RequestBody>, Rc<dyn Informational>) -> Responding + use<> {
    let go = Rc::clone(go);
    move |_, _| {
        let go = Rc::clone(&go);
        Box::pin(async move {
            go.notified().await;
            Response::new(whole("hello"))
        })
    }
}

#[tokio::test]
async fn streams_end_before_their_connection_and_none_is_lost() {
    local(async {
        let go = Rc::new(Notify::new());
        let (server, stream) = start(SETTINGS, waiting(&go));
        let mut client = Raw::greet(stream, &[]).await;
        client.send(&get(1)).await;
        settle().await;
        server.drain.begin();
        let first = client.next_of(GOAWAY).await;
        assert_eq!((first.last_stream(), first.error_code()), (0x7fff_ffff, NO_ERROR));
        let ping = client.next_of(PING).await;
        // Sent before the client knew.
        client.send(&get(3)).await;
        client.send(&frame(PING, ACK, 0, &ping.payload)).await;
        let second = client.next_of(GOAWAY).await;
        assert_eq!((second.last_stream(), second.error_code()), (3, NO_ERROR));
        client.send(&get(5)).await;
        settle().await;
        go.notify_waiters();
        let rest = client.rest().await;
        let ended: Vec<u32> =
            rest.iter().filter(|frame| frame.kind == DATA).map(|frame| frame.stream).collect();
        assert_eq!(ended, [1, 3]);
        drop(client);
        server.end().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_confirm_the_end_is_left() {
    local(async {
        let (server, stream) = start(SETTINGS, hello);
        let mut client = Raw::greet(stream, &[]).await;
        client.send(&get(1)).await;
        assert!(client.next_of(DATA).await.ends_stream());
        server.drain.begin();
        let frames = client.rest().await;
        let last = frames.iter().rfind(|frame| frame.kind == GOAWAY).unwrap();
        assert_eq!((last.last_stream(), last.error_code()), (1, NO_ERROR));
        drop(client);
        server.end().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_client_that_has_not_begun_is_left() {
    local(async {
        let (server, _stream) = start(SETTINGS, hello);
        settle().await;
        server.drain.begin();
        server.end().await.unwrap();
    })
    .await;
}
