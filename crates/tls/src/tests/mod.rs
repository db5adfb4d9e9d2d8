//! Handshakes with a client of rustls, over streams in memory.

mod choice;
mod client_auth;
mod handshakes;
mod limits;
mod local_ca;
mod manual;
mod resumption;
mod support;

pub(crate) use support::{ManualClock, own_address, write_program};
