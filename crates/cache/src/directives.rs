//! `Cache-Control` (RFC 9111 §5.2), and fields that say the same to certain caches only (RFC 9213).

use http::{HeaderMap, HeaderName, header};
use sfv::{BareItem, Dictionary, ListEntry, Parser};
use std::time::Duration;

/// What is longer means for ever (RFC 9111 §1.2.2).
const LONGEST: u64 = 1 << 31;

/// What a response says to a shared cache, or a request to any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Directives {
    pub(crate) max_age: Option<Duration>,
    pub(crate) s_maxage: Option<Duration>,
    pub(crate) stale_while_revalidate: Option<Duration>,
    pub(crate) stale_if_error: Option<Duration>,
    pub(crate) min_fresh: Option<Duration>,
    pub(crate) flags: Flags,
}

/// The directives without a value that counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const NO_STORE: Self = Self(1);
    pub(crate) const NO_CACHE: Self = Self(2);
    pub(crate) const PRIVATE: Self = Self(4);
    pub(crate) const PUBLIC: Self = Self(8);
    pub(crate) const MUST_REVALIDATE: Self = Self(16);
    pub(crate) const PROXY_REVALIDATE: Self = Self(32);
    pub(crate) const ONLY_IF_CACHED: Self = Self(64);
    pub(crate) const MUST_UNDERSTAND: Self = Self(128);

    pub(crate) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    fn add(&mut self, flag: Self) {
        self.0 |= flag.0;
    }
}

impl Directives {
    /// Of `Cache-Control`. What cannot be read of it is passed over, but a time that cannot be read is over.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        for value in headers.get_all(header::CACHE_CONTROL) {
            for (name, argument) in members(value.as_bytes()) {
                found.add(&name, argument.as_deref());
            }
        }
        found
    }

    /// Of a targeted field (RFC 9213 §2.1), which is a structured one. `None`: there is none, or nothing in it can be read.
    pub(crate) fn targeted(headers: &HeaderMap, name: &HeaderName) -> Option<Self> {
        let lines: Vec<_> = headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
        if lines.is_empty() {
            return None;
        }
        let members = Parser::new(&lines.join(&b", "[..])).parse::<Dictionary>().ok()?;
        if members.is_empty() {
            return None;
        }
        let mut found = Self::default();
        for (name, entry) in &members {
            let ListEntry::Item(item) = entry else { continue };
            match &item.bare_item {
                BareItem::Boolean(true) => found.add(name.as_str(), None),
                BareItem::Integer(number) => found.add(name.as_str(), Some(&i64::from(*number).to_string())),
                _ => {}
            }
        }
        Some(found)
    }

    pub(crate) fn has(&self, flag: Flags) -> bool {
        self.flags.has(flag)
    }

    /// Of several of a name the first counts (RFC 9111 §4.2.1).
    fn add(&mut self, name: &str, argument: Option<&str>) {
        let seconds = |slot: &mut Option<Duration>| {
            slot.get_or_insert_with(|| argument.map_or(Duration::ZERO, seconds));
        };
        match name {
            "max-age" => seconds(&mut self.max_age),
            "s-maxage" => seconds(&mut self.s_maxage),
            "stale-while-revalidate" => seconds(&mut self.stale_while_revalidate),
            "stale-if-error" => seconds(&mut self.stale_if_error),
            "min-fresh" => seconds(&mut self.min_fresh),
            "no-store" => self.flags.add(Flags::NO_STORE),
            // With field names, too: a cache may treat it as without (RFC 9111 §5.2.2.4, §5.2.2.7).
            "no-cache" => self.flags.add(Flags::NO_CACHE),
            "private" => self.flags.add(Flags::PRIVATE),
            "public" => self.flags.add(Flags::PUBLIC),
            "must-revalidate" => self.flags.add(Flags::MUST_REVALIDATE),
            "proxy-revalidate" => self.flags.add(Flags::PROXY_REVALIDATE),
            "only-if-cached" => self.flags.add(Flags::ONLY_IF_CACHED),
            "must-understand" => self.flags.add(Flags::MUST_UNDERSTAND),
            _ => {}
        }
    }
}

/// Zero for what is no number of seconds: better over than for ever.
fn seconds(text: &str) -> Duration {
    delta_seconds(text).unwrap_or_default()
}

/// A number of seconds, of however many digits (RFC 9111 §1.2.2). `None`: it is none.
pub(crate) fn delta_seconds(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse().unwrap_or(LONGEST).min(LONGEST)))
}

/// Names in lower case, and what follows their `=`, without quotes.
fn members(mut rest: &[u8]) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b',' | b'=')).unwrap_or(rest.len());
        let name = String::from_utf8_lossy(rest[..end].trim_ascii()).to_ascii_lowercase();
        let mut argument = None;
        rest = match rest.get(end) {
            Some(b'=') => {
                let (value, tail) = argument_of(&rest[end + 1..]);
                argument = Some(value);
                tail
            }
            _ => rest.get(end + 1..).unwrap_or_default(),
        };
        if !name.is_empty() {
            found.push((name, argument));
        }
    }
    found
}

/// A token or a quoted string, and what is behind the comma that ends it.
fn argument_of(text: &[u8]) -> (String, &[u8]) {
    let (value, rest) = match text.strip_prefix(b"\"") {
        Some(quoted) => unquoted(quoted),
        None => {
            let end = text.iter().position(|byte| *byte == b',').unwrap_or(text.len());
            (text[..end].to_vec(), &text[end..])
        }
    };
    let next = rest.iter().position(|byte| *byte == b',').map_or(rest.len(), |comma| comma + 1);
    (String::from_utf8_lossy(value.trim_ascii()).into_owned(), &rest[next..])
}

fn unquoted(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    let mut bytes = text.iter().enumerate();
    while let Some((index, byte)) = bytes.next() {
        match byte {
            b'"' => return (value, &text[index + 1..]),
            b'\\' => value.extend(bytes.next().map(|(_, escaped)| *escaped)),
            _ => value.push(*byte),
        }
    }
    (value, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn of(value: &'static str) -> Directives {
        Directives::of(&HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static(value))]))
    }

    fn targeted(value: &'static str) -> Option<Directives> {
        let name = HeaderName::from_static("cdn-cache-control");
        let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static(value))]);
        Directives::targeted(&headers, &name)
    }

    #[test]
    fn times_are_read_as_the_rfc_says() {
        for (value, want) in [
            ("max-age=60", Some(60)),
            ("MAX-AGE=60", Some(60)),
            ("max-age=\"60\"", Some(60)),
            ("public,max-age=60,immutable", Some(60)),
            ("max-age=60, max-age=1", Some(60)),
            ("max-age=0060", Some(60)),
            ("max-age=99999999999999999999", Some(LONGEST)),
            ("max-age=-1", Some(0)),
            ("max-age=1.5", Some(0)),
            ("max-age=x", Some(0)),
            ("max-age", Some(0)),
            ("max-age=", Some(0)),
            ("x=\"max-age=60\"", None),
            ("x=\"a\\\", max-age=60\"", None),
            ("max-agex=60", None),
            ("=60", None),
            ("", None),
        ] {
            assert_eq!(of(value).max_age, want.map(Duration::from_secs), "{value}");
        }
    }

    #[test]
    fn a_list_of_fields_is_as_none() {
        assert!(of("private=\"set-cookie, x\", max-age=1").has(Flags::PRIVATE));
        assert_eq!(of("private=\"set-cookie, x\", max-age=1").max_age, Some(Duration::from_secs(1)));
        assert!(of("No-Cache=\"x\"").has(Flags::NO_CACHE));
    }

    #[test]
    fn targeted_fields_are_structured_ones() {
        assert_eq!(targeted("max-age=60").unwrap().max_age, Some(Duration::from_secs(60)));
        assert!(targeted("max-age=60;x=1, no-store").unwrap().has(Flags::NO_STORE));
        assert_eq!(targeted("max-age=\"60\"").unwrap().max_age, None, "a text is no number");
        assert!(!targeted("no-store=?0").unwrap().has(Flags::NO_STORE));
        assert_eq!(targeted("max-age=60,,"), None, "what cannot be read is not there");
        assert_eq!(targeted("Max-Age=60"), None, "keys are in lower case");
        assert_eq!(targeted(""), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let name = HeaderName::from_static("cdn-cache-control");
                let headers = HeaderMap::from_iter([(header::CACHE_CONTROL, value.clone()), (name.clone(), value)]);
                let _ = (Directives::of(&headers), Directives::targeted(&headers, &name));
            }
        }

        #[test]
        fn what_a_field_says_of_storing_is_seen_in_any_company(
            before in "[a-z=0-9]{0,8}", after in "[a-z=\"0-9,]{0,8}",
        ) {
            let text = format!("{before} , NO-STORE ,{after}");
            let headers = HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::try_from(text).unwrap())]);
            prop_assert!(Directives::of(&headers).has(Flags::NO_STORE));
        }
    }
}
