//! An exchange through another server of HTTP or FastCGI and back: `reverse_proxy`.
//!
//! [`Transports::open`] makes what all I/O threads share of a configuration; each makes a [`Proxy`] of it, with connections of
//! its own. [`Proxy::run`] takes a request to an upstream. Lengths are never passed on: hyper takes a message apart on one
//! side and frames it anew on the other, so that both sides of the server see the same end of it.
#![forbid(unsafe_code)]

mod ahead;
mod answers;
mod attempt;
mod backend;
mod balance;
mod buffered;
mod caller;
mod connect;
mod connection;
mod cookie;
mod download;
mod dynamic;
mod fastcgi;
mod fields;
mod forward;
mod forwarded;
mod health;
mod idle;
mod informational;
mod key;
mod limit;
mod lookup;
mod pool;
mod proxy;
mod random;
mod registry;
mod request;
mod resolve;
mod response;
mod span;
mod state;
mod timed;
mod transports;
mod tries;
mod trouble;
mod tunnel;
mod upload;
mod websocket;

pub use proxy::{HealthChecks, IncomingRequest, Proxy};
pub use transports::{OpenError, Transports, UpstreamStatus};
