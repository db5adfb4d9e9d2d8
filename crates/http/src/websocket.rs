//! WebSocket over a stream of a connection (RFC 8441, RFC 9220).
//!
//! The request becomes what it would be by HTTP/1.1, an upgrade, so that routes, logs and upstreams know one kind. What the client
//! has no key for is left to whoever asks an upstream.

use crate::response_head::drop_connection_fields;
use http::{HeaderValue, Method, Response, StatusCode, header, request, response};
use regent_exchange::WebSocketStream;

/// Whether a stream may be made this. Names of protocols have no case (RFC 9110 §7.8).
pub(crate) fn is_spoken(protocol: &[u8]) -> bool {
    protocol.eq_ignore_ascii_case(b"websocket")
}

/// Makes an upgrade of the head of a `CONNECT`.
pub(crate) fn stand_in(head: &mut request::Parts) {
    head.method = Method::GET;
    head.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    head.headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    head.extensions.insert(WebSocketStream);
}

/// Whether it was made by [`stand_in`].
pub(crate) fn is_stand_in(head: &request::Parts) -> bool {
    head.extensions.get::<WebSocketStream>().is_some()
}

/// The head that opens the stream, of a 101.
pub(crate) fn opening(switched: response::Parts, date: HeaderValue) -> Response<()> {
    let mut fields = switched.headers;
    drop_connection_fields(&mut fields);
    // RFC 8441 §5: nothing of the key. RFC 9110 §9.3.6: nor of a length.
    [header::SEC_WEBSOCKET_ACCEPT, header::CONTENT_LENGTH].iter().for_each(|name| drop(fields.remove(name)));
    fields.entry(header::DATE).or_insert(date);
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::OK;
    *response.headers_mut() = fields;
    response
}

/// Whether a response to such a request would tell the client that it has what it asked for, though nobody has handed it over.
pub(crate) fn misleads(status: StatusCode) -> bool {
    status.is_success()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn a_connect_becomes_an_upgrade() {
        let request = Request::builder().method("CONNECT").header("sec-websocket-version", "13");
        let mut head = request.body(()).unwrap().into_parts().0;
        assert!(!is_stand_in(&head));
        stand_in(&mut head);
        assert!(is_stand_in(&head) && head.method == Method::GET);
        assert_eq!(
            (&head.headers["connection"], &head.headers["upgrade"]),
            (&HeaderValue::from_static("Upgrade"), &HeaderValue::from_static("websocket"))
        );
    }

    #[test]
    fn what_opens_a_stream_says_nothing_of_http_1() {
        let response = Response::builder()
            .status(101)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-accept", "x")
            .header("sec-websocket-protocol", "chat");
        let opening = opening(response.body(()).unwrap().into_parts().0, HeaderValue::from_static("now"));
        assert_eq!(opening.status(), 200);
        let names: Vec<&str> = opening.headers().keys().map(|name| name.as_str()).collect();
        assert_eq!(names, ["sec-websocket-protocol", "date"]);
    }
}
