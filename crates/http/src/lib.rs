//! Fronts: from streams to requests, and from responses back.
//!
//! What a request means is not known here; a service answers it.
#![forbid(unsafe_code)]

pub mod h1;
pub mod h2;
mod linger;
mod patience;

pub use h1::{Interim, Settings, serve};
