//! The bodies of requests.

use crate::raw::{CANCEL, DATA, END_STREAM, HEADERS, NO_ERROR, RST_STREAM, Raw, frame, post};
use crate::server::{
    SETTINGS, connect, data, echo, frames, get, hello, local, never, receive, request, send, settle, start,
    whole, with,
};
use bytes::Bytes;
use h2::SendStream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use regent_exchange::{Informational, RequestBody, Tunnel};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Sends as much of this as the server gives room for, and says how much that is.
async fn send_what_fits(stream: &mut SendStream<Bytes>, mut bytes: Bytes) -> usize {
    let mut sent = 0;
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = tokio::select! {
            biased;
            room = poll_fn(|context| stream.poll_capacity(context)) => room.unwrap().unwrap(),
            () = settle() => break,
        };
        stream.send_data(bytes.split_to(room.min(bytes.len())), false).unwrap();
        sent += room;
    }
    sent
}

#[tokio::test]
async fn a_body_larger_than_all_windows_comes_whole() {
    local(async {
        let (_server, mut client) = connect(SETTINGS, echo).await;
        let body = Bytes::from((0..5 << 20).map(|at: u32| (at / 7) as u8).collect::<Vec<u8>>());
        let (response, mut stream) = client.send_request(request("POST", "/"), false).unwrap();
        stream.send_data(body.clone(), true).unwrap();
        assert!(receive(response).await.unwrap().body.unwrap() == body);
    })
    .await;
}

#[tokio::test]
async fn a_body_that_nobody_reads_is_held_back_and_no_other_with_it() {
    local(async {
        let service = |request: Request<RequestBody>, early| match request.uri().path() {
            "/never" => {
                // Kept, and not read.
                Box::pin(async move {
                    let _body = request.into_body();
                    std::future::pending().await
                })
            }
            _ => echo(request, early),
        };
        let (_server, mut client) = connect(SETTINGS, service).await;
        let (_response, mut stream) = client.send_request(request("POST", "/never"), false).unwrap();
        let sent = send_what_fits(&mut stream, vec![0; 8 << 20].into()).await;
        assert_eq!(sent, 512 * 1024, "the window of a stream");
        let (response, mut stream) = client.send_request(request("POST", "/"), false).unwrap();
        stream.send_data(vec![1; 2 << 20].into(), true).unwrap();
        assert_eq!(receive(response).await.unwrap().body.unwrap().len(), 2 << 20);
    })
    .await;
}

#[tokio::test]
async fn a_client_is_told_that_the_rest_of_its_body_is_not_wanted() {
    local(async {
        let (_server, stream) = start(SETTINGS, hello);
        let mut client = Raw::greet(stream, &[]).await;
        client.send(&post(1)).await;
        client.send(&frame(DATA, 0, 1, b"the first part")).await;
        assert!(client.next().await.unwrap().is(HEADERS, 1));
        assert!(client.next().await.unwrap().ends_stream());
        let reset = client.next().await.unwrap();
        assert!(reset.is(RST_STREAM, 1) && reset.error_code() == NO_ERROR, "{reset:?}");
        // It had sent that before it knew.
        client.send(&frame(DATA, END_STREAM, 1, b"the last part")).await;
        client.send(&post(3)).await;
        assert!(client.next().await.unwrap().is(HEADERS, 3));
    })
    .await;
}

#[tokio::test]
async fn a_body_is_read_on_behind_the_end_of_its_response_if_somebody_reads_it() {
    local(async {
        let read = Rc::new(RefCell::new(None));
        let slot = Rc::clone(&read);
        let service = move |request: Request<RequestBody>, _| {
            let slot = Rc::clone(&slot);
            tokio::task::spawn_local(async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                *slot.borrow_mut() = Some(body);
            });
            with(200, &[], whole("early"))
        };
        let (_server, mut client) = connect(SETTINGS, service).await;
        let (response, mut stream) = client.send_request(request("POST", "/"), false).unwrap();
        assert_eq!(receive(response).await.unwrap().body.unwrap(), "early");
        stream.send_data(Bytes::from_static(b"late"), true).unwrap();
        settle().await;
        assert_eq!(read.borrow().as_deref(), Some(&b"late"[..]));
    })
    .await;
}

#[tokio::test]
async fn a_body_has_the_length_that_its_request_says_or_is_an_error() {
    local(async {
        for (length, body, whole) in [("4", "body", true), ("5", "body", false), ("3", "body", false)] {
            let seen = Rc::new(Cell::new(None));
            let slot = Rc::clone(&seen);
            let service = move |request: Request<RequestBody>, _| {
                let slot = Rc::clone(&slot);
                // On its own, since the request is dropped with its stream.
                tokio::task::spawn_local(async move {
                    slot.set(Some(request.into_body().collect().await.is_ok()));
                });
                never(get("/").map(|()| RequestBody::empty()), Rc::new(NoHints))
            };
            let (_server, mut client) = connect(SETTINGS, service).await;
            let mut request = request("POST", "/");
            request.headers_mut().insert("content-length", HeaderValue::from_static(length));
            let (_response, mut stream) = client.send_request(request, false).unwrap();
            settle().await;
            stream.send_data(body.into(), true).unwrap();
            settle().await;
            assert_eq!(seen.get(), Some(whole), "{length}");
        }
    })
    .await;
}

struct NoHints;

impl Informational for NoHints {
    fn send(&self, _: http::Version, _: http::StatusCode, _: &HeaderMap) {}

    fn close_connection(&self) {}

    fn hand_over(&self, _: Tunnel) {}

    fn abort(&self) {}
}

#[tokio::test]
async fn trailers_of_a_request_follow_its_body() {
    local(async {
        let service = |request: Request<RequestBody>, _| -> crate::server::Responding {
            Box::pin(async move {
                let collected = request.into_body().collect().await.unwrap();
                let trailers = format!("{:?}", collected.trailers());
                Response::new(frames([data(collected.to_bytes()), data(trailers)]))
            })
        };
        let (_server, mut client) = connect(SETTINGS, service).await;
        let (response, mut stream) = client.send_request(request("POST", "/"), false).unwrap();
        stream.send_data(Bytes::from_static(b"body "), false).unwrap();
        let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("42"))]);
        stream.send_trailers(trailers).unwrap();
        let body = receive(response).await.unwrap().body.unwrap();
        assert_eq!(body, r#"body Some({"x-sum": "42"})"#);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_waits_to_be_asked_for_its_body_is_asked() {
    local(async {
        let (_server, mut client) = connect(SETTINGS, echo).await;
        let mut request = request("POST", "/");
        request.headers_mut().insert("expect", HeaderValue::from_static("100-continue"));
        let (mut response, mut stream) = client.send_request(request, false).unwrap();
        let asked = poll_fn(|context| response.poll_informational(context)).await.unwrap().unwrap();
        assert_eq!(asked.status(), 100);
        stream.send_data(Bytes::from_static(b"asked for"), true).unwrap();
        assert_eq!(receive(response).await.unwrap().body.unwrap(), "asked for");
    })
    .await;
}

/// What notices its end.
struct Noticed(Rc<Cell<bool>>);

impl Drop for Noticed {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

#[tokio::test]
async fn what_is_done_for_a_request_ends_when_its_client_resets_the_stream_or_leaves() {
    local(async {
        for leaves in [false, true] {
            let ended = Rc::new(Cell::new(false));
            let slot = Rc::clone(&ended);
            let service = move |request: Request<RequestBody>, _| -> crate::server::Responding {
                let noticed = Noticed(Rc::clone(&slot));
                Box::pin(async move {
                    let _held = (noticed, request);
                    std::future::pending().await
                })
            };
            let (server, stream) = start(SETTINGS, service);
            let mut client = Raw::greet(stream, &[]).await;
            client.send(&post(1)).await;
            settle().await;
            assert!(!ended.get());
            if leaves {
                drop(client);
                let _ = server.end().await;
            } else {
                client.send(&frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes())).await;
                settle().await;
            }
            assert!(ended.get(), "leaves: {leaves}");
        }
    })
    .await;
}

/// A body of a script that goes on and on.
struct Endless(#[expect(dead_code, reason = "its end is noticed")] Noticed);

impl Body for Endless {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn a_response_that_is_being_made_ends_with_its_stream() {
    local(async {
        let ended = Rc::new(Cell::new(false));
        let slot = Rc::clone(&ended);
        let service = move |_: Request<RequestBody>, _: Rc<dyn Informational>| {
            with(200, &[], Box::pin(Endless(Noticed(Rc::clone(&slot)))))
        };
        let (_server, stream) = start(SETTINGS, service);
        let mut client = Raw::greet(stream, &[]).await;
        client.send(&post(1)).await;
        assert!(client.next().await.unwrap().is(HEADERS, 1) && !ended.get());
        client.send(&frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes())).await;
        settle().await;
        assert!(ended.get());
    })
    .await;
}

#[tokio::test]
async fn a_request_without_a_body_has_an_empty_one() {
    local(async {
        let (_server, mut client) = connect(SETTINGS, echo).await;
        assert_eq!(send(&mut client, get("/")).await.unwrap().body.unwrap(), "");
    })
    .await;
}
