//! Responses that come before the final one, and what else a service asks of a connection.

use crate::Tunnel;
use http::{HeaderMap, StatusCode, Version};

/// A request's way to its client, before the final response.
pub trait Informational {
    /// Sends an informational response (1xx, RFC 9110 §15.2) to a client that speaks this version. It is for the service
    /// to call, while it is polled for the final response and has none yet.
    ///
    /// Nothing is sent to HTTP/1.0, and neither 100, which the fronts send by themselves, nor 101, which would hand the
    /// connection over.
    fn send(&self, version: Version, status: StatusCode, fields: &HeaderMap);

    /// Serves no other request on the connection, where what follows the running one may not be what it seems: in
    /// HTTP/1.1. In HTTP/2 frames say where a request ends.
    fn close_connection(&self);

    /// Hands the connection over once the final response has been sent, which has to be a 101: for HTTP/1.1. In HTTP/2 and
    /// HTTP/3 there is no 101 (RFC 9113 §8.6): it is the stream that is handed over, if the request is a
    /// [`crate::WebSocketStream`], and otherwise nothing happens.
    fn hand_over(&self, tunnel: Tunnel);

    /// Sends no response: ends the connection, or in HTTP/2 the stream. It is for the service to call before it gives a response,
    /// which nobody sees then.
    fn abort(&self);
}
