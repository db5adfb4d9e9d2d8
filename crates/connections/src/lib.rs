//! From listening addresses to requests.
//!
//! [`Addresses`] opens what a configuration listens on. A [`Dealer`] accepts connections from there and deals them out to the
//! I/O threads, each of which has a [`Front`] that serves them to their end: PROXY header, handshake, HTTP/1.1, 2 and 3. What
//! answers their requests is not known here: a [`Door`] leads to some [`Service`].
#![forbid(unsafe_code)]

mod acceptor;
mod addresses;
mod datagrams;
mod dealt;
mod door;
mod front;
mod http3;
mod https;
mod listen_error;
mod proxy_headers;
mod terms;

pub use acceptor::{Dealer, ListenerChange, Stage};
pub use addresses::{AddressChange, Addresses, ListenedOn, Opened};
pub use dealt::Dealt;
pub use door::{Conditions, Door, Doors, Service, plain_http, settings};
pub use front::Front;
pub use http3::alt_svc;
pub use https::{Https, HttpsError, tls_options, trust_at_start};
pub use listen_error::ListenError;
pub use proxy_headers::ProxyHeaders;
pub use regent_http::Settings;
pub use terms::Terms;
