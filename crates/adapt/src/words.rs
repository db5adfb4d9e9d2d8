//! Lines of a Caddyfile, for what Caddy has no JSON of.

use crate::object::Object;
use serde_json::Value;
use std::time::Duration;

/// A line with the block behind it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    words: Vec<String>,
    block: Vec<Line>,
}

impl Line {
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { words: words.into_iter().map(Into::into).collect(), block: Vec::new() }
    }

    pub fn word(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    pub fn words(mut self, words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    pub fn block(mut self, lines: Vec<Self>) -> Self {
        self.block = lines;
        self
    }

    /// A directive.
    pub fn handler(self) -> Object {
        self.object(Object::handler("regent"), "directive")
    }

    pub fn build(self) -> Value {
        self.object(Object::new(), "line").build()
    }

    /// As a member of an object, where a module's keys are its options in a Caddyfile.
    pub fn into_member(self) -> (String, Value) {
        let mut words = self.words.into_iter();
        let name = words.next().unwrap_or_default();
        let words: Vec<String> = words.collect();
        let value = match &words[..] {
            [] => true.into(),
            [only] if only == "true" => true.into(),
            [only] if name != "address" => {
                only.parse::<u64>().map_or_else(|_| only.as_str().into(), Value::from)
            }
            _ => words.into(),
        };
        (name, value)
    }

    fn object(self, mut object: Object, key: &str) -> Object {
        object.set(key, self.words);
        object.set_list("block", self.block.into_iter().map(Self::build));
        object
    }
}

/// As Go writes it: `1h30m`, `250ms`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let mut text = String::new();
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let nanoseconds = duration.subsec_nanos();
    let smaller =
        [(nanoseconds / 1_000_000, "ms"), (nanoseconds / 1000 % 1000, "us"), (nanoseconds % 1000, "ns")];
    let smaller = smaller.map(|(count, unit)| (u64::from(count), unit));
    for (count, unit) in parts.into_iter().chain(smaller).filter(|(count, _)| *count > 0) {
        text.push_str(&format!("{count}{unit}"));
    }
    if text.is_empty() { "0".to_owned() } else { text }
}

/// A number of bytes, in the largest unit that it is a whole number of.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}
