//! The field `tracestate`: what other systems keep with a trace (<https://www.w3.org/TR/trace-context/#tracestate-header>).

/// Members that a list may have (§3.3.1.1).
const MOST_MEMBERS: usize = 32;
const LONGEST_KEY: usize = 256;
const LONGEST_VALUE: usize = 256;
/// Bytes. All that the specification asks to pass on, many times over.
const LONGEST: usize = 8192;

/// The lists of all fields of that name as one, in their order; empty for one that is malformed, too long, or not there. Members
/// are passed on as they are; none is added, since nothing is kept of a trace but what the other field says.
pub fn joined_state<'a>(fields: impl Iterator<Item = &'a [u8]>) -> String {
    let mut state = String::new();
    let mut count = 0;
    for member in fields.flat_map(|field| field.split(|byte| *byte == b',')) {
        // Spaces and tabs around members, and empty ones, mean nothing (§3.3.1.1).
        let member = trim(member);
        if member.is_empty() {
            continue;
        }
        count += 1;
        let (Some(text), true) = (valid(member), count <= MOST_MEMBERS) else { return String::new() };
        if !state.is_empty() {
            state.push(',');
        }
        state.push_str(text);
        if state.len() > LONGEST {
            return String::new();
        }
    }
    state
}

fn trim(member: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = member.iter().position(|byte| !is_space(byte)).unwrap_or(member.len());
    let end = member.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &member[start..end]
}

fn valid(member: &[u8]) -> Option<&str> {
    let at = member.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (&member[..at], &member[at + 1..]);
    (is_key(key) && is_value(value)).then(|| std::str::from_utf8(member).ok()).flatten()
}

/// As version 2 of the specification has it, which takes all that version 1 does (§3.3.1.3.1).
fn is_key(key: &[u8]) -> bool {
    let is_inner = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let starts = key.first().is_some_and(|first| matches!(first, b'a'..=b'z' | b'0'..=b'9'));
    starts && key.len() <= LONGEST_KEY && key.iter().all(is_inner)
}

/// What ends with a space has been cut off before (§3.3.1.3.2).
fn is_value(value: &[u8]) -> bool {
    let is_inner = |byte: &u8| matches!(byte, 0x20..=0x7e) && !matches!(byte, b',' | b'=');
    !value.is_empty() && value.len() <= LONGEST_VALUE && value.iter().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn joined(fields: &[&str]) -> String {
        joined_state(fields.iter().map(|field| field.as_bytes()))
    }

    #[test]
    fn lists_are_joined_in_their_order() {
        assert_eq!(joined(&["foo=1"]), "foo=1");
        assert_eq!(joined(&["foo=1 \t , \t bar=2", "baz=3"]), "foo=1,bar=2,baz=3");
        assert_eq!(joined(&["foo=1", "", ",, ,", "bar=a b!"]), "foo=1,bar=a b!");
        assert_eq!(joined(&["fw529a3039@dt=FfA,0-9_-*/=x"]), "fw529a3039@dt=FfA,0-9_-*/=x");
        assert_eq!(joined(&[]), "");
    }

    #[test]
    fn what_is_malformed_is_dropped_with_the_rest() {
        let long_key = format!("{}=1", "z".repeat(257));
        let long_value = format!("foo={}", "z".repeat(257));
        let many = vec!["a=1"; 33].join(",");
        let much = vec![format!("a={}", "z".repeat(256)); 32].join(",");
        for bad in [
            "foo",
            "foo=",
            "=1",
            "foo =1",
            "FOO=1",
            "_a=1",
            "foo=1=2",
            "foo=\u{e9}",
            "foo=\t1\t2",
            &long_key,
            &long_value,
            &many,
            &much,
        ] {
            assert_eq!(joined(&["bar=2", bad]), "", "{bad}");
        }
        assert_eq!(joined(&[&vec!["a=1"; 32].join(",")]).len(), 32 * 4 - 1);
    }

    proptest! {
        #[test]
        fn what_is_passed_on_is_taken_again(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let state = joined_state([&bytes[..]].into_iter());
            prop_assert_eq!(joined(&[&state]), state);
        }

        #[test]
        fn good_lists_go_on_as_they_are(members in proptest::collection::vec("[a-z][a-z0-9_*/@-]{0,20}=[!-+\\--<>-~][ -+\\--<>-~]{0,20}[!-+\\--<>-~]", 0..32)) {
            let list = members.join(",");
            prop_assert_eq!(joined(&[&list]), list);
        }
    }
}
