//! The admin listener, from outside. One program, so that it is linked once.
#![forbid(unsafe_code)]

mod api;
mod dashboard;
mod openapi;
mod support;
