//! Answers to requests that this server itself does not carry out.

use http::{HeaderValue, StatusCode, header};
use regent_handlers::Failure;

/// Too many wait for the same work.
pub(crate) fn busy() -> Failure {
    Failure::new(StatusCode::SERVICE_UNAVAILABLE)
        .with_field(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

/// There is a response, but no WebSocket.
pub(crate) fn no_websocket() -> Failure {
    Failure::new(StatusCode::NOT_IMPLEMENTED).with_reason("no WebSocket is served here")
}

/// The connection ends with it: where the next request begins is not certain.
pub(crate) fn bad_head(status: StatusCode) -> Failure {
    Failure::new(status).with_field(header::CONNECTION, HeaderValue::from_static("close"))
}
