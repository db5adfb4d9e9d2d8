//! An exchange through an engine and back: the request's variables and body in, the response out, whole or as it is made.
//!
//! The shared memory is reached through `regent_engines` alone.
#![forbid(unsafe_code)]

mod cgi;
mod ends;
mod fields;
mod gateway;
mod inline;
mod keys;
mod length;
mod logged;
mod native;
mod response_head;
mod streamed;
mod target;
mod traced;
mod trouble;
mod upload;
pub mod warmup;

pub use cgi::SOFTWARE;
pub use ends::Ends;
pub use gateway::{Answered, Arrived, Gateway};
pub use inline::Inlined;
pub use logged::Logged;
pub use native::NativeGateway;
