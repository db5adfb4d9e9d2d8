//! What is asked of every server, and the right answers.

use std::fmt;

/// Something that a server of the site answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Script {
    /// 128 periods.
    Hello,
    /// `?sleep=MS&work=N&output=N&iterations=N`: each iteration loops `work` times, sleeps `sleep` milliseconds and
    /// prints a line `output` times. Without a parameter nothing is slept or worked, and one line printed once.
    Sleep,
    /// The same at another path: a route of its own.
    Slow,
    /// `?bytes=N`: so many periods, printed in pieces of 8 KiB.
    Large,
    /// `POST` or `PUT` with any body: its number of bytes, in decimal digits.
    Upload,
    /// A file, no PHP.
    Static(StaticFile),
}

/// The static files by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StaticFile {
    /// 1 KiB
    Small,
    /// 100 KiB
    Medium,
    /// 10 MiB
    Large,
}

/// A request by which a script shows that it does what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// With the `?`; empty without a query.
    pub query: &'static str,
    /// Sent by `POST`; `None` is a `GET`.
    pub body: Option<Vec<u8>>,
    /// Body of the right answer.
    pub answer: String,
}

/// What the hello script answers.
pub const BODY: &str = "................................................................\
                        ................................................................";

/// Not a whole number of pieces of the scripts (8 KiB and 64 KiB), so that the last one shows.
const TRIAL_BYTES: usize = 100_001;

impl Script {
    pub const ALL: [Self; 8] = [
        Self::Hello,
        Self::Sleep,
        Self::Slow,
        Self::Large,
        Self::Upload,
        Self::Static(StaticFile::Small),
        Self::Static(StaticFile::Medium),
        Self::Static(StaticFile::Large),
    ];

    /// The key in the `paths` of another server's description.
    pub fn key(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Sleep => "sleep",
            Self::Slow => "slow",
            Self::Large => "large",
            Self::Upload => "upload",
            Self::Static(_) => "static",
        }
    }

    pub fn trial(self) -> Trial {
        let get = |query, answer| Trial { query, body: None, answer };
        match self {
            Self::Hello => get("", BODY.to_owned()),
            Self::Sleep | Self::Slow => {
                get("?sleep=1&work=10&output=3&iterations=2", sleep_line(1, 10).repeat(6))
            }
            Self::Large => get("?bytes=100001", ".".repeat(TRIAL_BYTES)),
            Self::Upload => {
                Trial { query: "", body: Some(vec![b'x'; TRIAL_BYTES]), answer: TRIAL_BYTES.to_string() }
            }
            Self::Static(file) => get("", file.content()),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static(file) => write!(f, "static file of {} bytes", file.bytes()),
            script => f.write_str(script.key()),
        }
    }
}

impl StaticFile {
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "1k.txt",
            Self::Medium => "100k.txt",
            Self::Large => "10m.txt",
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Self::Small => 1 << 10,
            Self::Medium => 100 << 10,
            Self::Large => 10 << 20,
        }
    }

    /// Numbered lines of eight bytes, so that a piece at a wrong place is a wrong body.
    pub fn content(self) -> String {
        (0..self.bytes() / 8).map(|line| format!("{line:07}\n")).collect()
    }
}

/// A line that the sleep script prints.
fn sleep_line(milliseconds: u64, loops: u64) -> String {
    format!("slept {milliseconds} ms, looped {loops} times, and printed\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_128_periods() {
        assert_eq!(BODY, ".".repeat(128));
    }

    #[test]
    fn a_file_is_as_large_as_it_says_and_no_two_lines_are_equal() {
        for file in StaticFile::ALL {
            assert_eq!(file.content().len(), file.bytes());
        }
        let content = StaticFile::Medium.content();
        let lines: std::collections::BTreeSet<&str> = content.lines().collect();
        assert_eq!(lines.len(), StaticFile::Medium.bytes() / 8);
    }

    #[test]
    fn a_line_of_the_sleep_script_is_40_odd_bytes() {
        assert!((40..=50).contains(&sleep_line(5, 30_000).len()), "{}", sleep_line(5, 30_000).len());
    }
}
