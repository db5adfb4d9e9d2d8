//! An upstream's response as the client gets it.

use crate::buffered::{Buffered, Buffers};
use crate::download::{Download, Received};
use crate::fields;
use crate::state::InFlight;
use crate::upload::Progress;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use hyper::ext::ReasonPhrase;
use regent_exchange::ResponseBody;
use regent_handlers::{Exchange, ProxyRules};
use std::rc::Rc;

/// Takes a final response from its connection, which is free again when the body has ended. `buffers`: for what the client
/// does not take at once.
pub(crate) fn received(
    response: Response<Received>,
    upload: Rc<Progress>,
    in_flight: InFlight,
    buffers: &Buffers,
) -> Response<ResponseBody> {
    let (parts, body) = response.into_parts();
    let download = Download::new(body, upload, in_flight);
    let body = match buffers.most > 0 && !download.is_end_stream() {
        true => ResponseBody::stream(Buffered::new(download, buffers)),
        false => ResponseBody::stream(download),
    };
    let mut response = Response::new(body);
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    if let Some(reason) = parts.extensions.get::<ReasonPhrase>() {
        response.extensions_mut().insert(reason.clone());
    }
    response
}

/// Leaves of a head what is the client's, and changes it as the directive says. `method`: what was asked for.
pub(crate) fn change_head<B>(
    response: &mut Response<B>,
    exchange: &Exchange,
    method: &Method,
    rules: &dyn ProxyRules,
) {
    let (status, version) = (response.status(), response.version());
    let head = response.headers_mut();
    let trailers = head.get(header::TRAILER).cloned();
    let length = length_of_nothing(head, status, method);
    fields::remove_hop_by_hop(head);
    rules.change_response(exchange, head);
    // What frames a message is nobody's to say but the front's.
    fields::remove_hop_by_hop(head);
    head.remove(header::CONTENT_LENGTH);
    head.extend(length.map(|length| (header::CONTENT_LENGTH, length)));
    if fields::has_token(&exchange.headers, &header::TE, "trailers") {
        head.extend(trailers.map(|names| (header::TRAILER, names)));
    }
    fields::add_via(head, version);
}

/// The length that a body would have which is not sent (RFC 9110 §8.6). That of one which is sent, the front says.
fn length_of_nothing(head: &HeaderMap, status: StatusCode, method: &Method) -> Option<HeaderValue> {
    let is_without = *method == Method::HEAD || status == StatusCode::NOT_MODIFIED;
    let mut values = head.get_all(header::CONTENT_LENGTH).iter();
    let (Some(length), None, true) = (values.next(), values.next(), is_without) else { return None };
    let is_number = !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit);
    is_number.then(|| length.clone())
}
