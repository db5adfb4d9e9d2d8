//! Answers: whole, small, never stored, and of no use to other sites' pages.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

pub(crate) type Answer = Response<Full<Bytes>>;

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The dashboard's own files and the API, nothing else: no inline script, no other host, no frame around it.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                              img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
                           style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'none'";

/// Indented, as people read it with curl, and with a line end.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let mut text = serde_json::to_vec_pretty(value).expect("invariant: answers have text keys only");
    text.push(b'\n');
    answer(status, "application/json", text)
}

pub(crate) fn ok(value: &impl Serialize) -> Answer {
    json(StatusCode::OK, value)
}

pub(crate) fn text(media_type: &'static str, text: impl Into<Bytes>) -> Answer {
    answer(StatusCode::OK, media_type, text)
}

/// A page that may run the script that it brings, and nothing else: to the browser it belongs to no site, so it can ask
/// nothing of this listener.
pub(crate) fn page_of_its_own(text: impl Into<Bytes>) -> Answer {
    let mut answer = answer(StatusCode::OK, "text/html; charset=utf-8", text);
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    answer
}

fn answer(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().extend([
        (CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY)),
        (CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ]);
    answer
}
