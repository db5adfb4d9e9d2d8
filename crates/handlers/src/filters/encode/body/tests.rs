use super::*;
use crate::filters::encode::budget::EncoderBudget;
use crate::filters::encode::encoder::tests::{FORMATS, decode};
use http_body_util::BodyExt;
use proptest::prelude::*;
use regent_config::ZstdLevel;
use std::collections::VecDeque;

/// What an inner body does, step by step.
#[derive(Debug, Clone)]
enum Step {
    Data(Bytes),
    Pause,
    Trailers,
    Fail,
}

struct Script {
    steps: VecDeque<Step>,
    length: Option<u64>,
    /// It says so once its steps are done, and never ends.
    is_known_to_end: bool,
}

impl Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.steps.pop_front() {
            None if self.is_known_to_end => Poll::Pending,
            None => Poll::Ready(None),
            Some(Step::Data(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Some(Step::Pause) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Step::Trailers) => {
                let trailers = [(http::header::AGE, http::HeaderValue::from_static("1"))];
                Poll::Ready(Some(Ok(Frame::trailers(trailers.into_iter().collect()))))
            }
            Some(Step::Fail) => Poll::Ready(Some(Err(io::Error::other("the script has died")))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_known_to_end && self.steps.is_empty()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.length.map_or_else(http_body::SizeHint::default, http_body::SizeHint::with_exact)
    }
}

fn script(steps: impl IntoIterator<Item = Step>, length: Option<u64>) -> Script {
    Script { steps: steps.into_iter().collect(), length, is_known_to_end: false }
}

const GZIP: EncodeFormat = EncodeFormat::Gzip { level: 5 };

fn body(
    steps: impl IntoIterator<Item = Step>,
    format: EncodeFormat,
    flushing: Flushing,
) -> EncodedBody<Script> {
    EncodedBody::new(script(steps, None), format, flushing)
}

fn data(text: &str) -> Step {
    Step::Data(Bytes::copy_from_slice(text.as_bytes()))
}

/// Bytes that hardly shrink, so that frames fill.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Waits for one frame of data.
async fn next(body: &mut EncodedBody<Script>) -> Bytes {
    body.frame().await.unwrap().unwrap().into_data().unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn all_that_came_before_a_pause_can_be_decoded() {
    for format in FORMATS {
        let steps = [data("one "), data("two "), Step::Pause, data("three "), Step::Pause, data("four")];
        let mut body = body(steps, format, Flushing::OnPause);
        let mut encoded = Vec::new();
        for so_far in ["one two ", "one two three ", "one two three four"] {
            encoded.extend(next(&mut body).await);
            assert_eq!(decode(format, &encoded, false).unwrap(), so_far.as_bytes(), "{format:?}");
        }
        assert!(body.frame().await.is_none());
        assert!(decode(format, &encoded, true).is_ok(), "{format:?}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn pauses_reach_the_client_of_a_long_stream_too() {
    for format in FORMATS {
        let long = noise(300_000);
        let steps =
            [Step::Data(long.clone().into()), Step::Pause, data("end of part"), Step::Pause, data("last")];
        let mut body = body(steps, format, Flushing::OnPause);
        let mut encoded = Vec::new();
        let part = [&long[..], b"end of part"].concat();
        while decode(format, &encoded, false).unwrap_or_default() != part {
            encoded.extend(next(&mut body).await);
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn each_event_is_sent_at_once() {
    for format in FORMATS {
        let events = [data("data: 1\n\n"), data("data: 2\n\n"), data("data: 3\n\n")];
        let mut body = body(events, format, Flushing::EachFrame);
        let mut encoded = Vec::new();
        for so_far in ["data: 1\n\n", "data: 1\n\ndata: 2\n\n", "data: 1\n\ndata: 2\n\ndata: 3\n\n"] {
            encoded.extend(next(&mut body).await);
            assert_eq!(decode(format, &encoded, false).unwrap(), so_far.as_bytes(), "{format:?}");
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn small_frames_become_one() {
    let mut body = body((0..1000).map(|_| data("hello ")), GZIP, Flushing::OnPause);
    let encoded = next(&mut body).await;
    assert_eq!(decode(GZIP, &encoded, true).unwrap(), "hello ".repeat(1000).as_bytes());
    assert!(body.frame().await.is_none());
    assert!(body.is_end_stream());
}

#[tokio::test(flavor = "current_thread")]
async fn an_error_leaves_the_stream_without_its_end() {
    for format in FORMATS {
        for before in [0, 100, 200_000] {
            let steps = [Step::Data(noise(before).into()), Step::Pause, Step::Fail];
            let mut body = body(steps, format, Flushing::OnPause);
            let mut encoded = Vec::new();
            let error = loop {
                match body.frame().await.unwrap() {
                    Ok(frame) => encoded.extend(frame.into_data().unwrap()),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.to_string(), "the script has died");
            assert!(decode(format, &encoded, true).is_err(), "{format:?}: a truncated stream seems whole");
            assert!(body.frame().await.is_none());
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn trailers_follow_the_end() {
    let collected = body([data("text"), Step::Trailers], GZIP, Flushing::OnPause).collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["age"], "1");
    assert_eq!(decode(GZIP, &collected.to_bytes(), true).unwrap(), b"text");
}

#[tokio::test(flavor = "current_thread")]
async fn frames_are_bounded() {
    let mut body = body([Step::Data(noise(1_000_000).into())], GZIP, Flushing::OnPause);
    let mut frames = Vec::new();
    while let Some(frame) = body.frame().await {
        frames.push(frame.unwrap().into_data().unwrap());
    }
    assert!(frames.iter().all(|frame| frame.len() <= FRAME), "{:?}", frames.iter().map(Bytes::len));
    assert_eq!(decode(GZIP, &frames.concat(), true).unwrap(), noise(1_000_000));
}

#[tokio::test(flavor = "current_thread")]
async fn a_long_body_leaves_the_thread_and_a_short_one_stays() {
    let is_away = |body: &EncodedBody<Script>| matches!(body.work, Work::Away(_));
    let mut cx = Context::from_waker(Waker::noop());
    let mut short = body([Step::Data(noise(60_000).into())], GZIP, Flushing::OnPause);
    while let Poll::Ready(None) | Poll::Pending = Pin::new(&mut short).poll_frame(&mut cx) {
        assert!(!is_away(&short));
    }
    let mut long =
        EncodedBody::new(script([Step::Data(noise(70_000).into())], Some(70_000)), GZIP, Flushing::OnPause);
    assert!(Pin::new(&mut long).poll_frame(&mut cx).is_pending());
    assert!(is_away(&long));
    // The client leaves: nothing waits for the piece.
    drop(long);
}

#[tokio::test(flavor = "current_thread")]
async fn pieces_wait_for_their_turn_and_those_that_nobody_wants_take_none() {
    let budget = Arc::<EncoderBudget>::default();
    let long = || {
        let script = script([Step::Data(noise(300_000).into())], Some(300_000));
        EncodedBody::new(script, GZIP, Flushing::OnPause).holding(budget.reserve(GZIP).unwrap())
    };
    let turns = budget.reserve(GZIP).unwrap().turns();
    let cores = u32::try_from(turns.available_permits()).unwrap();
    let all = Arc::clone(&turns).acquire_many_owned(cores).await.unwrap();
    let (mut left, waiting) = (long(), tokio::spawn(long().collect()));
    assert!(Pin::new(&mut left).poll_frame(&mut Context::from_waker(Waker::noop())).is_pending());
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished(), "no core is free");
    drop((left, all));
    let encoded = waiting.await.unwrap().unwrap().to_bytes();
    assert_eq!(decode(GZIP, &encoded, true).unwrap(), noise(300_000));
    assert_eq!(turns.available_permits(), cores as usize);
}

/// Brotli takes tens of milliseconds for 64 KiB.
#[test]
fn formats_that_take_long_leave_the_thread_sooner() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    for (format, length) in [
        (EncodeFormat::Brotli { level: 11 }, 2_000),
        (EncodeFormat::Brotli { level: 5 }, 5_000),
        (EncodeFormat::Zstd { level: ZstdLevel::Best, checksum: false }, 70_000),
    ] {
        runtime.block_on(async {
            // Nothing is encoded elsewhere before the test has looked.
            let (go, wait) = std::sync::mpsc::channel::<()>();
            drop(tokio::task::spawn_blocking(move || wait.recv()));
            let script = script([Step::Data(noise(length).into())], Some(length as u64));
            let body = Box::new(EncodedBody::new(script, format, Flushing::OnPause));
            let mut body = body.whole().expect_err("it would be encoded here");
            assert!(Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(matches!(body.work, Work::Away(_)), "{format:?}");
            drop(go);
            let encoded = body.collect().await.unwrap().to_bytes();
            assert_eq!(decode(format, &encoded, true).unwrap(), noise(length));
        });
    }
}

/// As of a script that has written all that it has declared, and goes on working.
#[tokio::test(flavor = "current_thread")]
async fn a_body_that_says_that_it_is_at_its_end_is_not_waited_for() {
    let ending = Script { is_known_to_end: true, ..script([data("one "), data("two")], None) };
    let collected = EncodedBody::new(ending, GZIP, Flushing::OnPause).collect().await.unwrap();
    assert_eq!(decode(GZIP, &collected.to_bytes(), true).unwrap(), b"one two");
}

#[test]
fn without_a_runtime_all_is_done_in_place() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut body = body([Step::Data(noise(300_000).into())], GZIP, Flushing::OnPause);
    let mut encoded = Vec::new();
    loop {
        match Pin::new(&mut body).poll_frame(&mut cx) {
            Poll::Ready(Some(frame)) => encoded.extend(frame.unwrap().into_data().unwrap()),
            Poll::Ready(None) => break,
            Poll::Pending => {}
        }
    }
    assert_eq!(decode(GZIP, &encoded, true).unwrap(), noise(300_000));
}

fn whole(
    steps: impl IntoIterator<Item = Step>,
    length: Option<u64>,
) -> Result<Bytes, Box<EncodedBody<Script>>> {
    Box::new(EncodedBody::new(script(steps, length), GZIP, Flushing::OnPause)).whole()
}

#[tokio::test(flavor = "current_thread")]
async fn only_what_is_short_and_there_is_encoded_at_once() {
    let encoded = whole([data("one "), data("two")], Some(7)).ok().unwrap();
    assert_eq!(decode(GZIP, &encoded, true).unwrap(), b"one two");

    let two = || [data("one "), data("two")];
    let paused = [data("one "), Step::Pause, data("two")];
    for (name, given_back) in [
        ("unknown length", whole(two(), None)),
        ("long", whole(two(), Some(inline_limit(GZIP) + 1))),
        ("not there", whole(paused, Some(7))),
        ("trailers", whole([data("one two"), Step::Trailers], Some(7))),
    ] {
        let body = given_back.err().unwrap_or_else(|| panic!("{name} was encoded at once"));
        let collected = body.collect().await.unwrap();
        assert_eq!(collected.trailers().is_some(), name == "trailers");
        assert_eq!(decode(GZIP, &collected.to_bytes(), true).unwrap(), b"one two", "{name}");
    }
    let failed = whole([data("one"), Step::Fail], Some(7)).err().unwrap();
    assert!(failed.collect().await.is_err());
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let piece = (prop::collection::vec(any::<u8>(), 0..200), 1..600_usize);
    let step = prop_oneof![
        3 => piece.prop_map(|(bytes, times)| Step::Data(bytes.repeat(times).into())),
        1 => Just(Step::Pause),
    ];
    prop::collection::vec(step, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_bytes_in_any_frames_come_back(
        steps in steps(),
        format in prop::sample::select(&FORMATS),
        flushing in prop::sample::select(&[Flushing::OnPause, Flushing::EachFrame][..]),
        knows_length in any::<bool>(),
    ) {
        let given: Vec<u8> = steps.iter().flat_map(|step| match step {
            Step::Data(data) => data.to_vec(),
            _ => Vec::new(),
        }).collect();
        let length = knows_length.then_some(given.len() as u64);
        let body = Box::new(EncodedBody::new(script(steps, length), format, flushing));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let encoded = match body.whole() {
            Ok(whole) => whole,
            Err(body) => runtime.block_on(body.collect()).unwrap().to_bytes(),
        };
        prop_assert_eq!(decode(format, &encoded, true).unwrap(), given);
    }
}

#[test]
fn the_best_level_of_zstd_can_be_decoded_by_browsers() {
    // RFC 9659 §3 asks for a window of at most 8 MiB; it is 512 KiB.
    let format = EncodeFormat::Zstd { level: ZstdLevel::Best, checksum: true };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let body = body([Step::Data(noise(2_000_000).into())], format, Flushing::OnPause);
    let encoded = runtime.block_on(body.collect()).unwrap().to_bytes();
    let mut decoder = zstd::stream::read::Decoder::new(&encoded[..]).unwrap();
    decoder.window_log_max(19).unwrap();
    let mut decoded = Vec::new();
    io::Read::read_to_end(&mut decoder, &mut decoded).unwrap();
    assert_eq!(decoded.len(), 2_000_000);
}

/// hyper drops what it has not sent when a body fails; while it waits, it sends.
#[test]
fn a_failure_comes_after_what_came_before_it_and_after_a_pause() {
    for format in FORMATS {
        let mut body = EncodedBody::new(script([data("one"), Step::Fail], None), format, Flushing::OnPause);
        let mut cx = Context::from_waker(Waker::noop());
        let (mut given, mut has_paused) = (Vec::new(), false);
        loop {
            match Pin::new(&mut body).poll_frame(&mut cx) {
                Poll::Pending => has_paused = true,
                Poll::Ready(Some(Ok(frame))) => {
                    given.extend_from_slice(&frame.into_data().unwrap());
                    has_paused = false;
                }
                Poll::Ready(end) => {
                    assert!(matches!(end, Some(Err(_))));
                    break;
                }
            }
        }
        assert!(has_paused);
        assert_eq!(decode(format, &given, false).unwrap(), b"one");
    }
}
