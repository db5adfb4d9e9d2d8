//! Lines of the control socket, from a broken engine: each is an event or is passed over, and an event that is written
//! again is the same.

use regent_wire::control::{Event, Order, Start, decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

pub fn run(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()) {
        assert_kept::<Event>(line);
        assert_kept::<Order>(line);
        assert_kept::<Start>(line);
    }
}

fn assert_kept<T: Serialize + DeserializeOwned + PartialEq + Debug>(line: &str) {
    let Ok(message) = decode::<T>(line) else { return };
    let encoded = encode(&message);
    let (end, again) = encoded.split_last().expect("not empty");
    assert!(*end == b'\n' && !again.contains(&b'\n'), "one message a line");
    let again = std::str::from_utf8(again).expect("JSON is UTF-8");
    assert_eq!(decode::<T>(again).expect("what was encoded"), message);
}
