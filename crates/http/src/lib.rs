//! Fronts: HTTP/1.1 connections, from streams to requests and back.
//!
//! What a request means is not known here; a service answers it.
#![forbid(unsafe_code)]

mod activity;
mod connection;
mod inbound;
mod interim;
mod watched;

pub use connection::{Settings, serve};
pub use interim::Interim;
