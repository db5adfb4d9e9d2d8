//! What is to be done when files change. Who does it, [`React`] is told.
#![forbid(unsafe_code)]

mod watching;

pub use watching::{Begun, React, Wanted, Watching};
