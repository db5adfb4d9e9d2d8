//! Clients that stop in the middle of something.

use crate::raw::{END_STREAM, GOAWAY, HEADERS, NO_ERROR, PING, Raw, frame, get, get_block, goaway};
use crate::server::{SETTINGS, SHORT, connect, echo, hello, local, never, request, start, whole, with};
use bytes::Bytes;
use regent_http::Settings;
use regent_http::h2::{Failure, Stalled, serve};
use regent_net::Drain;
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::spawn_local;

/// A time-out before which a test has to do something, on a busy machine too.
const BEARABLE: Duration = Duration::from_secs(1);
const READ_HEADER: Settings = Settings { read_header: SHORT, ..SETTINGS };

fn stalled(end: Result<(), Failure>, in_the_middle_of: Stalled) -> bool {
    matches!(end, Err(Failure::Stalled(what)) if what == in_the_middle_of)
}

#[tokio::test]
async fn a_client_that_does_not_say_how_it_begins() {
    local(async {
        let (server, _stream) = start(READ_HEADER, never);
        assert!(stalled(server.end().await, Stalled::Preface));
        let (server, stream) = start(READ_HEADER, never);
        let mut client = Raw::silent(stream);
        client.send_preface().await;
        assert_eq!(goaway(&client.rest().await), Some(NO_ERROR));
        drop(client);
        assert!(stalled(server.end().await, Stalled::Preface));
    })
    .await;
}

#[tokio::test]
async fn a_header_block_that_never_ends() {
    local(async {
        let unfinished = frame(HEADERS, END_STREAM, 1, &get_block());
        let whole = get(1);
        for part in [&unfinished[..], &whole[..20]] {
            let (server, stream) = start(READ_HEADER, never);
            let mut client = Raw::greet(stream, &[]).await;
            client.send(part).await;
            assert_eq!(goaway(&client.rest().await), Some(NO_ERROR));
            drop(client);
            assert!(stalled(server.end().await, Stalled::Head));
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_without_streams_ends_however_alive_it_looks() {
    local(async {
        let (server, stream) = start(Settings { idle: BEARABLE, ..SETTINGS }, hello);
        let mut client = Raw::greet(stream, &[]).await;
        client.send(&get(1)).await;
        loop {
            // Not for ever: a number of these is an attack.
            client.send(&frame(PING, 0, 0, &[0; 8])).await;
            let answer = client.next().await.unwrap();
            if answer.kind == GOAWAY {
                assert_eq!((answer.error_code(), answer.last_stream()), (NO_ERROR, 1));
                break;
            }
            // clock: the pace of a client that looks alive.
            tokio::time::sleep(BEARABLE / 10).await;
        }
        drop(client);
        server.end().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_running_request_keeps_its_connection() {
    local(async {
        let settings = Settings { idle: BEARABLE, read_header: BEARABLE, write: BEARABLE, ..SETTINGS };
        let (_server, mut client) = connect(settings, echo).await;
        let (response, mut stream) = client.send_request(request("POST", "/"), false).unwrap();
        // clock: as long as three of its limits take, or longer.
        tokio::time::sleep(3 * BEARABLE).await;
        stream.send_data(Bytes::from_static(b"still here"), true).unwrap();
        let received = crate::server::receive(response).await.unwrap();
        assert_eq!(received.body.unwrap(), "still here");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_takes_nothing() {
    local(async {
        let settings = Settings { write: SHORT, ..SETTINGS };
        let (server, stream) = start(settings, |_, _| with(200, &[], whole(vec![0; 1 << 20])));
        let window = crate::raw::setting(crate::raw::INITIAL_WINDOW_SIZE, 1 << 20);
        let mut client = Raw::greet(stream, &window).await;
        client.send(&frame(crate::raw::WINDOW_UPDATE, 0, 0, &(1_u32 << 20).to_be_bytes())).await;
        client.send(&get(1)).await;
        assert!(stalled(server.end().await, Stalled::Reading));
    })
    .await;
}

/// A stream as TLS is one: what says the end has to be sent, and the client takes nothing.
struct Stuck {
    stream: tokio::io::DuplexStream,
    was_shut_down: Rc<Cell<bool>>,
}

impl AsyncRead for Stuck {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stuck {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.was_shut_down.set(true);
        Poll::Pending
    }
}

#[tokio::test]
async fn a_client_that_does_not_even_take_the_end() {
    local(async {
        let (stream, socket) = tokio::io::duplex(64 * 1024);
        let stuck = Stuck { stream: socket, was_shut_down: Rc::default() };
        let settings = Settings { idle: SHORT, write: SHORT, ..SETTINGS };
        let served = spawn_local(async move {
            let service = |request, _, early| hello(request, early);
            serve(stuck, &settings, &Drain::default(), &Drain::default(), service).await
        });
        let _client = Raw::greet(stream, &[]).await;
        assert!(stalled(served.await.unwrap(), Stalled::Reading));
    })
    .await;
}

/// A client of TLS takes an end without a word for an attack. One that has just come has a while for its first request, also of a
/// server that ends.
#[tokio::test]
async fn a_client_that_has_not_begun_is_told_the_end() {
    local(async {
        let patient = Settings { read_header: 2 * SETTINGS.last_request, ..SETTINGS };
        for (settings, is_drain) in [(READ_HEADER, false), (READ_HEADER, true), (patient, true)] {
            let (_stream, socket) = tokio::io::duplex(64 * 1024);
            let was_shut_down = Rc::<Cell<bool>>::default();
            let stuck = Stuck { stream: socket, was_shut_down: Rc::clone(&was_shut_down) };
            let drain = Drain::default();
            if is_drain {
                drain.begin();
            }
            let service = |request, _, early| hello(request, early);
            let ended = serve(stuck, &settings, &drain, &drain, service).await;
            let is_patient = settings.read_header > settings.last_request;
            assert!(if is_patient { ended.is_ok() } else { stalled(ended, Stalled::Preface) });
            assert!(was_shut_down.get());
        }
    })
    .await;
}
