//! Interim answers (1xx). hyper's server sends none but 100 (Continue), so they are written to the socket behind its
//! back, at moments when it has nothing left to write itself.

use bytes::{Buf, BytesMut};
use http::{HeaderMap, HeaderName, StatusCode, Version, header};
use regent_exchange::{Informational, Tunnel};
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Bytes that may wait for a client that takes nothing; what comes on top is dropped.
const MOST_UNSENT: usize = 64 * 1024;

/// What an interim answer must not say: it has no body (RFC 9110 §8.6) and does not end the connection.
const OF_THE_FINAL: [HeaderName; 3] = [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

/// The interim answers of one connection, and whether it goes on.
#[derive(Default)]
pub struct Interim {
    unsent: RefCell<BytesMut>,
    /// A part of the first was sent: the rest of it has to follow before anything else.
    begun: Cell<bool>,
    closing: Cell<bool>,
    /// Takes the connection over behind a 101.
    tunnel: RefCell<Option<Tunnel>>,
    aborted: Cell<bool>,
}

impl Informational for Interim {
    /// A final response that comes at once waits until this is on its way. hyper sends 100 by itself.
    fn send(&self, version: Version, status: StatusCode, fields: &HeaderMap) {
        let mut unsent = self.unsent.borrow_mut();
        let is_known = (102..200).contains(&status.as_u16()) && version >= Version::HTTP_11;
        if is_known && unsent.len() < MOST_UNSENT {
            write_head(&mut unsent, status, fields);
        }
    }

    fn close_connection(&self) {
        self.closing.set(true);
    }

    fn hand_over(&self, tunnel: Tunnel) {
        self.tunnel.replace(Some(tunnel));
    }

    fn abort(&self) {
        self.aborted.set(true);
    }
}

impl Interim {
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    pub(crate) fn take_tunnel(&self) -> Option<Tunnel> {
        self.tunnel.take()
    }

    /// There is to be no response.
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.get()
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.get()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unsent.borrow().is_empty()
    }

    pub(crate) fn poll_write(
        &self,
        socket: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut unsent = self.unsent.borrow_mut();
        while !unsent.is_empty() {
            match ready!(Pin::new(&mut *socket).poll_write(context, &unsent))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => unsent.advance(count),
            }
            self.begun.set(!unsent.is_empty());
        }
        Poll::Ready(Ok(()))
    }
}

fn write_head(out: &mut BytesMut, status: StatusCode, fields: &HeaderMap) {
    let reason = status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).as_bytes());
    for (name, value) in fields.iter().filter(|(name, _)| !OF_THE_FINAL.contains(name)) {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(version: Version, status: u16, fields: &[(HeaderName, &'static str)]) -> String {
        let interim = Interim::default();
        let fields = fields
            .iter()
            .map(|(name, value)| (name.clone(), http::HeaderValue::from_static(value)))
            .collect::<HeaderMap>();
        interim.send(version, StatusCode::from_u16(status).unwrap(), &fields);
        String::from_utf8(interim.unsent.take().to_vec()).unwrap()
    }

    #[test]
    fn it_is_a_head_without_what_belongs_to_a_body() {
        let fields = [
            (header::LINK, "</a.css>; rel=preload"),
            (header::CONTENT_LENGTH, "9"),
            (header::CONNECTION, "close"),
        ];
        let expected = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";
        assert_eq!(sent(Version::HTTP_11, 103, &fields), expected);
        assert_eq!(sent(Version::HTTP_11, 199, &[]), "HTTP/1.1 199 \r\n\r\n");
    }

    #[test]
    fn what_must_not_be_sent_is_not() {
        assert_eq!(sent(Version::HTTP_10, 103, &[]), "");
        for status in [100, 101, 200, 304] {
            assert_eq!(sent(Version::HTTP_11, status, &[]), "", "{status}");
        }
    }

    #[test]
    fn a_client_that_takes_nothing_fills_no_memory() {
        let interim = Interim::default();
        for _ in 0..100_000 {
            interim.send(Version::HTTP_11, StatusCode::EARLY_HINTS, &HeaderMap::new());
        }
        assert!(interim.unsent.take().len() < MOST_UNSENT + 100);
    }
}
