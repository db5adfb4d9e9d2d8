//! Fronts: from streams to requests, and from responses back.
//!
//! What a request means is not known here; a service answers it.
#![forbid(unsafe_code)]

mod allowance;
mod date;
pub mod h1;
pub mod h2;
pub mod h3;
mod linger;
mod owed;
mod request_head;
mod response_head;
mod timeouts;
mod websocket;

pub use h1::{Interim, Settings, serve};
