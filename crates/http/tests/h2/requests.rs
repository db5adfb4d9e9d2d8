//! What a service gets, and what it never sees.

use crate::raw::{
    END_HEADERS, END_STREAM, Frame, HEADERS, PROTOCOL_ERROR, RST_STREAM, Raw, field, frame, get, get_block,
};
use crate::server::{SETTINGS, Server, connect, hello, local, send, start, whole, with};
use http::{Request, Version};
use regent_http::Settings;
use std::cell::Cell;
use std::rc::Rc;

/// Sends back what the service got.
async fn seen(request: Request<()>) -> String {
    let describe = |request: Request<_>, _| {
        assert_eq!(request.version(), Version::HTTP_2);
        let head = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
        with(200, &[], whole(head))
    };
    let (_server, mut client) = connect(SETTINGS, describe).await;
    let received = send(&mut client, request).await.unwrap();
    String::from_utf8(received.body.unwrap().to_vec()).unwrap()
}

async fn status(settings: Settings, request: Request<()>) -> u16 {
    let (_server, mut client) = connect(settings, hello).await;
    send(&mut client, request).await.unwrap().head.status().as_u16()
}

fn asking(fields: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().uri("http://a.example/b?c=d");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

#[tokio::test]
async fn a_request_is_as_http_1_1_would_have_it() {
    local(async {
        let request = asking(&[("cookie", "e=f"), ("cookie", "g=h")]);
        let expected = r#"GET /b?c=d {"cookie": "e=f; g=h", "host": "a.example"}"#;
        assert_eq!(seen(request).await, expected);
        let request = asking(&[("host", "A.Example"), ("te", "trailers")]);
        assert_eq!(seen(request).await, r#"GET /b?c=d {"host": "a.example", "te": "trailers"}"#);
    })
    .await;
}

#[tokio::test]
async fn what_a_service_must_not_see_is_refused_with_a_status() {
    local(async {
        assert_eq!(status(SETTINGS, asking(&[("host", "b.example")])).await, 400);
        let connect = Request::builder().method("CONNECT").uri("a.example:443").body(()).unwrap();
        assert_eq!(status(SETTINGS, connect).await, 501);
        let names: Vec<String> = (0..201).map(|number| format!("x-{number}")).collect();
        let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(status(SETTINGS, asking(&fields)).await, 431);
        let long = "x".repeat(SETTINGS.max_header_size);
        assert_eq!(status(SETTINGS, asking(&[("x", &long)])).await, 431);
    })
    .await;
}

/// How the server ends a stream with this header block, before it serves another one; or the connection.
async fn end_of(block: Vec<u8>) -> (Frame, Option<Frame>) {
    let served = Rc::new(Cell::new(0));
    let count = Rc::clone(&served);
    let (_server, stream): (Server, _) = start(SETTINGS, move |request, early| {
        count.set(count.get() + 1);
        hello(request, early)
    });
    let mut client = Raw::greet(stream, &[]).await;
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)).await;
    let end = client.next().await.unwrap();
    assert_eq!(served.get(), 0);
    client.send(&get(3)).await;
    (end, client.next().await)
}

#[tokio::test]
async fn a_malformed_request_is_an_error_of_its_stream_alone() {
    local(async {
        for (name, value) in [
            ("connection", "close"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "gzip"),
            ("x", " padded"),
            ("x", "padded\t"),
            (":path", "/twice"),
            (":status", "200"),
            ("content-length", "1"),
            ("content-length", "+0"),
        ] {
            let block = [get_block(), field(name, value.as_bytes())].concat();
            let (end, next) = end_of(block).await;
            assert!(end.is(RST_STREAM, 1) && end.error_code() == PROTOCOL_ERROR, "{name} {value:?}: {end:?}");
            assert!(next.is_some_and(|next| next.is(HEADERS, 3)), "{name}: the next request is served");
        }
    })
    .await;
}

#[tokio::test]
async fn pseudo_fields_have_to_be_there_once_and_first() {
    const METHOD: &[u8] = &[0x82];
    const SCHEME: &[u8] = &[0x87];
    const PATH: &[u8] = &[0x84];
    local(async {
        let authority = field(":authority", b"a.example");
        let late = [&field("x", b"y"), METHOD].concat();
        for block in [
            [SCHEME, PATH, &authority].concat(),
            [METHOD, PATH, &authority].concat(),
            [METHOD, SCHEME, &authority].concat(),
            [SCHEME, PATH, &authority, &late].concat(),
            [METHOD, SCHEME, &field(":path", b""), &authority].concat(),
            // RFC 8441 §4: `:protocol` is of CONNECT alone, which has a path then.
            [METHOD, SCHEME, PATH, &field(":protocol", b"websocket"), &authority].concat(),
            [&field(":method", b"CONNECT")[..], SCHEME, &field(":protocol", b"websocket"), &authority]
                .concat(),
        ] {
            let (end, _) = end_of(block.clone()).await;
            assert!(end.is(RST_STREAM, 1) && end.error_code() == PROTOCOL_ERROR, "{block:?}: {end:?}");
        }
    })
    .await;
}

/// Not those of fields: their names and values are part of the state of header compression, which both ends share.
#[tokio::test]
async fn bytes_that_no_field_may_have_are_an_error_of_the_connection() {
    local(async {
        for bad in [
            field("X-Upper", b"a"),
            field("x y", b"a"),
            field("", b"a"),
            field("x", b"a\0b"),
            field("x", b"a\r\nb: c"),
            field(":unknown", b"a"),
        ] {
            let (end, _) = end_of([get_block(), bad.clone()].concat()).await;
            assert!(matches!(end.kind, crate::raw::GOAWAY | RST_STREAM), "{bad:?}: {end:?}");
            assert_eq!(end.error_code(), PROTOCOL_ERROR, "{bad:?}");
        }
    })
    .await;
}
