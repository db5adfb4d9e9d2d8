//! How one process of the server takes another's place: the sockets, and what the two say to each other.
//!
//! [`Attempt`] is the side of the server that runs, [`Predecessor`] that of the one that comes. What they serve is not known here.
#![forbid(unsafe_code)]

mod conversation;
mod predecessor;
mod successor;

pub use predecessor::{Legacy, Predecessor};
pub use successor::{Attempt, Successor, UpgradeError};
