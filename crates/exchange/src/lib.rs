//! What a request and a response are, whoever carries or answers them: the fronts (HTTP/1.1, HTTP/2) make the one and
//! take the other, handlers and engines know neither front.
#![forbid(unsafe_code)]

mod connection;
mod informational;
mod pace;
mod request_body;
mod response_body;
mod tunnel;

pub use connection::{ClientCertificate, Connection, Tls};
pub use informational::Informational;
pub use pace::{BodyLimits, BodyTimeouts, Pace};
pub use request_body::{BodyError, RequestBody};
pub use response_body::{EventStream, ResponseBody, Segment, read_at_once};
pub use tunnel::{Duplex, Tunnel, WebSocketStream};
