//! Handshakes with a client of rustls, over streams in memory.

mod support;

pub(crate) use support::ManualClock;
