//! Fronts: listening sockets and HTTP/1.1 connections, from bytes to requests and back.
//!
//! What a request means is not known here; a service answers it.
#![forbid(unsafe_code)]

mod activity;
mod connection;
mod drain;
mod listener;
mod watched;

pub use connection::{Settings, serve};
pub use drain::Drain;
pub use listener::listen;
