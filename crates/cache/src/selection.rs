//! Which of several responses of one URL a request gets (RFC 9111 §4.1).

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// What a stored response was selected by, beside its URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Who makes the response, and what else of the request can change it whatever `Vary` says.
    base: Box<[u8]>,
    /// What its `Vary` names, as the request has it.
    varied: Box<[Varied]>,
}

/// A field, and what a request has of it.
pub(crate) type Varied = (HeaderName, Box<[u8]>);

/// What cookies of a request mean to the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CookieRule {
    /// Names, with `*` for any text, not sensitive to case: a request that has one passes the cache.
    pub passed: Vec<String>,
    /// The same: they are as if they were not there, for the rule before and for `Vary: Cookie`.
    pub ignored: Vec<String>,
    pub vary: VaryCookie,
}

/// What `Vary: Cookie` means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VaryCookie {
    /// Requests with the same cookies get the same response.
    #[default]
    Counts,
    /// Nothing.
    IsNothing,
}

impl Selection {
    /// `vary`: the names in a response's `Vary`.
    pub fn new(base: &[u8], vary: &[HeaderName], request: &HeaderMap, cookies: &CookieRule) -> Self {
        let value = |name: &HeaderName| (name.clone(), normalized(request, name, cookies).into());
        Self { base: base.into(), varied: vary.iter().map(value).collect() }
    }

    /// The names in `Vary`, each once and in one order. `Accept-Encoding` is none of them: what is stored was asked for without
    /// one, and is for everybody.
    pub fn names(response: &HeaderMap) -> Vec<HeaderName> {
        let values = response.get_all(header::VARY).iter();
        let members = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let mut names: Vec<_> =
            members.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()).collect();
        names.retain(|name| *name != header::ACCEPT_ENCODING);
        names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        names.dedup();
        names
    }

    /// Whether a request gets the response.
    pub fn fits(&self, base: &[u8], request: &HeaderMap, cookies: &CookieRule) -> bool {
        *self.base == *base
            && self.varied.iter().all(|(name, value)| normalized(request, name, cookies) == **value)
    }

    /// What a request would be selected by if the response to it varied as this one.
    pub fn of_another(&self, base: &[u8], request: &HeaderMap, cookies: &CookieRule) -> Self {
        let value = |(name, _): &Varied| (name.clone(), normalized(request, name, cookies).into());
        Self { base: base.into(), varied: self.varied.iter().map(value).collect() }
    }

    /// As [`Self::parts`] has given them.
    pub(crate) fn of_parts(base: Box<[u8]>, varied: Box<[Varied]>) -> Self {
        Self { base, varied }
    }

    pub(crate) fn parts(&self) -> (&[u8], &[Varied]) {
        (&self.base, &self.varied)
    }

    pub(crate) fn weight(&self) -> usize {
        let varied = self.varied.iter().map(|(name, value)| name.as_str().len() + value.len() + 64);
        self.base.len() + varied.sum::<usize>()
    }
}

impl CookieRule {
    /// Whether a request with these fields is none for the cache.
    pub fn passes(&self, request: &HeaderMap) -> bool {
        self.kept(request).any(|(name, _)| self.passed.iter().any(|pattern| glob(pattern, name)))
    }

    /// The `Cookie` field of a request without those that are ignored; `None`: there is none left.
    pub fn without_ignored(&self, request: &HeaderMap) -> Option<HeaderValue> {
        let kept: Vec<_> = self.kept(request).map(|(_, cookie)| cookie).collect();
        HeaderValue::from_bytes(&kept.join(&b"; "[..])).ok().filter(|value| !value.is_empty())
    }

    /// Names and whole cookies.
    fn kept<'a>(&'a self, request: &'a HeaderMap) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let values = request.get_all(header::COOKIE).iter();
        let cookies = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
        let named = cookies.map(|cookie| {
            let cookie = cookie.trim_ascii();
            let end = cookie.iter().position(|byte| *byte == b'=').unwrap_or(cookie.len());
            (cookie[..end].trim_ascii(), cookie)
        });
        named.filter(|(name, cookie)| {
            !cookie.is_empty() && !self.ignored.iter().any(|pattern| glob(pattern, name))
        })
    }
}

/// Equal for requests that mean the same (RFC 9111 §4.1). A field that is not there is not as an empty one.
fn normalized(request: &HeaderMap, name: &HeaderName, cookies: &CookieRule) -> Vec<u8> {
    if *name == header::COOKIE && cookies.vary == VaryCookie::IsNothing {
        return Vec::new();
    }
    if *name == header::COOKIE {
        return cookies.kept(request).map(|(_, cookie)| cookie).collect::<Vec<_>>().join(&b"; "[..]);
    }
    let mut joined = Vec::new();
    for value in request.get_all(name) {
        for member in value.as_bytes().split(|byte| *byte == b',') {
            joined.push(b',');
            joined.extend_from_slice(member.trim_ascii());
        }
    }
    joined
}

/// Whether a text is as a pattern, in which `*` is any text; not sensitive to case.
pub fn glob(pattern: &str, text: &[u8]) -> bool {
    let pattern = pattern.as_bytes();
    let (mut at, mut read) = (0, 0);
    // Where the last star is, and the text that it stands for ends.
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(byte) if byte.eq_ignore_ascii_case(&text[read]) => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((of_star, end)) = star else { return false };
                star = Some((of_star, end + 1));
                (at, read) = (of_star + 1, end + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::try_from(*value).unwrap());
        }
        headers
    }

    #[test]
    fn requests_that_mean_the_same_get_the_same() {
        let none = CookieRule::default();
        let vary = Selection::names(&fields(&[("vary", "Accept-Language, accept-encoding"), ("vary", "X")]));
        assert_eq!(vary, ["accept-language", "x"]);
        let german = Selection::new(b"", &vary, &fields(&[("accept-language", "de, en")]), &none);
        for (request, want) in [
            (&[("accept-language", "de,en")][..], true),
            (&[("accept-language", "de"), ("accept-language", " en ")], true),
            (&[("accept-language", "de, en"), ("accept-encoding", "gzip")], true),
            (&[("accept-language", "en, de")], false),
            (&[("accept-language", "de, en"), ("x", "")], false),
            (&[], false),
        ] {
            assert_eq!(german.fits(b"", &fields(request), &none), want, "{request:?}");
        }
        assert!(!german.fits(b"other", &fields(&[("accept-language", "de, en")]), &none));
    }

    #[test]
    fn cookies_pass_or_count_as_configured() {
        let rule = CookieRule {
            passed: vec!["wordpress_logged_in_*".into(), "*sess*".into()],
            ignored: vec!["_ga*".into(), "sess_theme".into()],
            ..CookieRule::default()
        };
        for (cookie, want) in [
            ("wordpress_logged_in_1a=x", true),
            ("a=b; WordPress_Logged_In_=", true),
            ("PHPSESSID=1", true),
            ("a=wordpress_logged_in_1; wordpress_test_cookie=1", false),
            ("sess_theme=dark", false),
            ("_ga=sess", false),
            ("", false),
        ] {
            assert_eq!(rule.passes(&fields(&[("cookie", cookie)])), want, "{cookie}");
        }
        let vary = [header::COOKIE];
        let without = Selection::new(b"", &vary, &HeaderMap::new(), &rule);
        assert!(without.fits(b"", &fields(&[("cookie", "_ga=1; _gat=2")]), &rule));
        let german = fields(&[("cookie", "_ga=1; lang=de"), ("cookie", "sess_theme=1")]);
        assert!(!without.fits(b"", &german, &rule));
        assert_eq!(rule.without_ignored(&german).unwrap(), "lang=de");
        let nothing = CookieRule { vary: VaryCookie::IsNothing, ..rule };
        assert!(Selection::new(b"", &vary, &HeaderMap::new(), &nothing).fits(b"", &german, &nothing));
    }

    proptest! {
        #[test]
        fn globs_are_as_regular_expressions_say(pattern in "[ab*]{0,6}", text in "[abA]{0,8}") {
            let mut reached: Vec<bool> = (0..=text.len()).map(|index| index == 0).collect();
            for byte in pattern.bytes() {
                let before = reached;
                reached = (0..=text.len()).map(|index| match byte {
                    b'*' => before[..=index].contains(&true),
                    _ => index > 0 && before[index - 1] && text.as_bytes()[index - 1].eq_ignore_ascii_case(&byte),
                }).collect();
            }
            prop_assert_eq!(glob(&pattern, text.as_bytes()), reached[text.len()]);
        }
    }
}
