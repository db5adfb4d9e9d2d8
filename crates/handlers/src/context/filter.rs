//! What routes do with responses, whoever makes them.

use crate::context::exchange::Exchange;
use crate::context::origin::Origin;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use regent_exchange::ResponseBody;

const SERVER: HeaderValue = HeaderValue::from_static("Regent");

/// A change of a response. Routes put filters on a request ([`Exchange::add_filter`]) before anything has answered it; they
/// are applied when it has a response, the last first, as the wrappers of Caddy's response writer nest.
pub(crate) trait Filter: Send + Sync {
    /// Whether the filter sets fields before the response is made.
    fn prepares(&self) -> bool {
        false
    }

    /// Sets the fields that whoever makes the response finds, and may add to.
    fn prepare(&self, _: &Exchange, _: &mut HeaderMap) {}

    fn apply(&self, exchange: &Exchange, response: Response<ResponseBody>) -> Response<ResponseBody>;
}

/// Takes a response through the filters of its request, and adds `Server` if there is none.
pub(crate) fn finish(exchange: &Exchange, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let prepared = exchange.filters().iter().any(|filter| filter.prepares());
    put_under(prepared.then(|| prepared_fields(exchange)), exchange.origin(), response.headers_mut());
    for filter in exchange.filters().iter().rev() {
        response = filter.apply(exchange, response);
    }
    if response.status() == StatusCode::NO_CONTENT {
        // RFC 9110 §8.6.
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response
}

/// The type that a response will have when it has gone through [`finish`], as far as it was set before.
pub(crate) fn content_type(exchange: &Exchange, fields: &HeaderMap) -> Option<HeaderValue> {
    with_prepared(exchange, fields).remove(header::CONTENT_TYPE)
}

/// What a field was set to before a response is made; `None`: nothing, or an empty value.
pub(crate) fn prepared(exchange: &Exchange, name: &HeaderName) -> Option<HeaderValue> {
    let is_prepared = exchange.filters().iter().any(|filter| filter.prepares());
    let value = is_prepared.then(|| prepared_fields(exchange).remove(name)).flatten();
    value.filter(|value| !value.is_empty())
}

/// The header of a response, with the fields that were there before it was made.
pub(crate) fn with_prepared(exchange: &Exchange, fields: &HeaderMap) -> HeaderMap {
    let mut fields = fields.clone();
    if exchange.filters().iter().any(|filter| filter.prepares()) {
        merge(prepared_fields(exchange), exchange.origin(), &mut fields);
    }
    fields
}

/// The header as it stood before the response was made.
fn prepared_fields(exchange: &Exchange) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(header::SERVER, SERVER);
    exchange.filters().iter().for_each(|filter| filter.prepare(exchange, &mut fields));
    fields
}

/// Puts the fields that were there before the response was made under its own; `None`: there is but `Server`. That of a
/// response from another server is the other's or none, and `Via` names this one.
fn put_under(early: Option<HeaderMap>, origin: Origin, headers: &mut HeaderMap) {
    match early {
        Some(mut early) => {
            if origin == Origin::Upstream {
                early.remove(header::SERVER);
            }
            merge(early, origin, headers);
        }
        None if origin == Origin::Upstream => {}
        None => drop(headers.entry(header::SERVER).or_insert(SERVER)),
    }
}

/// Of a field that may be there once, one is kept.
fn merge(early: HeaderMap, origin: Origin, headers: &mut HeaderMap) {
    for name in early.keys() {
        let early_wins = *name == header::CONTENT_TYPE && origin == Origin::Regent;
        if headers.contains_key(name) && is_single(name) && !early_wins {
            continue;
        }
        let own: Vec<_> = headers.get_all(name).iter().filter(|_| !early_wins).cloned().collect();
        headers.remove(name);
        for value in early.get_all(name).iter().cloned().chain(own) {
            headers.append(name, value);
        }
    }
}

/// Fields of which there may be only one.
fn is_single(name: &HeaderName) -> bool {
    const SINGLE: [HeaderName; 10] = [
        header::ACCEPT_RANGES,
        header::CONTENT_ENCODING,
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::DATE,
        header::ETAG,
        header::LAST_MODIFIED,
        header::LOCATION,
        header::SERVER,
    ];
    SINGLE.contains(name)
}
