//! Responses as they are sent.

use crate::raw::{
    DATA, HEADERS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, Raw, WINDOW_UPDATE, frame, get as get_frame, setting,
};
use crate::server::{
    Responding, SETTINGS, connect, data, frames, get, local, never, receive, request, send, settle, start,
    whole, with,
};
use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use http_body::Frame;
use regent_exchange::{Informational, RequestBody};
use std::future::poll_fn;
use std::rc::Rc;

#[tokio::test]
async fn a_response_has_its_length_and_a_date_and_nothing_of_http_1_1() {
    local(async {
        let fields = [("connection", "close"), ("keep-alive", "timeout=5"), ("upgrade", "h2c"), ("x", "y")];
        let service =
            move |_: Request<RequestBody>, _: Rc<dyn Informational>| with(200, &fields, whole("hello"));
        let (_server, mut client) = connect(SETTINGS, service).await;
        let received = send(&mut client, get("/")).await.unwrap();
        assert_eq!(received.body.as_ref().unwrap(), "hello");
        assert_eq!(received.field("content-length"), Some("5"));
        let mut names: Vec<&str> = received.head.headers().keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "date", "x"]);
    })
    .await;
}

#[tokio::test]
async fn an_aborted_request_ends_its_stream_and_no_other() {
    local(async {
        let service = |request: Request<RequestBody>, client: Rc<dyn Informational>| {
            if request.uri().path() == "/abort" {
                client.abort();
            }
            with(200, &[], whole("hello"))
        };
        let (_server, mut client) = connect(SETTINGS, service).await;
        let error = send(&mut client, get("/abort")).await.map(|_| ()).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
        assert_eq!(send(&mut client, get("/")).await.unwrap().body.unwrap(), "hello");
    })
    .await;
}

#[tokio::test]
async fn a_response_that_has_no_body_ends_with_its_head() {
    local(async {
        for (method, status) in [("HEAD", 200), ("GET", 204), ("GET", 304)] {
            let (_server, mut client) =
                connect(SETTINGS, move |_, _| with(status, &[], frames([data("unwanted")]))).await;
            let (response, _) = client.send_request(request(method, "/"), true).unwrap();
            let (head, body) = response.await.unwrap().into_parts();
            assert!(body.is_end_stream() && head.status == status, "{method} {status}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_response_of_unknown_length_and_its_trailers_come_whole() {
    local(async {
        let parts: Vec<Bytes> = (0..50_u8).map(|part| vec![part; 40_000].into()).collect();
        let all = parts.concat();
        let service = move |_: Request<RequestBody>, _: Rc<dyn Informational>| {
            let trailers = HeaderMap::from_iter([
                ("x-sum".parse().unwrap(), HeaderValue::from_static("42")),
                ("connection".parse().unwrap(), HeaderValue::from_static("close")),
            ]);
            let parts = parts.clone().into_iter().map(data);
            with(200, &[], frames(parts.chain([data(""), Ok(Frame::trailers(trailers))])))
        };
        let (_server, mut client) = connect(SETTINGS, service).await;
        let received = send(&mut client, get("/")).await.unwrap();
        assert_eq!(received.field("content-length"), None);
        assert!(received.body.unwrap() == all);
        let trailers = received.trailers.unwrap();
        assert!(trailers.len() == 1 && trailers["x-sum"] == "42", "{trailers:?}");
    })
    .await;
}

/// How a body of this declared length and of these parts arrives.
async fn broken(length: &'static str, parts: &[Result<&'static str, &'static str>]) -> Result<Bytes, Reason> {
    let parts: Vec<_> = parts.to_vec();
    let service = move |_: Request<RequestBody>, _: Rc<dyn Informational>| {
        let parts = parts.clone().into_iter().map(|part| part.map(|part| Frame::data(part.into())));
        with(200, &[("content-length", length)], frames(parts))
    };
    let (_server, mut client) = connect(SETTINGS, service).await;
    match send(&mut client, get("/")).await {
        Ok(received) => received.body,
        Err(error) => Err(error.reason().unwrap()),
    }
}

#[tokio::test]
async fn a_response_that_breaks_off_never_ends_cleanly() {
    local(async {
        assert_eq!(broken("8", &[Ok("half"), Ok("half")]).await.unwrap(), "halfhalf");
        assert_eq!(broken("8", &[Ok("half"), Err("oh")]).await, Err(Reason::INTERNAL_ERROR));
        assert_eq!(broken("x", &[Ok("half"), Err("oh")]).await, Err(Reason::INTERNAL_ERROR));
        assert_eq!(broken("8", &[Ok("half")]).await, Err(Reason::INTERNAL_ERROR));
        assert_eq!(broken("8", &[]).await, Err(Reason::INTERNAL_ERROR));
        assert_eq!(broken("7", &[Ok("half"), Ok("half")]).await, Err(Reason::INTERNAL_ERROR));
    })
    .await;
}

#[tokio::test]
async fn an_informational_response_for_the_final_one_is_an_error() {
    local(async {
        let (_server, mut client) = connect(SETTINGS, |_, _| with(103, &[], whole(""))).await;
        let error = send(&mut client, get("/")).await.err().unwrap();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
    })
    .await;
}

#[tokio::test]
async fn early_hints_come_before_the_response() {
    local(async {
        let service = |_: Request<RequestBody>, early: Rc<dyn Informational>| -> Responding {
            Box::pin(async move {
                let hint = |target| {
                    HeaderMap::from_iter([
                        ("link".parse().unwrap(), HeaderValue::from_static(target)),
                        ("connection".parse().unwrap(), HeaderValue::from_static("close")),
                    ])
                };
                for status in [StatusCode::CONTINUE, StatusCode::SWITCHING_PROTOCOLS, StatusCode::OK] {
                    early.send(Version::HTTP_2, status, &hint("</never>"));
                }
                early.send(Version::HTTP_2, StatusCode::EARLY_HINTS, &hint("</a.css>"));
                settle().await;
                early.send(Version::HTTP_2, StatusCode::EARLY_HINTS, &hint("</b.css>"));
                early.close_connection();
                tokio::task::spawn_local(async move {
                    // The response is there.
                    early.send(Version::HTTP_2, StatusCode::EARLY_HINTS, &hint("</late.css>"));
                });
                Response::new(whole("hello"))
            })
        };
        let (_server, mut client) = connect(SETTINGS, service).await;
        let (mut response, _) = client.send_request(get("/"), true).unwrap();
        for target in ["</a.css>", "</b.css>"] {
            let hint = poll_fn(|context| response.poll_informational(context)).await.unwrap().unwrap();
            assert_eq!((hint.status(), hint.headers().len()), (StatusCode::EARLY_HINTS, 1));
            assert_eq!(hint.headers()["link"], target);
        }
        assert!(poll_fn(|context| response.poll_informational(context)).await.is_none());
        assert_eq!(receive(response).await.unwrap().body.unwrap(), "hello");
    })
    .await;
}

#[tokio::test]
async fn early_hints_without_end_fill_no_memory() {
    local(async {
        let service = |request: Request<RequestBody>, early: Rc<dyn Informational>| {
            for _ in 0..100_000 {
                early.send(Version::HTTP_2, StatusCode::EARLY_HINTS, &HeaderMap::new());
            }
            never(request, early)
        };
        let (server, stream) = start(SETTINGS, service);
        let mut client = Raw::greet(stream, &[]).await;
        client.send(&get_frame(1)).await;
        settle().await;
        server.drain.begin();
        client.send(&frame(crate::raw::RST_STREAM, 0, 1, &[0; 4])).await;
        let hints = client.rest().await.into_iter().filter(|frame| frame.is(HEADERS, 1)).count();
        assert!(hints < 3000, "{hints}");
    })
    .await;
}

#[tokio::test]
async fn responses_take_turns() {
    local(async {
        let service =
            |_: Request<RequestBody>, _: Rc<dyn Informational>| with(200, &[], whole(vec![0; 300_000]));
        let (_server, stream) = start(SETTINGS, service);
        // A frame may be longer than a turn is.
        let settings = [setting(INITIAL_WINDOW_SIZE, 1 << 20), setting(MAX_FRAME_SIZE, 1 << 20)].concat();
        let mut client = Raw::greet(stream, &settings).await;
        client.send(&frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 20).to_be_bytes())).await;
        let streams = [1, 3, 5];
        client.send(&streams.map(get_frame).concat()).await;
        let mut order = Vec::new();
        let mut open = streams.len();
        while open > 0 {
            let frame = client.next_of(DATA).await;
            assert!(frame.payload.len() <= 16 * 1024, "{}", frame.payload.len());
            open -= usize::from(frame.ends_stream());
            order.push(frame.stream);
        }
        // Of each three in the middle, none is of the same stream.
        for turn in order[6..48].chunks_exact(3) {
            let mut turn = turn.to_vec();
            turn.sort_unstable();
            assert_eq!(turn, streams, "{order:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_response_waits_for_room_and_takes_it_to_the_byte() {
    local(async {
        let service = |_: Request<RequestBody>, _: Rc<dyn Informational>| with(200, &[], whole("0123456789"));
        let (_server, stream) = start(SETTINGS, service);
        let mut client = Raw::greet(stream, &setting(INITIAL_WINDOW_SIZE, 3)).await;
        client.send(&get_frame(1)).await;
        assert_eq!(client.next_of(DATA).await.payload, b"012");
        client.send(&frame(WINDOW_UPDATE, 0, 1, &6_u32.to_be_bytes())).await;
        assert_eq!(client.next_of(DATA).await.payload, b"345678");
        client.send(&frame(WINDOW_UPDATE, 0, 1, &6_u32.to_be_bytes())).await;
        let last = client.next_of(DATA).await;
        assert!(last.payload == b"9" && last.ends_stream());
    })
    .await;
}
