//! Configurations, from their text to the model. One program, so that it is linked once.
#![forbid(unsafe_code)]

mod even;
mod golden;
mod json;
mod json_own;
