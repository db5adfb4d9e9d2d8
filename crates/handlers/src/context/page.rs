//! Responses that are made here: empty ones, and small pages of statuses.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use regent_exchange::ResponseBody;

pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<ResponseBody> {
    with_body(status, ResponseBody::empty())
}

/// A small page that says what the status says.
pub(crate) fn error(status: StatusCode) -> Response<ResponseBody> {
    error_because(status, None)
}

/// The same with a line that says why.
pub(crate) fn error_because(status: StatusCode, reason: Option<&str>) -> Response<ResponseBody> {
    let mut text = format!("{} {}\n", status.as_str(), status.canonical_reason().unwrap_or("Error"));
    if let Some(reason) = reason {
        text.push_str(reason);
        text.push('\n');
    }
    let mut response = with_body(status, ResponseBody::full(text));
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}

/// An answer with its length; no body where the status allows none (RFC 9110 §6.4.1).
pub(crate) fn with_body(status: StatusCode, body: ResponseBody) -> Response<ResponseBody> {
    with_fields(status, HeaderMap::new(), body)
}

/// The same with these fields. A length that they give stays: it tells of a body that is not sent.
pub(crate) fn with_fields(
    status: StatusCode,
    mut fields: HeaderMap,
    body: ResponseBody,
) -> Response<ResponseBody> {
    let bodiless = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let body = if bodiless { ResponseBody::empty() } else { body };
    if let Some(length) = body.len().filter(|_| !bodiless && !fields.contains_key(header::CONTENT_LENGTH)) {
        fields.insert(header::CONTENT_LENGTH, length.into());
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}
