//! HTTP/3 (RFC 9114) over QUIC connections of quinn.
//!
//! The layer is our own, for servers only: docs/design/http3.md says why. It keeps no more of a frame than it may have, says in
//! `GOAWAY` what it has not served, and ends with an error each response that breaks off.

mod code;
mod connection;
mod control;
mod drivers;
mod early;
mod endpoint;
mod failure;
mod fields;
mod frames;
#[doc(hidden)]
pub mod fuzzing;
mod incoming;
mod message;
mod qpack;
mod response;
mod stream;
mod tunnel;
mod varint;

pub use connection::serve;
pub use endpoint::{Arriving, Came, Connection, Endpoint, Handshake};
pub use failure::Failure;
