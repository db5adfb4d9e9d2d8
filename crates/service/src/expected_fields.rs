//! Fields of requests whose names would be another's for PHP: it has `HTTP_REMOTE_USER` for `Remote-User`, `Remote_User` and
//! `Remote.User` (GHSA-f59h-q822-g45g, GHSA-49wc-4hcv-v58q). They are dropped as by Caddy's `serveHTTP`.

use http::{HeaderMap, HeaderName};
use regent_config as config;

/// Those that are taken all the same.
#[derive(Debug, Default)]
pub struct ExpectedFields {
    with_underscore: Names,
    with_dot: Names,
}

#[derive(Debug, Default)]
struct Names(Vec<Name>);

#[derive(Debug)]
struct Name {
    /// In small letters.
    text: String,
    /// The same with hyphens, which it would be taken for.
    hyphenated: String,
    /// Any name that begins with it.
    is_prefix: bool,
}

/// Whether a field of this name is dropped unless it is expected.
pub(crate) fn is_ambiguous(name: &HeaderName) -> bool {
    name.as_str().bytes().any(|byte| matches!(byte, b'_' | b'.'))
}

impl ExpectedFields {
    pub fn new(expected: &config::ExpectedFields) -> Self {
        Self {
            with_underscore: Names::new(&expected.with_underscore, '_'),
            with_dot: Names::new(&expected.with_dot, '.'),
        }
    }

    /// `are_ambiguous`: whether one of the fields [is](is_ambiguous).
    pub(crate) fn filter(&self, fields: &mut HeaderMap, are_ambiguous: bool) {
        if !are_ambiguous && self.with_underscore.0.is_empty() && self.with_dot.0.is_empty() {
            return;
        }
        let unwanted: Vec<_> = fields.keys().filter(|name| !self.takes(name, fields)).cloned().collect();
        for name in unwanted {
            tracing::debug!(
                field = name.as_str(),
                "a field was dropped, as PHP would take it for another one"
            );
            fields.remove(name);
        }
    }

    fn takes(&self, name: &HeaderName, fields: &HeaderMap) -> bool {
        let text = name.as_str();
        let is_expected = match (text.contains('_'), text.contains('.')) {
            (false, false) => {
                return !self.with_underscore.have_with_hyphens(text)
                    && !self.with_dot.have_with_hyphens(text);
            }
            (true, false) => self.with_underscore.have(text),
            (false, true) => self.with_dot.have(text),
            (true, true) => self.with_underscore.have_whole(text) || self.with_dot.have_whole(text),
        };
        // One of several may be what somebody has put beside a proxy's.
        is_expected && fields.get_all(name).iter().nth(1).is_none()
    }
}

impl Names {
    fn new(names: &[String], sign: char) -> Self {
        let name = |written: &String| {
            let text = written.strip_suffix('*');
            let (is_prefix, text) = (text.is_some(), text.unwrap_or(written).to_owned());
            Name { hyphenated: text.replace(sign, "-"), text, is_prefix }
        };
        Self(names.iter().map(name).collect())
    }

    fn have(&self, field: &str) -> bool {
        self.0.iter().any(|name| name.is_prefix && field.starts_with(&name.text) || field == name.text)
    }

    fn have_whole(&self, field: &str) -> bool {
        self.0.iter().any(|name| !name.is_prefix && field == name.text)
    }

    /// Whether this name is that of an expected one with hyphens.
    fn have_with_hyphens(&self, field: &str) -> bool {
        let is =
            |name: &Name| name.is_prefix && field.starts_with(&name.hyphenated) || field == name.hyphenated;
        self.0.iter().any(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these names are left, in order.
    fn left(underscore: &[&str], dot: &[&str], names: &[&'static str]) -> Vec<String> {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let expected = config::ExpectedFields { with_underscore: texts(underscore), with_dot: texts(dot) };
        let mut fields = HeaderMap::new();
        for name in names {
            fields.append(*name, "a".parse().unwrap());
        }
        let are_ambiguous = fields.keys().any(is_ambiguous);
        ExpectedFields::new(&expected).filter(&mut fields, are_ambiguous);
        let mut left: Vec<_> = fields.keys().map(ToString::to_string).collect();
        left.sort();
        left
    }

    #[test]
    fn a_name_that_would_be_anothers_is_dropped() {
        assert_eq!(left(&[], &[], &["remote-user", "remote_user", "remote.user", "a_b.c"]), ["remote-user"]);
        assert_eq!(left(&[], &[], &["accept", "host"]), ["accept", "host"]);
    }

    #[test]
    fn one_that_is_expected_takes_the_place_of_that_with_hyphens() {
        let names = &["x-a", "x_a", "x.a", "x_b"];
        assert_eq!(left(&["x_a"], &[], names), ["x_a"]);
        assert_eq!(left(&[], &["x.a"], names), ["x.a"]);
        assert_eq!(left(&["x_a"], &["x.a"], names), ["x.a", "x_a"]);
        assert_eq!(left(&["x_*"], &[], names), ["x_a", "x_b"]);
        assert_eq!(left(&["x_a"], &[], &["x-a", "y"]), ["y"]);
        assert_eq!(left(&["hook_*"], &[], &["hook-id", "hook", "hook_id"]), ["hook", "hook_id"]);
    }

    #[test]
    fn one_with_both_signs_has_to_be_named_whole() {
        let names = &["hook_user.id"];
        assert_eq!(left(&["hook_*"], &["hook_user.*"], names), [""; 0]);
        assert_eq!(left(&["hook_user.id"], &[], names), ["hook_user.id"]);
        assert_eq!(left(&[], &["hook_user.id"], names), ["hook_user.id"]);
    }

    #[test]
    fn one_that_comes_several_times_is_dropped() {
        assert_eq!(left(&["x_a"], &[], &["x_a", "x_a", "y"]), ["y"]);
        assert_eq!(left(&[], &[], &["y", "y"]), ["y"]);
    }
}
