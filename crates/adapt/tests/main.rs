//! The adapter, from outside: what becomes of models and of Caddy's own fixtures. One program, so that it is linked once.
#![forbid(unsafe_code)]

mod caddy;
#[path = "../../config/tests/even/mod.rs"]
#[allow(dead_code, reason = "of what it evens out, only a part is wanted here")]
mod even;
mod plain;
mod round_trip;
mod secrets;
