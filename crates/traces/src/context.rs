//! The field `traceparent` (<https://www.w3.org/TR/trace-context/#traceparent-header>).

use crate::ids::{SpanId, TraceId, digit};

/// `00-{trace}-{span}-{flags}`, which later versions begin with too.
const LENGTH: usize = 55;
const SAMPLED: u8 = 1;

/// What a process tells the next of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: TraceId,
    /// The span that all of the next process's are under.
    pub span: SpanId,
    pub sampled: Sampled,
}

/// Whether the spans of a trace are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    Yes,
    No,
}

impl TraceContext {
    /// `None`: it is none, and a new trace is to be begun. Of a later version, what all versions have is read.
    pub fn parse(field: &[u8]) -> Option<Self> {
        let (known, rest) = field.split_at_checked(LENGTH)?;
        let version = byte(&known[..2])?;
        let is_whole = match version {
            0 => rest.is_empty(),
            // Invalid in any case (§3.2.2.1).
            0xff => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let has_dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
        if !is_whole || !has_dashes {
            return None;
        }
        let flags = byte(&known[53..])?;
        Some(Self {
            trace: TraceId::parse(&known[3..35])?,
            span: SpanId::parse(&known[36..52])?,
            sampled: if flags & SAMPLED == 0 { Sampled::No } else { Sampled::Yes },
        })
    }

    /// The value of the field, in version 00. Of its flags, those are cleared that this version does not know (§3.2.2.5.2).
    pub fn field(&self) -> String {
        let flags = if self.sampled == Sampled::Yes { SAMPLED } else { 0 };
        format!("00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

fn byte(digits: &[u8]) -> Option<u8> {
    match digits {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn parse(field: &str) -> Option<TraceContext> {
        TraceContext::parse(field.as_bytes())
    }

    #[test]
    fn the_example_of_the_specification() {
        let context = parse(GOOD).unwrap();
        assert_eq!(context.trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.span.to_string(), "b7ad6b7169203331");
        assert_eq!(context.sampled, Sampled::Yes);
        assert_eq!(context.field(), GOOD);
    }

    #[test]
    fn flags_that_this_version_does_not_know_are_not_passed_on() {
        for (flags, sampled, written) in [
            ("00", Sampled::No, "00"),
            ("02", Sampled::No, "00"),
            ("ff", Sampled::Yes, "01"),
            ("03", Sampled::Yes, "01"),
        ] {
            let context = parse(&format!("{}{flags}", &GOOD[..53])).unwrap();
            assert_eq!(context.sampled, sampled);
            assert!(context.field().ends_with(written));
        }
    }

    #[test]
    fn later_versions_begin_as_this_one() {
        for later in
            [format!("cc{}", &GOOD[2..]), format!("01{}-more", &GOOD[2..]), format!("fe{}-", &GOOD[2..])]
        {
            assert_eq!(parse(&later), parse(GOOD), "{later}");
        }
        assert_eq!(parse(&format!("cc{}.more", &GOOD[2..])), None);
    }

    /// As the specification's own test harness has them.
    #[test]
    fn what_is_malformed_is_none() {
        let bad = [
            String::new(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-"),
            format!("{GOOD}-more"),
            format!("ff{}", &GOOD[2..]),
            format!("0x{}", &GOOD[2..]),
            format!(" {GOOD}"),
            GOOD.to_uppercase(),
            GOOD.replace('-', "."),
            GOOD.replace("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            GOOD.replace("b7ad6b7169203331", "0000000000000000"),
            GOOD.replace("-01", "-.1"),
            GOOD.replace("-01", "-0"),
            GOOD.replace("-01", "-001"),
            GOOD.replacen("0af7", "0Af7", 1),
        ];
        for field in bad {
            assert_eq!(parse(&field), None, "{field}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_read_again_as_it_was_written(field in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.{0,9})?") {
            if let Some(context) = parse(&field) {
                prop_assert_eq!(parse(&context.field()), Some(context));
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = TraceContext::parse(&bytes);
        }

        /// One byte of a good one is changed: it is none, or says what it has there.
        #[test]
        fn a_changed_byte_is_seen(at in 0..GOOD.len(), byte in any::<u8>()) {
            let mut field = GOOD.as_bytes().to_vec();
            field[at] = byte;
            if let Some(context) = TraceContext::parse(&field) {
                let written = context.field();
                // The version, and the flags, may be others.
                prop_assert_eq!(&written.as_bytes()[2..53], &field[2..53]);
            }
        }
    }
}
