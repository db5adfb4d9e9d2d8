//! Where a request has its token, and what that grants.

use crate::token::{Grant, Verifier};
use http::{HeaderMap, header};
use std::time::SystemTime;

/// A token, as the request has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub token: String,
    pub source: Source,
}

/// Whether the client has to know the token, or a browser adds it whatever page makes the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Told,
    Cookie,
}

/// The first of: the field `Authorization`, the query parameter `authorization`, the cookie. A field of another scheme than
/// `Bearer` is about something else, for instance the site's password.
pub(crate) fn find(headers: &HeaderMap, query: &str, cookie_name: &str) -> Option<Credentials> {
    let told = |token| Credentials { token, source: Source::Told };
    let field = || bearer(headers).map(told);
    let parameter = || parameter(query, "authorization").map(told);
    let cookie = || cookie(headers, cookie_name).map(|token| Credentials { token, source: Source::Cookie });
    field().or_else(parameter).or_else(cookie)
}

/// What the token of a request grants; `None`: it has none that is valid.
pub(crate) fn grant(verifier: &Verifier, credentials: Option<&Credentials>) -> Option<Grant> {
    let checked = verifier.verify(&credentials?.token, SystemTime::now());
    checked.inspect_err(|error| tracing::debug!(%error, "a token was refused")).ok()
}

/// The first value of a query parameter that is not empty.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.into_owned())
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// RFC 6265 §5.4; a value may be quoted.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let fields = headers.get_all(header::COOKIE).iter().filter_map(|field| field.to_str().ok());
    let mut pairs = fields.flat_map(|field| field.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(known, value)| *known == name && !value.is_empty())?;
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    Some(quoted.unwrap_or(value).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(fields: &[(&'static str, &str)], query: &str) -> Option<(String, Source)> {
        let field = |(name, value): &(&'static str, &str)| {
            (http::HeaderName::from_static(name), value.parse::<http::HeaderValue>().unwrap())
        };
        let headers = fields.iter().map(field).collect();
        find(&headers, query, "auth").map(|found| (found.token, found.source))
    }

    #[test]
    fn the_field_counts_before_the_parameter_and_that_before_the_cookie() {
        let all = [("authorization", "Bearer a"), ("cookie", "x=1; auth=c; y=2")];
        let query = "topic=t&authorization=b";
        assert_eq!(find_in(&all, query), Some(("a".into(), Source::Told)));
        assert_eq!(find_in(&all[1..], query), Some(("b".into(), Source::Told)));
        assert_eq!(find_in(&all[1..], "topic=t"), Some(("c".into(), Source::Cookie)));
        assert_eq!(find_in(&[], "topic=t"), None);
    }

    #[test]
    fn other_fields_and_cookies_are_no_tokens() {
        assert_eq!(find_in(&[("authorization", "Basic YQ=="), ("cookie", "auth=c")], "").unwrap().0, "c");
        assert_eq!(find_in(&[("authorization", "bearer  a ")], "").unwrap().0, "a");
        assert_eq!(find_in(&[("cookie", "xauth=c; auth2=d; auth=")], "authorization="), None);
        assert_eq!(find_in(&[("cookie", "auth=\"q\"")], "").unwrap().0, "q");
    }
}
