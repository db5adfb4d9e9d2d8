//! From a path to the name of its route: what identifies an object becomes `*`, what identifies code stays.

pub(super) const OTHER: &str = "other";
/// Segments of a path that a name keeps.
const MAX_SEGMENTS: usize = 4;
/// A longer segment is content (a slug, a token), not code.
const MAX_SEGMENT: usize = 32;
/// Shorter ones are words too often: `cafe`, `decade`, `added`.
const MIN_HEX: usize = 8;
/// From here on, letters mixed with [`MIN_DIGITS`] digits are an identifier: ULID, KSUID, nanoid, `cus_9s6XKzkNRiz8i3`.
const MIN_IDENTIFIER: usize = 16;
const MIN_DIGITS: usize = 3;

/// The name of a route, such as `/users/*/orders`. Numbers, UUIDs, hexadecimal and other identifiers, dates and very
/// long segments are `*`; at most four segments stay, the rest is `…`; there is never a query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RouteName(Box<str>);

impl RouteName {
    /// `path` as in the request line, percent-encoded. A query or fragment in it is left out.
    pub fn of_path(path: &str) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let mut name = String::with_capacity(path.len().min(64));
        for segment in segments.by_ref().take(MAX_SEGMENTS) {
            name.push('/');
            name.push_str(if is_variable(segment) { "*" } else { segment });
        }
        if segments.next().is_some() {
            name.push_str("/…");
        }
        if name.is_empty() {
            name.push('/');
        }
        Self(name.into())
    }

    /// The name of a lane of the configuration. Where it could be taken for a path or for [`OTHER`], it says what it
    /// is: metrics must not have two routes of one name.
    pub(crate) fn of_lane(name: &str) -> Self {
        if name == OTHER || name.starts_with('/') {
            Self(format!("lane {name}").into())
        } else {
            Self(name.into())
        }
    }

    /// Of the route that takes what the table has no room for.
    pub(crate) fn other() -> Self {
        Self(OTHER.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for RouteName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

fn is_variable(segment: &str) -> bool {
    if segment.len() > MAX_SEGMENT || segment.chars().any(char::is_control) {
        return true;
    }
    let stem = without_extension(segment);
    is_number_or_date(stem) || is_hexadecimal(stem) || is_identifier(stem)
}

/// `1234.json` and `1234` identify the same kind of thing.
fn without_extension(segment: &str) -> &str {
    match segment.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && extension.len() <= 5 => stem,
        _ => segment,
    }
}

/// Numbers, and numbers with separators: dates, times, ranges, coordinates, versions.
fn is_number_or_date(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    let signed = bytes.strip_prefix(b"-").unwrap_or(bytes);
    signed.first().is_some_and(u8::is_ascii_digit)
        && signed.iter().all(|byte| byte.is_ascii_digit() || b"-._:,+~TZ".contains(byte))
}

/// Hashes, object ids, and UUIDs. Without a digit it may be a word.
fn is_hexadecimal(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    bytes.len() >= MIN_HEX
        && bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
        && bytes.iter().any(u8::is_ascii_digit)
}

fn is_identifier(segment: &str) -> bool {
    segment.len() >= MIN_IDENTIFIER && segment.bytes().filter(u8::is_ascii_digit).count() >= MIN_DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn named(path: &str, name: &str) {
        assert_eq!(RouteName::of_path(path).as_str(), name, "{path}");
    }

    #[test]
    fn code_stays() {
        for path in [
            "/",
            "/index.php",
            "/wp-admin/admin-ajax.php",
            "/api/v2/users",
            "/cafe/decade/added",
            "/defaced",
            "/password-reset-confirmation",
            "/oauth2/callback",
            "/b2b",
        ] {
            named(path, path);
        }
    }

    #[test]
    fn identifiers_are_one_route() {
        named("/users/42", "/users/*");
        named("/users/-1", "/users/*");
        named("/users/42.json", "/users/*");
        named("/orders/018f3f2e-7c1a-7b3e-9d2a-0f1e2d3c4b5a/lines", "/orders/*/lines");
        named("/commits/9fceb02d0ae598e95dc970b74767f19372d61af8", "/commits/*");
        named("/o/507f1f77bcf86cd799439011", "/o/*");
        named("/u/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/u/*");
        named("/customers/cus_9s6XKzkNRiz8i3", "/customers/*");
    }

    #[test]
    fn dates_are_one_route() {
        named("/archive/2026-11-20", "/archive/*");
        named("/archive/2026/11/20", "/archive/*/*/*");
        named("/at/2026-11-20T17:57:33Z", "/at/*");
    }

    #[test]
    fn content_is_one_route() {
        named("/blog/how-i-learned-to-stop-worrying-and-love-php", "/blog/*");
        named("/a\u{7}b", "/*");
    }

    #[test]
    fn four_segments_stay() {
        named("/a/b/c/d", "/a/b/c/d");
        named("/a/b/c/d/e", "/a/b/c/d/…");
        named("/1/2/3/4/5/6", "/*/*/*/*/…");
    }

    #[test]
    fn queries_and_empty_segments_are_left_out() {
        named("/search?q=secret", "/search");
        named("/a#b", "/a");
        named("//a///b/", "/a/b");
        named("", "/");
        named("?token=1", "/");
    }

    #[test]
    fn lanes_have_names_of_their_own() {
        let lane = |name| RouteName::of_lane(name).as_str().to_owned();
        assert_eq!(lane("reports"), "reports");
        assert_eq!(lane("/reports"), "lane /reports");
        assert_eq!(lane("other"), "lane other");
    }

    proptest! {
        #[test]
        fn names_are_short_and_printable(path in any::<String>()) {
            let name = RouteName::of_path(&path);
            prop_assert!(name.as_str().len() <= MAX_SEGMENTS * (MAX_SEGMENT + 1) + "/…".len());
            prop_assert!(name.as_str().starts_with('/'));
            prop_assert!(!name.as_str().contains(['?', '#']) && !name.as_str().chars().any(char::is_control));
        }

        #[test]
        fn numbers_never_make_names(number in any::<u64>()) {
            named(&format!("/users/{number}/edit"), "/users/*/edit");
        }
    }
}
