//! What routes do with responses, whoever makes them.

use crate::exchange::Exchange;
use crate::response_headers;
use http::{HeaderMap, Response, StatusCode, header};
use regent_exchange::ResponseBody;

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
    response_headers::put_under(
        prepared.then(|| prepared_fields(exchange)),
        exchange.origin(),
        response.headers_mut(),
    );
    for filter in exchange.filters().iter().rev() {
        response = filter.apply(exchange, response);
    }
    if response.status() == StatusCode::NO_CONTENT {
        // RFC 9110 §8.6.
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response
}

/// The header as it stood before the response was made.
fn prepared_fields(exchange: &Exchange) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(header::SERVER, response_headers::SERVER);
    exchange.filters().iter().for_each(|filter| filter.prepare(exchange, &mut fields));
    fields
}
