//! Frames and heads out of shared memory that an engine has damaged: nothing is read that is not there, and what was
//! read can be written and read again.

use bytes::Bytes;
use regent_wire::fuzzing::{encode_head, encode_trailers, frames};
use regent_wire::{Frame, Head, ResponseHead};

pub fn run(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let frames = frames(bytes);
    assert!(frames.len() <= data.len() / 8, "each frame has a header of its own");
    frames.iter().for_each(assert_frame);
    if let Some(head) = Head::parse(data) {
        assert_request_head(head, data.len());
    }
}

fn assert_frame(frame: &Frame) {
    match frame {
        Frame::Head(head) | Frame::Informational(head) => assert_head(head),
        Frame::Trailers(trailers) => {
            let again = frames(encode_trailers(trailers).into());
            let [Frame::Trailers(again)] = &again[..] else { panic!("{again:?}") };
            assert!(again.fields().eq(trailers.fields()));
        }
        Frame::Log(line) => assert!(line.level <= 7),
        Frame::Body(_) | Frame::End(_) => {}
    }
}

fn assert_head(head: &ResponseHead) {
    assert!((100..1000).contains(&head.status));
    let again = frames(encode_head(head).into());
    let [Frame::Head(again)] = &again[..] else { panic!("{again:?}") };
    assert_eq!(again.status, head.status);
    assert!(head.reason().starts_with(again.reason()), "of a long reason, the beginning");
    assert!(again.fields().eq(head.fields()));
    assert!(head.fields().count() <= head.field_count());
}

fn assert_request_head(head: Head<'_>, length: usize) {
    // As many as are there: a number that was announced costs nothing.
    assert!(head.clone().count() <= length / 8);
    let mut cursor = 0;
    let of_request = std::iter::from_fn(|| head.next_of_request(&mut cursor)).count();
    // A cursor does not know how many there are; what is behind the last is nothing, but in a head that lies.
    assert!(of_request >= head.clone().count().saturating_sub(head.environment));
    assert!(of_request <= length / 8);
    let mut copy = Vec::new();
    head.copy_to(&mut copy);
    let again = Head::parse(&copy).expect("a copy of a head");
    assert_eq!(again.body_length, head.body_length);
    assert!(again.eq(head));
}
