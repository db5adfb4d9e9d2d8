//! Pages of other origins (the Fetch standard, "CORS protocol").

use http::{HeaderMap, HeaderValue, header};

/// Origins whose pages may use the hub.
pub(crate) struct Cors(Allowed);

enum Allowed {
    None,
    All,
    /// In lower case.
    These(Vec<String>),
}

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST");
const REQUEST_FIELDS: HeaderValue = HeaderValue::from_static("authorization, cache-control, last-event-id");
const RESPONSE_FIELDS: HeaderValue = HeaderValue::from_static("Last-Event-ID");
/// Seconds that browsers need not ask again; Chromium's bound.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

impl Cors {
    pub fn new(origins: &[String]) -> Self {
        Self(match origins {
            [] => Allowed::None,
            _ if origins.iter().any(|origin| origin == "*") => Allowed::All,
            _ => Allowed::These(origins.iter().map(|origin| origin.to_ascii_lowercase()).collect()),
        })
    }

    /// Adds what lets a page of the request's origin read the response. Cookies come along from the origins that are named:
    /// with `*`, any page could read what a visitor may.
    pub fn mark(&self, request: &HeaderMap, response: &mut HeaderMap) {
        let origin = request.get(header::ORIGIN);
        match (&self.0, origin) {
            (Allowed::None, _) => return,
            (Allowed::All, _) => {
                response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            }
            (Allowed::These(origins), origin) => {
                response.append(header::VARY, HeaderValue::from_static("Origin"));
                let Some(origin) = origin.filter(|origin| is_among(origins, origin)) else { return };
                response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                response.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
            }
        }
        response.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_FIELDS);
    }

    /// Adds what a preflight request asks about.
    pub fn mark_preflight(&self, request: &HeaderMap, response: &mut HeaderMap) {
        self.mark(request, response);
        if response.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
            response.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            response.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_FIELDS);
            response.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        }
    }
}

/// Whether a page of one of these origins has made the request, by its `Origin` or, without that, its `Referer`.
pub(crate) fn comes_from(origins: &[String], request: &HeaderMap) -> bool {
    if origins.iter().any(|origin| origin == "*") {
        return true;
    }
    if let Some(origin) = request.get(header::ORIGIN) {
        return is_among(origins, origin);
    }
    let referer = request.get(header::REFERER).and_then(|referer| referer.to_str().ok());
    referer.and_then(origin_of).is_some_and(|origin| contains(origins, origin))
}

fn is_among(origins: &[String], origin: &HeaderValue) -> bool {
    origin.to_str().is_ok_and(|origin| contains(origins, origin))
}

fn contains(origins: &[String], origin: &str) -> bool {
    origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
}

fn origin_of(url: &str) -> Option<&str> {
    let host = url.find("://")? + "://".len();
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |end| host + end);
    Some(&url[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    fn origins(list: &[&str]) -> Vec<String> {
        list.iter().map(|origin| (*origin).to_owned()).collect()
    }

    fn marked(list: &[&str], origin: &'static str) -> HeaderMap {
        let mut response = HeaderMap::new();
        Cors::new(&origins(list)).mark(&headers(&[(header::ORIGIN, origin)]), &mut response);
        response
    }

    #[test]
    fn named_origins_may_send_cookies_and_all_others_may_not() {
        let response = marked(&["https://a.test", "https://b.test"], "https://B.test");
        assert_eq!(response[header::ACCESS_CONTROL_ALLOW_ORIGIN], "https://B.test");
        assert_eq!(response[header::ACCESS_CONTROL_ALLOW_CREDENTIALS], "true");
        assert_eq!(response[header::VARY], "Origin");
        let response = marked(&["https://a.test"], "https://a.test.evil");
        assert!(!response.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
        let response = marked(&["*", "https://a.test"], "https://a.test");
        assert_eq!(response[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert!(!response.contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
        assert!(marked(&[], "https://a.test").is_empty());
    }

    #[test]
    fn a_preflight_is_answered_for_allowed_origins() {
        let cors = Cors::new(&origins(&["https://a.test"]));
        for (origin, allowed) in [("https://a.test", true), ("https://b.test", false)] {
            let mut response = HeaderMap::new();
            cors.mark_preflight(&headers(&[(header::ORIGIN, origin)]), &mut response);
            assert_eq!(response.contains_key(header::ACCESS_CONTROL_ALLOW_HEADERS), allowed, "{origin}");
        }
    }

    #[test]
    fn who_publishes_with_a_cookie_is_known_by_origin_or_referer() {
        let list = origins(&["https://a.test:8443"]);
        let from = |fields: &[_]| comes_from(&list, &headers(fields));
        assert!(from(&[(header::ORIGIN, "https://a.test:8443")]));
        assert!(from(&[(header::REFERER, "https://a.test:8443/page?x")]));
        assert!(from(&[(header::REFERER, "https://a.test:8443")]));
        assert!(!from(&[(header::ORIGIN, "null"), (header::REFERER, "https://a.test:8443/")]));
        for referer in ["https://a.test:8443.evil/", "https://a.test:8443@evil/", "https://a.test/", "a.test"]
        {
            assert!(!from(&[(header::REFERER, referer)]), "{referer}");
        }
        assert!(!from(&[]) && comes_from(&origins(&["*"]), &HeaderMap::new()));
    }
}
