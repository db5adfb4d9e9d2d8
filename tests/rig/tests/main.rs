//! The server in one process, with an engine that the tests play.
#![forbid(unsafe_code)]

mod caching;
mod connections;
mod deaths;
mod error_pages;
mod figures;
mod hostile_engines;
mod http2;
mod queue;
mod reloads;
mod request_bodies;
mod responses;
mod streaming;
mod variables;
