//! HTTP/2 as a client sees it: with the h2 crate's client, and with frames made by hand.
#![forbid(unsafe_code)]

mod bodies;
mod drain;
mod limits;
mod raw;
mod requests;
mod responses;
mod server;
mod timeouts;
mod websocket;
