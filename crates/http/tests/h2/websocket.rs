//! Streams that carry WebSocket (RFC 8441).

use crate::server::{
    Responding, ResponseBody, SETTINGS, connect, get, hello, local, receive, send, settle, whole,
};
use bytes::Bytes;
use h2::client::SendRequest;
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response, StatusCode};
use regent_exchange::{Informational, RequestBody, WebSocketStream};
use std::cell::Cell;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};

fn switched() -> Response<ResponseBody> {
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-accept", "x")
        .header("sec-websocket-protocol", "chat");
    response.body(whole("")).unwrap()
}

/// Sends back what it gets, to the end of that.
fn echoing(request: Request<RequestBody>, client: Rc<dyn Informational>) -> Responding {
    let head = request.into_parts().0;
    assert!(head.extensions.get::<WebSocketStream>().is_some());
    assert_eq!((head.method.as_str(), head.uri.path()), ("GET", "/chat"));
    assert_eq!(head.headers["connection"], "Upgrade");
    assert_eq!(head.headers["upgrade"], "websocket");
    assert_eq!(head.headers["host"], "a.example");
    client.hand_over(Box::new(|stream| {
        Box::pin(async move {
            let (mut reader, mut writer) = split(stream);
            if copy(&mut reader, &mut writer).await.is_ok() {
                writer.shutdown().await.unwrap();
            }
        })
    }));
    Box::pin(std::future::ready(switched()))
}

fn request(protocol: Option<&'static str>) -> Request<()> {
    let uri = if protocol.is_some() { "http://a.example/chat" } else { "a.example:80" };
    let mut request = Request::builder().method("CONNECT").uri(uri).body(()).unwrap();
    if let Some(protocol) = protocol {
        request.extensions_mut().insert(Protocol::from_static(protocol));
    }
    request
}

async fn open(client: &mut SendRequest<Bytes>) -> (SendStream<Bytes>, RecvStream) {
    let (response, send) = client.send_request(request(Some("websocket")), false).unwrap();
    let (head, receive) = response.await.unwrap().into_parts();
    assert_eq!(head.status, 200);
    let names: Vec<&str> = head.headers.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["sec-websocket-protocol", "date"]);
    (send, receive)
}

#[tokio::test]
async fn a_client_is_told_that_it_may() {
    local(async {
        let (_server, mut client) = connect(SETTINGS, hello).await;
        send(&mut client, get("/")).await.unwrap();
        assert!(client.is_extended_connect_protocol_enabled());
    })
    .await;
}

#[tokio::test]
async fn a_stream_is_bytes_both_ways() {
    const LENGTH: usize = 3 << 20;
    local(async {
        let (_server, mut client) = connect(SETTINGS, echoing).await;
        let (mut send, mut receive) = open(&mut client).await;
        send.send_data(Bytes::from(vec![7; LENGTH]), true).unwrap();
        let mut received = 0;
        while let Some(data) = receive.data().await {
            let data = data.unwrap();
            assert!(data.iter().all(|byte| *byte == 7));
            receive.flow_control().release_capacity(data.len()).unwrap();
            received += data.len();
        }
        assert_eq!(received, LENGTH);
    })
    .await;
}

/// A service whose tunnel reads to the end of its stream, and then sets this.
fn watching(
    begun: &Rc<tokio::sync::Notify>,
    dropped: &Rc<Cell<bool>>,
) -> impl Fn(Request<RequestBody>, Rc<dyn Informational>) -> Responding + use<> {
    struct Guard(Rc<Cell<bool>>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let (begun, dropped) = (Rc::clone(begun), Rc::clone(dropped));
    move |_, client| {
        let (begun, guard) = (Rc::clone(&begun), Guard(Rc::clone(&dropped)));
        client.hand_over(Box::new(|mut stream| {
            Box::pin(async move {
                let _guard = guard;
                begun.notify_one();
                let _ = stream.read_to_end(&mut Vec::new()).await;
                std::future::pending::<()>().await;
            })
        }));
        Box::pin(std::future::ready(switched()))
    }
}

#[tokio::test]
async fn a_tunnel_ends_with_its_stream() {
    local(async {
        let (begun, dropped) = (Rc::default(), Rc::default());
        let (_server, mut client) = connect(SETTINGS, watching(&begun, &dropped)).await;
        let (mut send, receive) = open(&mut client).await;
        begun.notified().await;
        // Behind its end the tunnel waits for nothing of the client.
        send.send_data(Bytes::new(), true).unwrap();
        settle().await;
        assert!(!dropped.get());
        send.send_reset(Reason::CANCEL);
        drop((send, receive));
        settle().await;
        assert!(dropped.get());
    })
    .await;
}

#[tokio::test]
async fn a_drain_ends_streams_that_would_never_end() {
    local(async {
        let (begun, dropped) = (Rc::default(), Rc::default());
        let (server, mut client) = connect(SETTINGS, watching(&begun, &dropped)).await;
        let (_send, mut receive) = open(&mut client).await;
        begun.notified().await;
        server.drain.begin();
        // The end, and that the client need not send more (RFC 9113 §8.1).
        let end = receive.data().await.and_then(Result::err);
        assert!(end.is_none_or(|error| error.reason() == Some(Reason::NO_ERROR)));
        // A client that has nothing more to say may have left first.
        drop(server.end().await);
        assert!(dropped.get());
    })
    .await;
}

#[tokio::test]
async fn a_tunnel_that_breaks_off_resets_its_stream() {
    local(async {
        let breaking = |_, client: Rc<dyn Informational>| -> Responding {
            client.hand_over(Box::new(|stream| Box::pin(async move { drop(stream) })));
            Box::pin(std::future::ready(switched()))
        };
        let (_server, mut client) = connect(SETTINGS, breaking).await;
        let (_send, mut receive) = open(&mut client).await;
        let error = receive.data().await.expect("no end").unwrap_err();
        assert_eq!(error.reason(), Some(Reason::CANCEL));
    })
    .await;
}

#[tokio::test]
async fn what_is_no_websocket_is_refused() {
    local(async {
        let (_server, mut client) = connect(SETTINGS, echoing).await;
        for protocol in [None, Some("connect-udp")] {
            let (response, _send) = client.send_request(request(protocol), false).unwrap();
            assert_eq!(receive(response).await.unwrap().head.status(), 501, "{protocol:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_response_to_something_else_opens_no_stream() {
    local(async {
        let (_server, mut client) = connect(SETTINGS, hello).await;
        let (response, _send) = client.send_request(request(Some("websocket")), false).unwrap();
        let error = response.await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
    })
    .await;
}
