//! HTTP/1.1 (RFC 9112) on hyper.

mod activity;
mod connection;
mod events;
mod inbound;
mod interim;
mod last_request;
mod tunnel;
mod watched;

pub use connection::{Settings, serve};
pub use interim::Interim;
