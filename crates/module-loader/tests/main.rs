//! Compiled modules, loaded and called. One program, so that it is linked once.
#![forbid(unsafe_code)]

mod answers;
mod loading;
mod support;
