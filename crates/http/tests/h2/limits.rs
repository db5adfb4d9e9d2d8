//! Clients that cost a server more than themselves. Each test is named after the attack.

use crate::raw::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frame, GOAWAY, HEADERS,
    INITIAL_WINDOW_SIZE, PING, PRIORITY, PROTOCOL_ERROR, RST_STREAM, Raw, SETTINGS as SETTINGS_FRAME,
    WINDOW_UPDATE, field, frame, get, get_block, goaway, kept_field, post, setting,
};
use crate::server::{Responding, SETTINGS, SHORT, hello, local, never, settle, start, whole, with};
use http::Request;
use regent_exchange::{Informational, RequestBody};
use regent_http::Settings;
use regent_http::h2::{Blame, Failure, Flood, Stalled};
use std::cell::Cell;
use std::rc::Rc;

/// What a client gets that sends these bytes, and how its connection ends.
async fn flooded<F>(
    service: F,
    settings: &[u8],
    parts: impl IntoIterator<Item = Vec<u8>>,
) -> (Vec<Frame>, Failure)
where
    F: Fn(Request<RequestBody>, Rc<dyn Informational>) -> Responding + 'static,
{
    let (server, stream) = start(SETTINGS, service);
    let client = Raw::greet(stream, settings).await;
    let frames = client.flood(parts).await;
    (frames, server.end().await.unwrap_err())
}

fn is_calmed(frames: &[Frame]) -> bool {
    goaway(frames) == Some(ENHANCE_YOUR_CALM)
}

/// Odd numbers: of streams.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| 2 * number + 1)
}

/// CVE-2023-44487, seen by the h2 crate: streams are reset before they are accepted.
#[tokio::test]
async fn rapid_reset_in_one_write() {
    local(async {
        let cancel = |stream| frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        let burst: Vec<u8> = streams(100).flat_map(|stream| [get(stream), cancel(stream)].concat()).collect();
        let (frames, failure) = flooded(never, &[], [burst]).await;
        assert!(is_calmed(&frames), "{failure}");
    })
    .await;
}

/// The same, slowly enough for each to be begun.
#[tokio::test]
async fn rapid_reset_of_running_requests() {
    local(async {
        let begun = Rc::new(Cell::new(0));
        let count = Rc::clone(&begun);
        let service = move |request, early| {
            count.set(count.get() + 1);
            never(request, early)
        };
        let (server, stream) = start(SETTINGS, service);
        let mut client = Raw::greet(stream, &[]).await;
        // As many as a slow machine is allowed meanwhile, ten a second: until it takes no more.
        for stream in streams(2000) {
            let before = begun.get();
            client.send(&get(stream)).await;
            settle().await;
            if begun.get() == before {
                break;
            }
            client.send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).await;
            settle().await;
        }
        assert!(is_calmed(&client.rest().await));
        drop(client);
        let failure = server.end().await.unwrap_err();
        assert!(matches!(failure, Failure::Flood(Flood::Resets)), "{failure}");
        assert_eq!(failure.blame(), Blame::Client);
        assert!((200..2000).contains(&begun.get()), "{}", begun.get());
    })
    .await;
}

/// A browser that leaves pages.
#[tokio::test]
async fn resets_that_responses_pay_for_are_no_attack() {
    local(async {
        let (_server, stream) =
            start(SETTINGS, |request: Request<RequestBody>, early| match request.method() {
                &http::Method::GET => hello(request, early),
                _ => never(request, early),
            });
        let mut client = Raw::greet(stream, &[]).await;
        for stream in streams(500) {
            client.send(&if stream % 4 == 1 { get(stream) } else { post(stream) }).await;
            match stream % 4 {
                1 => assert!(client.next_of(DATA).await.ends_stream()),
                _ => client.send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).await,
            }
            settle().await;
        }
    })
    .await;
}

/// CVE-2025-8671: the client makes the server reset streams that are running.
#[tokio::test]
async fn made_you_reset() {
    local(async {
        let broken = streams(300).map(|stream| {
            [post(stream), frame(WINDOW_UPDATE, 0, stream, &0x7fff_ffff_u32.to_be_bytes())].concat()
        });
        let (frames, failure) = flooded(never, &[], broken).await;
        assert!(is_calmed(&frames), "{failure}");
        assert!(frames.iter().filter(|frame| frame.kind == RST_STREAM).count() <= 100);
    })
    .await;
}

/// The same, by what only we refuse.
#[tokio::test]
async fn malformed_requests_without_end() {
    local(async {
        let block = [get_block(), field("x", b" padded")].concat();
        let bad = streams(1000).map(|stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
        let (frames, failure) = flooded(never, &[], bad).await;
        assert!(is_calmed(&frames) && matches!(failure, Failure::Flood(Flood::Resets)), "{failure}");
    })
    .await;
}

/// CVE-2024-27316 and others.
#[tokio::test]
async fn continuation_flood() {
    local(async {
        let begin = frame(HEADERS, END_STREAM, 1, &get_block());
        for part in [field("x", &[b'a'; 100]).repeat(100), Vec::new()] {
            let more = std::iter::repeat_n(frame(CONTINUATION, 0, 1, &part), 5000);
            let (frames, failure) = flooded(never, &[], [begin.clone()].into_iter().chain(more)).await;
            assert!(is_calmed(&frames), "{failure}: {frames:?}");
        }
    })
    .await;
}

/// CVE-2016-6581: a field that has entered the table costs a byte each time.
#[tokio::test]
async fn hpack_bomb() {
    local(async {
        let served = Rc::new(Cell::new(0));
        let count = Rc::clone(&served);
        let service = move |request, early| {
            count.set(count.get() + 1);
            hello(request, early)
        };
        // 62: the newest entry of the dynamic table.
        let bomb = [get_block(), kept_field("x-bomb", &[b'b'; 100]), vec![0x80 | 62; 16_000]].concat();
        let bombs = streams(100).map(move |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &bomb));
        let (frames, failure) = flooded(service, &[], bombs).await;
        assert!(is_calmed(&frames) && served.get() == 0, "{failure}");
    })
    .await;
}

/// CVE-2026-49975: as many fields as fit, of nearly no bytes.
#[tokio::test]
async fn a_request_of_many_small_fields() {
    local(async {
        let (_server, stream) = start(SETTINGS, |_, _| panic!("it is not served"));
        let mut client = Raw::greet(stream, &[]).await;
        let block = [get_block(), kept_field("x", b""), vec![0x80 | 62; 300]].concat();
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)).await;
        let head = client.next_of(HEADERS).await;
        // The status: 431, in Huffman code or not, is in no table.
        assert!(head.payload[0] == 0x48, "{head:?}");
    })
    .await;
}

/// CVE-2019-9511 and CVE-2019-9517: responses that the client gives no room for.
#[tokio::test]
async fn streams_without_a_window_are_reset() {
    local(async {
        let (server, stream) = start(Settings { write: SHORT, ..SETTINGS }, hello);
        let mut client = Raw::greet(stream, &setting(INITIAL_WINDOW_SIZE, 0)).await;
        for stream in streams(50) {
            client.send(&get(stream)).await;
        }
        for _ in streams(50) {
            let reset = client.next_of(RST_STREAM).await;
            assert_eq!(reset.error_code(), crate::raw::CANCEL);
        }
        server.drain.begin();
        client.send(&frame(SETTINGS_FRAME, 0, 0, &setting(INITIAL_WINDOW_SIZE, 100))).await;
        client.send(&get(101)).await;
        assert!(client.next_of(DATA).await.is(DATA, 101), "the connection is as good as before");
    })
    .await;
}

/// Responses are handed over whole while there is room for them. What of them is never taken must not be kept either.
#[tokio::test]
async fn a_window_that_is_taken_back_keeps_no_response() {
    local(async {
        let settings = Settings { write: SHORT, ..SETTINGS };
        let (server, stream) = start(settings, |_, _| with(200, &[], whole(vec![0; 60_000])));
        let mut client = Raw::greet(stream, &[]).await;
        client.send(&frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 20).to_be_bytes())).await;
        client.send(&streams(10).flat_map(get).collect::<Vec<u8>>()).await;
        settle().await;
        client.send(&frame(SETTINGS_FRAME, 0, 0, &setting(INITIAL_WINDOW_SIZE, 0))).await;
        settle().await;
        let frames = client.rest().await;
        assert!(frames.iter().filter(|frame| frame.ends_stream()).count() < 10);
        let failure = server.end().await.unwrap_err();
        assert!(matches!(failure, Failure::Stalled(Stalled::Reading)), "{failure}");
    })
    .await;
}

/// CVE-2019-9512, CVE-2019-9515, CVE-2019-9513, and frames of types that nobody knows.
#[tokio::test]
async fn floods_of_control_frames() {
    local(async {
        for control in [
            frame(PING, 0, 0, &[0; 8]),
            frame(SETTINGS_FRAME, 0, 0, &setting(INITIAL_WINDOW_SIZE, 1)),
            frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 7]),
            frame(0x77, 0, 0, b"unknown"),
        ] {
            let (frames, failure) = flooded(never, &[], std::iter::repeat_n(control.clone(), 5000)).await;
            assert!(is_calmed(&frames), "{control:?}: {failure}");
            assert!(matches!(failure, Failure::Flood(Flood::ControlFrames)), "{failure}");
        }
    })
    .await;
}

/// CVE-2019-9518, RUSTSEC-2026-0258.
#[tokio::test]
async fn empty_data_frames() {
    local(async {
        let empty = std::iter::repeat_n(frame(DATA, 0, 1, b""), 5000);
        let (frames, failure) = flooded(never, &[], [post(1)].into_iter().chain(empty)).await;
        assert!(is_calmed(&frames), "{failure}");
    })
    .await;
}

#[tokio::test]
async fn more_streams_than_allowed_are_refused_and_not_served() {
    const REFUSED_STREAM: u32 = 7;
    local(async {
        let begun = Rc::new(Cell::new(0));
        let count = Rc::clone(&begun);
        let service = move |request, early| {
            count.set(count.get() + 1);
            never(request, early)
        };
        let (_server, stream) = start(SETTINGS, service);
        let mut client = Raw::greet(stream, &[]).await;
        // The limit holds once the client has confirmed it.
        client.send(&frame(SETTINGS_FRAME, crate::raw::ACK, 0, &[])).await;
        for stream in streams(105) {
            client.send(&get(stream)).await;
        }
        for stream in streams(105).skip(100) {
            let refusal = client.next().await.unwrap();
            assert!(refusal.is(RST_STREAM, stream) && refusal.error_code() == REFUSED_STREAM, "{refusal:?}");
        }
        assert_eq!(begun.get(), 100);
    })
    .await;
}

#[tokio::test]
async fn a_first_frame_that_is_no_settings() {
    local(async {
        let (server, stream) = start(SETTINGS, never);
        let mut client = Raw::silent(stream);
        client.send_preface().await;
        client.send(&frame(PING, 0, 0, &[0; 8])).await;
        let frames = client.rest().await;
        assert_eq!(goaway(&frames), Some(PROTOCOL_ERROR), "{frames:?}");
        drop(client);
        assert!(matches!(server.end().await, Err(Failure::Protocol(_))));
        assert_eq!(frames.iter().filter(|frame| frame.kind == GOAWAY).count(), 1);
    })
    .await;
}
