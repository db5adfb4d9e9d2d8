//! HTTP/2 (RFC 9113) on the h2 crate.
//!
//! The crate keeps frames, header compression, windows and the states of streams. What it leaves open is here: what a request
//! must not be, time-outs for every way in which a client can stall, limits on what a client may repeat, and responses that
//! take turns.

mod activity;
mod connection;
mod early;
mod failure;
mod frames;
mod incoming;
mod sender;
mod sniff;
mod socket;
mod stream;
mod tunnel;

pub use connection::serve;
pub use failure::{Blame, Failure, Flood, Stalled};
pub use sniff::{Sniffed, sniff};
