//! The server in one process, with an engine that the tests play.
#![forbid(unsafe_code)]

mod basics;
