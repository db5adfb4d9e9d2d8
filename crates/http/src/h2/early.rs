//! Informational responses of one stream.

use ::h2::Reason;
use ::h2::server::SendResponse;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode, Version, header};
use regent_exchange::{Informational, Tunnel};
use std::cell::{Cell, RefCell};
use std::task::{Context, Poll};

/// Bytes that one request's informational responses may have. No window bounds header blocks, and a client that takes none
/// would have them all kept.
const MOST: usize = 64 * 1024;

/// What an informational response must not say: it has no body (RFC 9110 §8.6).
const OF_THE_FINAL: [HeaderName; 2] = [header::CONTENT_LENGTH, header::TRAILER];

/// What comes before the final response of a stream. Empty once that is there, since those who hold it, such as a request's
/// body, may outlive the response.
pub(super) struct Early {
    respond: RefCell<Option<SendResponse<Bytes>>>,
    bytes_left: Cell<usize>,
    /// Takes the stream over behind the final response.
    tunnel: RefCell<Option<Tunnel>>,
}

impl Early {
    pub fn new(respond: SendResponse<Bytes>) -> Self {
        Self { respond: RefCell::new(Some(respond)), bytes_left: Cell::new(MOST), tunnel: RefCell::default() }
    }

    /// For the final response. `None`: it was taken before.
    pub fn take(&self) -> Option<SendResponse<Bytes>> {
        self.respond.take()
    }

    pub fn take_tunnel(&self) -> Option<Tunnel> {
        self.tunnel.take()
    }

    /// Ready when the stream has ended before its response.
    pub fn poll_reset(&self, context: &mut Context<'_>) -> Poll<()> {
        match &mut *self.respond.borrow_mut() {
            Some(respond) => respond.poll_reset(context).map(drop),
            None => Poll::Pending,
        }
    }

    /// Asks for the body of a request that waits for it (RFC 9110 §10.1.1).
    pub fn ask_for_body(&self) {
        self.write(StatusCode::CONTINUE, HeaderMap::new());
    }

    fn write(&self, status: StatusCode, fields: HeaderMap) {
        let size: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        let Some(left) = self.bytes_left.get().checked_sub(size + 32) else { return };
        self.bytes_left.set(left);
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        if let Some(respond) = &mut *self.respond.borrow_mut() {
            // An error says that the stream has ended, which is seen elsewhere.
            let _ = respond.send_informational(response);
        }
    }
}

impl Informational for Early {
    fn send(&self, _: Version, status: StatusCode, fields: &HeaderMap) {
        if !(102..200).contains(&status.as_u16()) {
            return;
        }
        let mut fields = fields.clone();
        crate::response_head::drop_connection_fields(&mut fields);
        OF_THE_FINAL.iter().for_each(|name| drop(fields.remove(name)));
        self.write(status, fields);
    }

    fn close_connection(&self) {}

    fn hand_over(&self, tunnel: Tunnel) {
        self.tunnel.replace(Some(tunnel));
    }

    fn abort(&self) {
        if let Some(mut respond) = self.take() {
            respond.send_reset(Reason::INTERNAL_ERROR);
        }
    }
}
